# The memory account, without running.

$ "$TESTS/make_tiny_model" m
$ tenon plan --model m --tokens-per-step 64 --rank 2 --threads 1 --compute f32 --memory 8GiB
...
adapter ...
optimiser state ...
...
lower bound ...
...
The peak is at step ...
...
It fits: ... of 8.00 GiB.

$ tenon plan --model m --tokens-per-step 64 --rank 2 --threads 1 --compute f32 --memory 100KiB
...
It does not fit: ... of 100.00 KiB.
...
tenon: --memory: the run needs ...
...
[exit 3]

$ tenon plan --model m --tokens-per-step 64 --compute f32 --threads 1 --steps | grep -c matmul
re: \d\d+

# The same question gives the same plan.
$ tenon plan --model m --decode 64 --threads 1 --compute f32 --json > a; tenon plan --model m --decode 64 --threads 1 --compute f32 --json | cmp - a
$ python3 -c 'import json; p = json.load(open("a")); print(p["peak_program"], p["static_by_use"]["cache"], p["arena_bytes"] >= p["lower_bound_bytes"])'
decode 16384 True

$ tenon plan --model m --prefill 32 --threads 1 --compute f32 | tail -1
It fits: ...

$ tenon plan --model m --tokens-per-step 64 --compute f32 --threads 1 --time | tail -3
predicted time ... s a run of train_step
predicted time ... s a run of optimiser_step
predicted time ... s a run of evaluate

$ tenon plan --model m --decode 64 --threads 1 --compute f32 --time --json | python3 -c 'import json, sys; p = json.load(sys.stdin); print(p["predicted_seconds"]["decode"] > 0, p["predicted_sequence_tokens"])'
True 64

$ tenon plan --model m --decode 64 --threads 1 --compute f32 --time | tail -1
predicted time ... s a run of decode, in the middle of 64 tokens

$ tenon plan
tenon: --model: is missing
  Add --model PATH, or model: in the recipe.
[exit 2]

$ tenon plan --model nowhere
tenon: nowhere: ...
...
[exit 2]

$ tenon plan --model m --memory lots
tenon: --memory: lots: not a size
  Write a number and a unit, for example 8GiB, 500MB or 1.5G.
[exit 2]

# What decoding keeps: keys and values for each token.
$ tenon plan --model m --decode 64 --threads 1 --compute f32 | grep -A1 'cache of decoding'
cache of decoding ... a token, 0 B of fixed state a sequence
  layers 0-... a token

# A layer that sees a window keeps the window: 8 positions, and the 256 that prefill may write before them are read.
$ cp -r m w; python3 -c 'import json; c = json.load(open("w/config.json")); [c.pop(k, None) for k in ("attention_bias", "mlp_bias")]; c.update(model_type="mistral", sliding_window=8); json.dump(c, open("w/config.json", "w"))'
$ tenon plan --model w --decode 512 --threads 1 --compute f32 | grep -c 'a token of the last 272, '
1
$ tenon plan --model w --decode 512 --threads 1 --compute f32 | grep 'cache of decoding'
cache of decoding 0 B a token, ... of fixed state a sequence
