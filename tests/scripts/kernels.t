$ tenon kernels
..., ... threads, ...

op ... kernel ... dtypes ... deterministic
...
matmul ...
...

$ tenon kernels --json | python3 -c 'import json, sys; k = json.load(sys.stdin)["kernels"]; print({"op", "kernel", "dtypes", "deterministic"} <= set(k[0]), all(r["deterministic"] for r in k))'
True True

# Every kernel in the list serves something; those that cannot on this machine are named apart.
$ tenon kernels --json | python3 -c 'import json, sys; out = json.load(sys.stdin); print(all(k["dtypes"] for k in out["kernels"]), {k["kernel"] for k in out["kernels"]} & set(out["not_here"]))'
True set()

$ tenon kernels matmul
tenon: kernels: unexpected argument 'matmul'
  See 'tenon kernels --help'.
[exit 2]
