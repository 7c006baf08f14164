# The report in a browser: it draws everything, says nothing to the console, and needs no network.
[needs command -v chromium]

$ "$TESTS/make_tiny_model" m
$ for i in $(seq 30); do echo "{\"prompt\":\"Say $i\",\"completion\":\" it is </script><b>$i\"}"; done > d.jsonl
$ echo 'common() { tenon train --model m --data d.jsonl --rank 2 --alpha 4 --compute f32 --tokens-per-step 64 --threads 1 --steps 12 --eval-fraction 0.2 --eval-every 4 "$@" 2> /dev/null; }' > common.sh
$ . ./common.sh; common --out a --samples 2; common --out b --lr 1e-3; tenon report a b
report.html

$ "$TESTS/browse_page" --width 1200 a/report.html
a
  Curves
    Loss
    Evaluation loss
    Learning rate
    Gradient norm
    Tokens per second
  Memory of one training step
    Peak: ... in ...
    For the whole run
    Largest at the peak
  Time by kernel
  Data
    Rows by length in tokens
  Samples
  Recipe
6 charts, ... curves
0 console messages

$ "$TESTS/browse_page" --width 390 report.html
2 runs
  Results
  Settings that differ
  Curves
    Loss
    Evaluation loss
    Learning rate
    Gradient norm
    Tokens per second
5 charts, 10 curves
0 console messages
