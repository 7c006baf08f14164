$ "$TESTS/make_tiny_model" m
$ printf '%s\n' '{"prompt":"Say a","completion":" a"}' '{"prompt":"Say b","completion":" bb"}' > d.jsonl
$ tenon eval --model m --data d.jsonl --compute f32 --threads 1
loss ...  perplexity ...  token accuracy ...%  (2 rows, 6 tokens)

# The value does not depend on how rows are packed.
$ loss() { tenon eval --model m --data d.jsonl --compute f32 --threads 1 --json "$@" | python3 -c 'import json, sys; print(round(json.load(sys.stdin)["loss"], 4))'; }; test "$(loss --tokens-per-step 16)" = "$(loss)" && echo equal
equal

$ tenon eval --model m --data d.jsonl --adapter "$TESTS/golden/llama32_tied/adapter" --compute f32 --threads 1 --json
{"loss":...,"rows":2,"trained_tokens":6}

# Bad input.
$ tenon eval --model m
tenon: eval: --data is missing
  See 'tenon eval --help'.
[exit 2]

$ tenon eval --model m --data missing.jsonl
tenon: missing.jsonl: ...
...
[exit 2]

$ tenon eval --model m --data d.jsonl --adapter m
tenon: m...
...
[exit 2]

$ tenon eval --model m --data d.jsonl --adapter "$TESTS/golden/qwen3/adapter"
tenon: ...q_proj.lora_A.weight: the shapes [4, 32] and [64, 4] do not fit a layer of 32 inputs and 32 outputs
  The adapter was trained on another base model.
[exit 2]

# Several sources, each with a weight, under other column names.
$ printf '%s\n' 'question,reply' 'Say a, a' 'Say b, bb' > d.csv
$ tenon eval --model m --data d.csv:0.5 --data d.csv:0.5 --columns prompt=question,completion=reply --compute f32 --threads 1
loss ...  perplexity ...  token accuracy ...%  (4 rows, 12 tokens)

$ tenon eval --model m --data d.csv:0.5 --data d.csv --columns prompt=question,completion=reply
tenon: d.csv:0.5,d.csv: some sources have a weight and some have none
  Give every source a weight, or none.
[exit 2]
