$ tenon kernels
..., ... threads, ...

op ... kernel ... dtypes ... deterministic
...
matmul ...
...

$ tenon kernels --json | python3 -c 'import json, sys; k = json.load(sys.stdin)["kernels"]; print({"op", "kernel", "dtypes", "deterministic"} <= set(k[0]), all(r["deterministic"] for r in k))'
True True

$ tenon kernels matmul
tenon: kernels: unexpected argument 'matmul'
  See 'tenon kernels --help'.
[exit 2]
