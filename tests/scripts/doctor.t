# The facts of this machine, in the form that `tenon plan --facts` takes.

$ tenon doctor env --threads 1 > here.json
$ python3 -c 'import json; f = json.load(open("here.json")); print(f["kind"], f["threads"], f["gflops_f32"] > 0, f["gigabytes_per_second"] > 0, "measured" in f["source"])'
cpu 1 True True True

$ "$TESTS/make_tiny_model" m
$ tenon plan --model m --tokens-per-step 64 --rank 2 --facts here.json | tail -1
It fits: ...

$ tenon doctor lungs
tenon: WHAT: 'lungs' cannot be examined
  Say env.
[exit 2]
