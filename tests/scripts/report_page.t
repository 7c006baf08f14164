# The report in a browser: it draws everything, says nothing to the console, needs no network, and on a telephone no
# table is cut.
[needs command -v chromium]

$ "$TESTS/make_tiny_model" m
$ for i in $(seq 30); do echo "{\"prompt\":\"Say $i\",\"completion\":\" it is </script><b>$i\"}"; done > d.jsonl
$ tenon train --model m --data d.jsonl --out a --rank 2 --alpha 4 --compute f32 --tokens-per-step 64 --threads 1 --steps 12 --eval-fraction 0.2 --eval-every 4 --samples 2 2> /dev/null

$ "$TESTS/browse_page" --width 390 a/report.html
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
0 tables wider than their place
0 console messages
