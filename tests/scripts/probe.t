# Numbers against what transformers and peft computed in float64 (tests/golden).

$ cp -r "$TESTS/golden/qwen3" g
$ tenon probe --model g --tokens g/golden.safetensors --out o.safetensors --grads all --greedy 4 --json --compute f32 --threads 1 > o.json
$ python3 -c 'import json; print(abs(json.load(open("o.json"))["loss"] - json.load(open("g/golden.json"))["loss"]) < 2e-5)'
True

# Every weight has a gradient, under its own name and shape.
$ names() { tenon inspect "$1" --tensors --json | python3 -c 'import json, sys; print(sorted((t["name"].removeprefix("grad."), t["shape"]) for t in json.load(sys.stdin)["tensor_list"] if t["name"].startswith(sys.argv[1])))' "$2"; }; names o.safetensors grad. > a; names g/model.safetensors '' | cmp - a
$ tenon inspect o.safetensors --tensors | grep -E '^  (logits|loss|greedy_ids) '
  logits ... f32    [2,20,160] ...
  loss ... f32    [1] ...
  greedy_ids ... i32    [1,13] ...

# Bad input.
$ tenon probe --model g --out o.safetensors
tenon: probe: --tokens is missing
  See 'tenon probe --help'.
[exit 2]

$ tenon probe --model g --tokens g/model.safetensors --out p.safetensors
tenon: ...input_ids...
...
[exit 2]

$ tenon probe --model g --tokens g/golden.safetensors --out p.safetensors --grads adapter
tenon: --adapter: gradients of the adapter and training need one
...
[exit 2]

$ tenon probe --model g --tokens g/golden.safetensors --out nowhere/p.safetensors --threads 1
tenon: nowhere/p.safetensors: ...
...
[exit 2]

$ ls p.safetensors
ls: cannot access 'p.safetensors': No such file or directory
[exit 2]
