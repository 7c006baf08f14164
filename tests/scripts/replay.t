# The first steps of a run, computed again.

$ "$TESTS/make_tiny_model" m
$ for i in $(seq 30); do echo "{\"prompt\":\"Say $i\",\"completion\":\" it is $i\"}"; done > d.jsonl
$ echo 'common() { tenon train --model m --data d.jsonl --rank 2 --alpha 4 --compute f32 --tokens-per-step 64 --threads 1 --steps 12 --eval-fraction 0.2 --eval-every 4 "$@" 2> /dev/null; }' > common.sh
$ . ./common.sh; common --out a; common --out b; common --out c --lr 1e-3
$ tenon replay a --steps 5
The first 5 steps are the same, bit for bit.

$ sed 's/"loss":[0-9.]*/"loss":1.5/' -i b/record.jsonl; tenon replay b
tenon: b: step 1 differs: its loss was 1.5 and is now ...
  Another build or machine may round differently; on the same ones this is a bug.
[exit 1]

$ echo '{"prompt":"x","completion":" y"}' >> d.jsonl; tenon replay c
tenon: c: data is not the one that the run was made with
  Put it back as it was: another file gives other bits.
[exit 2]

$ tenon replay nowhere
tenon: nowhere/record.jsonl: cannot read the run record: No such file or directory
[exit 2]
