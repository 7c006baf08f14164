# Ids as the Python package tokenizers 0.23 gives them for the same files.

$ tenon tokenize "$TESTS/text/tiny_bytes" --text 'Hello there'
46 75 82 82 85 5 90 78 75 88 75

$ tenon tokenize "$TESTS/text/tiny_bytes/tokenizer.json" --text 'Hello there' --special --json
[1,46,75,82,82,85,5,90,78,75,88,75]

$ printf 'Hello there' > text; tenon tokenize "$TESTS/text/tiny_sentencepiece" --file text
259 299 328 335 335 338 259 343 331 328 341 328

$ tenon tokenize "$TESTS/text/tiny_sentencepiece" < text
259 299 328 335 335 338 259 343 331 328 341 328

$ tenon tokenize "$TESTS/text/tiny_sentencepiece" --text '<s>a'
1 259 324

$ tenon tokenize "$TESTS/text/tiny_sentencepiece" --text '<s>a' --literal
259 287 342 289 324

$ tenon tokenize "$TESTS/text/tiny_sentencepiece" --text 'é!' --offsets
259	0	2	▁
198	0	2	<0xC3>
172	0	2	<0xA9>
260	2	3	!

$ tenon tokenize "$TESTS/text/tiny_bytes" --text 'Hi' --offsets --json
[{"id":46,"begin":0,"end":1,"token":"H"},{"id":79,"begin":1,"end":2,"token":"i"}]

# An empty text is a text, not a missing one.
$ tenon tokenize "$TESTS/text/tiny_bytes" --text '' --json
[]

# One JSON string a line in, one array of ids a line out.
$ printf '"Hello there"\n""\n"\\u00e9</s>x"\r\n' > lines.jsonl
$ tenon tokenize "$TESTS/text/tiny_sentencepiece" --jsonl lines.jsonl
[259,299,328,335,335,338,259,343,331,328,341,328]
[]
[259,198,172,2,259,347]

$ printf '"a"\n{"b": 1}\n' | tenon tokenize "$TESTS/text/tiny_bytes" --jsonl -
[71]
tenon: standard input:2: is not a JSON string
  Each line holds one text in quotes, as json.dumps writes it.
[exit 2]

$ printf '"a"\n"b\n' > cut.jsonl; tenon tokenize "$TESTS/text/tiny_bytes" --jsonl cut.jsonl
[71]
tenon: cut.jsonl:2: is not a JSON string
  Each line holds one text in quotes, as json.dumps writes it.
[exit 2]

# Bad input.
$ tenon tokenize
tenon: tokenize: PATH is missing
  See 'tenon tokenize --help'.
[exit 2]

$ tenon tokenize nowhere --text x
tenon: nowhere: there is no such file or folder
[exit 2]

$ tenon tokenize "$TESTS/text/tiny_bytes" --txet x
tenon: tokenize: unknown option '--txet'
  did you mean '--text'?
[exit 2]

$ tenon tokenize "$TESTS/text/tiny_bytes" --text
tenon: --text: needs a value: --text TEXT
  Write --text=VALUE for a value that begins with --.
[exit 2]

$ tenon tokenize "$TESTS/text/tiny_bytes" --text a --file text
tenon: tokenize: only one of --text, --file and --jsonl can be given
[exit 2]

$ tenon tokenize "$TESTS/text/tiny_bytes" --file missing
tenon: missing: cannot read: No such file or directory
  Check the path; a folder in it may be missing.
[exit 2]

$ tenon tokenize "$TESTS/text/tiny_bytes" extra --text x
tenon: tokenize: unexpected argument 'extra'
  See 'tenon tokenize --help'.
[exit 2]

$ echo '{"model": {"type": "Unknown"}}' > tokenizer.json; tenon tokenize tokenizer.json --text x
tenon: tokenizer.json: model of type "Unknown" is not implemented
[exit 2]

$ head -c 300 "$TESTS/text/tiny_bytes/tokenizer.json" > tokenizer.json; tenon tokenize tokenizer.json --text x
tenon: tokenizer.json: is not JSON: The JSON document has an improper structure: missing or superfluous commas, braces, missing keys, etc.
[exit 2]

$ tenon tokenize --help
Print the token ids of a text.

usage: tenon tokenize PATH [options]
...
example:
  tenon tokenize ...
...
