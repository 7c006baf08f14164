# The report: written by the run, and again on request; several runs on one page.
# tests/scripts/report_page.t opens it in a browser.

$ "$TESTS/make_tiny_model" m
$ for i in $(seq 30); do echo "{\"prompt\":\"Say $i\",\"completion\":\" it is $i\"}"; done > d.jsonl
$ echo 'common() { tenon train --model m --data d.jsonl --rank 2 --alpha 4 --compute f32 --tokens-per-step 64 --threads 1 --steps 12 --eval-fraction 0.2 --eval-every 4 "$@" 2> /dev/null; }' > common.sh
$ . ./common.sh; common --out a --samples 2; common --out b; common --out c --lr 1e-3
$ grep -c '<!doctype html>' a/report.html; grep -o 'https*://[^"]*' a/report.html | grep -v w3.org
1
[exit 1]

$ tenon report a; tenon report a b c --out three.html; tenon report a b
a/report.html
three.html
report.html

$ tenon report nowhere
tenon: nowhere: there is no run in this folder
  Name a folder that `tenon train --out` made.
[exit 2]
