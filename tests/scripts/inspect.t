# What a path is, as a page and as JSON.

$ tenon inspect "$TESTS/golden/smollm2"
path ...golden/smollm2
format ...Hugging Face folder
architecture
...
  family ...llama
  parameters ...22,176
  blocks ...2
...
model type ...llama
files ...1
parameters ...22,176
weights ...86.62 KiB (88,704 bytes)
tensors ...20
dtypes
  dtype  tensors  parameters   bytes
  f32         20      22,176  88,704
...

$ tenon inspect "$TESTS/golden/smollm2" --json | python3 -c 'import json, sys; f = json.load(sys.stdin); print(f["parameters"], f["dtypes"][0]["dtype"])'
22176 f32

$ tenon inspect "$TESTS/golden/smollm2" --tensors
...
tensor list
  name ... dtype  shape ... bytes
  model.embed_tokens.weight ... f32    [160,32]  20,480
...

$ tenon inspect "$TESTS/golden/smollm2/adapter"
path                     ...adapter
format                   PEFT adapter
peft type                LORA
...
r                        4
lora alpha               8
...
modules                  14
parameters               3,904
...

$ tenon inspect "$TESTS/io/reference.gguf"
path ...
format ...GGUF version 3
...

$ tenon inspect "$TESTS/io/reference.safetensors"
...
format ...safetensors file
...

$ tenon inspect "$TESTS/text/tiny_bytes/tokenizer.json"
path  ...tokenizer.json
tokenizer
  vocabulary      104
  bos             <s> (1)
  eos             </s> (2)
...

# Data sets: without a model only rows; with one what is trained on.
$ cat > rows.jsonl <<'END'
> {"prompt": "Say a", "completion": " a"}
> {"prompt": "Say hello", "completion": " hello there"}
> {"prompt": "Say nothing", "completion": ""}
> END
$ tenon inspect rows.jsonl
path        rows.jsonl
kind        JSONL
row format  prompt, completion
rows        3
text        ...

Add --model PATH to see its tokens, what is trained on, and examples.

$ tenon inspect rows.jsonl --model "$TESTS/text/tiny_sentencepiece" --max-tokens 16
...
  usable ...
...
Say hello« hello» there
...

$ tenon inspect rows.jsonl --model "$TESTS/text/tiny_sentencepiece" --json | python3 -c 'import json, sys; f = json.load(sys.stdin); print(f["rows"], f["cut_rows"], f["examples"][0]["trained_byte_ranges"])'
3 0 [[5, 7]]

# Bad input.
$ tenon inspect missing
tenon: missing: ...
...
[exit 2]

$ mkdir empty; tenon inspect empty
tenon: empty: ...
...
[exit 2]

$ echo '{"question": 1}' > odd.jsonl; tenon inspect odd.jsonl
tenon: odd.jsonl:1: ...
...
[exit 2]

$ head -c 100 "$TESTS/golden/smollm2/model.safetensors" > cut.safetensors; tenon inspect cut.safetensors
tenon: cut.safetensors: ...
...
[exit 2]

$ tenon inspect rows.jsonl --model "$TESTS/text/tiny_bytes" --train-on answer
tenon: --train-on: 'answer' is not one of answers, last, all
  did you mean 'answers'?
[exit 2]
