# Data sets: sources, what is suspicious in rows, what an evaluation set shares with them, preferences.
$ cat > rows.jsonl <<'END'
> {"messages": [{"role": "user", "content": "What is the capital of France, please?"}, {"role": "assistant", "content": "Paris"}]}
> {"messages": [{"role": "user", "content": "What is the capital of France, please?"}, {"role": "assistant", "content": "Paris"}]}
> {"messages": [{"role": "user", "content": "CafÃ© or tea?\r\n"}, {"role": "assistant", "content": " "}]}
> {"messages": [{"role": "assistant", "content": "Hello"}, {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]}
> END
$ printf '{"prompt": "what is the capital of france please", "completion": "paris"}\n{"prompt": "and of Spain?", "completion": "Madrid"}\n' > asked.jsonl
$ printf "{%%- for m in messages %%}{{ m.role + ':' + m.content + '</s>' }}{%% endfor %%}{%% if add_generation_prompt %%}assistant:{%% endif %%}" > t.jinja

$ tenon inspect data rows.jsonl --model "$TESTS/text/tiny_bytes" --template t.jinja --eval-data asked.jsonl --show 1
rows.jsonl: JSONL, 4 rows of format 'messages'; 4 in this part, 4 read
...
  warning: 1 rows have an answer without words
  warning: 1 rows whose messages do not take turns as in a chat that ends with an answer
  warning: 1 rows hold text that was decoded wrongly, such as "Ã©" for "é"
  warning: 1 rows end lines with a carriage return
    the first such row: rows.jsonl:3
  warning: 1 rows have the words of an earlier row
  warning: 1 of 2 evaluation rows stand in the training data
    asked.jsonl:1 in rows.jsonl:1 (100 %)
...
user:What is the capital of France, please?</s>assistant:«Paris</s>»

$ tenon inspect data rows.jsonl --model "$TESTS/text/tiny_bytes" --template t.jinja --eval-data asked.jsonl --json | python3 -c 'import json, sys; f = json.load(sys.stdin); print(f["duplicate_rows"], f["rows_with_mojibake"], f["eval_rows_seen"], f["eval_rows_seen_examples"][0]["eval"])'
1 1 1 asked.jsonl:1

# Sources with weights.
$ tenon inspect data rows.jsonl:0.75,asked.jsonl:0.25 --model "$TESTS/text/tiny_bytes" --template t.jinja --show 0
...
  rows.jsonl: 4 rows, 5 an epoch (weight 0.75)
  asked.jsonl: 2 rows, 1 an epoch (weight 0.25)
...

# A folder, and columns under other names.
$ mkdir set; printf 'q,a\nWhy?,"So, there"\n' > set/a.csv; printf 'text of a document\n' > set/b.txt
$ tenon inspect data set --columns prompt=q,completion=a
path ...set
row format ...prompt, completion
rows ...2
text ...
files
  path ...
  set/a.csv  CSV ...
  set/b.txt  text ...
...
$ tenon inspect data set/a.csv --columns prompt=q,completion=a
path        set/a.csv
kind        CSV
row format  prompt, completion
rows        1
...
$ tenon inspect data 'set/*.txt' --model "$TESTS/text/tiny_bytes"
set/*.txt: text, 1 rows of format 'text'; 1 in this part, 1 read
...

# Preferences are shown and counted, and said not to be trainable.
$ printf '{"prompt": "q", "chosen": "good one", "rejected": "bad"}\n' > pairs.jsonl
$ tenon inspect data pairs.jsonl --model "$TESTS/text/tiny_bytes" --template t.jinja
pairs.jsonl: 1 rows of format 'chosen and rejected answers', 1 read
...
  these rows cannot be trained on yet: no loss here learns from preferences
example, pairs.jsonl:1:
chosen: good one
rejected: bad

# Several sources.
$ tenon inspect data rows.jsonl:0.9 asked.jsonl:0.1
path        rows.jsonl:0.9,asked.jsonl:0.1
row format  messages
rows        6
...

# Bad input.
$ tenon inspect data missing.jsonl
tenon: missing.jsonl: there is no such file or folder
[exit 2]
$ tenon inspect data rows.jsonl:0.5,asked.jsonl
tenon: rows.jsonl:0.5,asked.jsonl: some sources have a weight and some have none
  Give every source a weight, or none.
[exit 2]
$ printf 'PAR1....' > rows.parquet; tenon inspect data rows.parquet
tenon: rows.parquet: this is not a kind of data file that Tenon reads
  Rows come as ...
[exit 2]
