# A template that asks for the time is told one that is recorded.

$ "$TESTS/make_tiny_model" m
$ echo '{% for m in messages %}{{ m.role }} {{ strftime_now("%H:%M:%S %d %b %Y") }}: {{ m.content }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}assistant {{ strftime_now("%H:%M:%S %d %b %Y") }}:{% endif %}' > t.jinja
$ echo '{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}' > d.jsonl
$ echo 'run() { tenon train --model m --data d.jsonl --template t.jinja --rank 2 --alpha 4 --compute f32 --tokens-per-step 128 --threads 1 --steps 3 "$@" 2> /dev/null; }' > run.sh
$ . ./run.sh; run --out a; run --out b --clock 2024-07-26T12:34:56Z; grep clock b/recipe.yaml
clock: "2024-07-26T12:34:56Z"

# The start of the run, where none is given; a replay and a resumed run take the recorded one.
$ grep clock a/recipe.yaml
clock: "20...T...Z"

$ sleep 1; tenon replay a; tenon replay b
The first 3 steps are the same, bit for bit.
The first 3 steps are the same, bit for bit.

$ tenon train --resume a --steps 5 2> /dev/null; grep -c '"loss"' a/record.jsonl; tenon train --resume a --clock 2024-01-01 --steps 6
5
...
tenon: a: it would not be the same run: --clock was '20...Z' and is '2024-01-01'
  Put it back as it was, or begin another run with --out.
[exit 2]

# Another time is another text.
$ . ./run.sh; run --out c --clock 2025-07-26T12:34:57Z; cmp -s b/adapter/adapter_model.safetensors c/adapter/adapter_model.safetensors || echo differs
differs

$ tenon inspect template m d.jsonl --template t.jinja --clock 2024-07-26T14:34:56+02:00 --json | python3 -c 'import json, sys; f = json.load(sys.stdin); print(f["training_text"]); print(f["prompt_text"])'
user 14:34:56 26 Jul 2024: q</s>assistant 14:34:56 26 Jul 2024: a</s>
user 14:34:56 26 Jul 2024: q</s>assistant 14:34:56 26 Jul 2024:

$ tenon train --model m --data d.jsonl --template t.jinja --out d --clock noon
tenon: --clock: 'noon' is not a time
  Write it as 2024-07-26T12:34:56Z.
[exit 2]

# A template that never asks records none.
$ echo '{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}' > plain.jinja
$ tenon train --model m --data d.jsonl --template plain.jinja --out e --train-on all --rank 2 --tokens-per-step 128 --steps 1 --threads 1 2> /dev/null; grep clock e/recipe.yaml
clock: ""
