# Looking at runs: list, show, compare, and event files for TensorBoard.

$ "$TESTS/make_tiny_model" m
$ for i in $(seq 30); do echo "{\"prompt\":\"Say $i\",\"completion\":\" it is $i\"}"; done > d.jsonl
$ echo 'common() { tenon train --model m --data d.jsonl --rank 2 --alpha 4 --compute f32 --tokens-per-step 64 --threads 1 --steps 12 --eval-fraction 0.2 --eval-every 4 "$@" 2> /dev/null; }' > common.sh
$ . ./common.sh; common --out a --tensorboard --samples 2; common --out b; common --out c --lr 1e-3

$ tenon runs list
run  state     steps    loss  eval loss  tokens/s  time  rank      lr  data
a    finished     12  ...  ...  ...  ...     2  0.0002  d.jsonl
b    finished     12  ...  ...  ...  ...     2  0.0002  d.jsonl
c    finished     12  ...  ...  ...  ...     2   0.001  d.jsonl

$ tenon runs list --json | python3 -c 'import json, sys; print([json.loads(l)["run"] for l in sys.stdin])'
['a', 'b', 'c']

$ tenon runs show c
run                c
state              finished
...
digests
...
recipe
  model: m
...
  lr: 0.001
...

$ tenon runs compare a b
what differs  a     b
tensorboard   true  false
samples       2     0
the results are the same, bit for bit

$ tenon runs compare b c
what differs    b ...
lr              0.0002 ...0.001
...
losses differ from step ... on
learning rate, tokens or gradient norms differ from step 1 on

$ ls a/tensorboard | sed 's/[0-9]*\.[0-9]*$//'
events.out.tfevents.

# What is wrong, and where.
$ tenon runs show nowhere
tenon: nowhere: there is no run in this folder
  Name a folder that `tenon train --out` made.
[exit 2]

$ tenon runs compare a
tenon: runs compare: takes two run folders
  See 'tenon runs --help'.
[exit 2]

$ tenon runs find a
tenon: runs: 'find' is not one of list, show, compare
  See 'tenon runs --help'.
[exit 2]

$ mkdir bad; echo '{"event":"step"}' > bad/record.jsonl; tenon runs show bad
tenon: bad/record.jsonl:1: not an event of a run record: ...
[exit 2]

# One damaged run hides no other.
$ tenon runs list 2>&1 | cut -d' ' -f1-2
warning: bad/record.jsonl:1:
run ...
a ...
b ...
c ...

# The steps that were asked for and those that were taken have names of their own.
$ . ./common.sh; common --out d --steps 8; tenon runs compare a d | grep -c '^steps  *12  *8$'; tenon runs compare a d | grep -c '^steps taken  *12  *8$'
1
1
