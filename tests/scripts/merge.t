$ G="$TESTS/golden/smollm2"; tenon merge --model "$G" --adapter "$G/adapter" --out merged --threads 1 2> /dev/null
14 of 20 weights merged into merged (1 files, ...)
Checked: logits are ... from the live adapter's; the base model's are ... away.

$ ls merged
config.json
generation_config.json
model.safetensors

# The merged model gives the loss of the live adapter.
$ G="$TESTS/golden/smollm2"
> tenon probe --model "$G" --adapter "$G/adapter" --tokens "$G/golden.safetensors" --out a --json --compute f32 --threads 1 > live
> tenon probe --model merged --tokens "$G/golden.safetensors" --out b --json --compute f32 --threads 1 > folded
> python3 -c 'import json; a, b = (json.load(open(n))["loss"] for n in ("live", "folded")); print(abs(a - b) < 1e-5)'
True

$ G="$TESTS/golden/smollm2"; tenon merge --model "$G" --adapter "$G/adapter" --out merged
tenon: merged: it exists already
  Name a folder that does not exist yet.
[exit 2]

$ G="$TESTS/golden/smollm2"; tenon merge --model "$G" --adapter "$TESTS/golden/llama/adapter/missing" --out other
tenon: ...missing...
...
[exit 2]

$ G="$TESTS/golden/smollm2"; tenon merge --model "$G" --adapter "$G/adapter" --out other --shard-size 0GB1
tenon: --shard-size: ...
...
[exit 2]

$ ls -d other
ls: cannot access 'other': No such file or directory
[exit 2]
