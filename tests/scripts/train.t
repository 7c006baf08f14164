# Fine-tuning from options and from a recipe, and what is refused.

$ "$TESTS/make_tiny_model" m
$ printf '%s\n' '{"prompt":"Say a","completion":" a"}' '{"prompt":"Say b","completion":" bb"}' > d.jsonl
$ tenon train --model m --data d.jsonl --out run --steps 3 --rank 2 --compute f32 --tokens-per-step 64 --threads 1
model    LlamaForCausalLM, 22.2 K parameters, 2 blocks
data     2 rows, 17 tokens of which 6 are trained on
adapter  14 modules, 1.95 K parameters
compute  f32 on 1 thread of ...
memory   ... planned of ...
kernels  ...
step 1/3 ...
...
step 3/3  loss ...
Trained 3 steps in ...
The adapter is in run/adapter.

$ ls run run/adapter
run:
adapter
...
recipe.yaml
...
run/adapter:
adapter_config.json
adapter_model.safetensors

# The effective recipe repeats the run; a second run with it gives the same adapter.
$ tenon train run/recipe.yaml --out again 2> /dev/null; cmp run/adapter/adapter_model.safetensors again/adapter/adapter_model.safetensors

# Options come on top of the recipe.
$ tenon train run/recipe.yaml --out third --steps 1 --json | python3 -c 'import json, sys; print([json.loads(l)["step"] for l in sys.stdin])'
[1]

$ tenon train run/recipe.yaml
tenon: run: the run folder exists and is not empty
...
[exit 2]

$ tenon train run/recipe.yaml --overwrite --steps 1 2>&1 | tail -1
The adapter is in run/adapter.

# A large data set is described by a sample (which line 15716 is not in), but every row that the run will come to is
# read before it starts.
$ python3 -c 'for i in range(20100): print("{\"prompt\":\"a\",\"completion\":\"%s\"}" % ("b" * (200 if i == 15715 else 1)))' > many.jsonl
$ tenon train --model m --data many.jsonl --out many --rank 2 --compute f32 --tokens-per-step 64 --threads 1 2>&1 | grep -v '^checking'; ls many
model ...
data     20,000 rows, ... tokens of which ... are trained on (a sample of 20,100 rows)
...
tenon: many.jsonl:15716: ...
  ...
ls: cannot access 'many': No such file or directory
[exit 2]

# What is wrong, and where.
$ printf 'rank: 2\nwarmup: 3\n' > bad.yaml; tenon train bad.yaml
tenon: bad.yaml:2: unknown key 'warmup'
  did you mean 'warmup-steps'?
[exit 2]

$ printf 'rank: [2\n' > bad.yaml; tenon train bad.yaml
tenon: bad.yaml:...: is not YAML: ...
  A recipe is one "key: value" a line, as in examples/helpdesk/recipe.yaml.
[exit 2]

$ printf 'lr: 0\n' > bad.yaml; tenon train bad.yaml
tenon: bad.yaml:1: lr: 0 is out of range: it must be above 0
[exit 2]

$ tenon train missing.yaml
tenon: missing.yaml: ...
...
[exit 2]

$ tenon train --model m --data d.jsonl
tenon: --out: is missing
  Add --out FOLDER, or out: in the recipe.
[exit 2]

$ tenon train --model m --data d.jsonl --out r --rnak 4
tenon: train: unknown option '--rnak'
  did you mean '--rank'?
[exit 2]

$ tenon train --model m --data d.jsonl --out r --schedule cosin
tenon: --schedule: 'cosin' is not one of constant, linear, cosine
  did you mean 'cosine'?
[exit 2]

$ tenon train --model m --data d.jsonl --out r --steps 3 --warmup-steps 4
tenon: --warmup-steps: 4 is more than the 3 --steps of the run
[exit 2]

$ tenon train --model m --data missing.jsonl --out r
tenon: missing.jsonl: ...
...
[exit 2]

$ tenon train --model m --data d.jsonl --out r --targets q_porj
tenon: ...q_porj...
...
[exit 2]

$ echo '{"prompt": "Say nothing", "completion": ""}' > nothing.jsonl; tenon train --model m --data nothing.jsonl --out r --train-on last
tenon: nothing.jsonl...
...
[exit 2]

$ tenon train --model m --data d.jsonl --out r --max-tokens 4 --tokens-per-step 64
tenon: d.jsonl:1: ...
...
[exit 2]

$ tenon train --model m --data d.jsonl --out r --tokens-per-step 64 --memory 10KiB
tenon: --memory: ...
...
[exit 3]

# A refused run leaves nothing behind.
$ ls -d r
ls: cannot access 'r': No such file or directory
[exit 2]
