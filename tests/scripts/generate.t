$ "$TESTS/make_tiny_model" m
$ tenon generate --model m --prompt 'Say a' --max-new 5 --compute f32 --threads 1 > a; test -s a
$ tenon generate --model m --prompt 'Say a' --max-new 5 --compute f32 --threads 1 | cmp - a
$ tenon generate --model m --prompt 'Say a' --max-new 5 --compute f32 --threads 1 --json
{"prompt":"Say a","text":"...","prompt_tokens":...,"new_tokens":...,"finish_reason":"...","seconds":...}

# Drawing is a function of the seed.
$ draw() { tenon generate --model m --prompt 'Say a' --max-new 8 --compute f32 --threads 1 --temperature 2 --seed "$1"; }; draw 1 > s1; draw 1 | cmp - s1; draw 2 | cmp -s - s1 || echo differs
differs

$ printf '{"q": "Say a"}\n{"q": "Say b"}\n' > p.jsonl
$ tenon generate --model m --prompts p.jsonl --field q --max-new 3 --compute f32 --threads 1 --json | wc -l
2

# Bad input.
$ tenon generate --model m
tenon: --prompt: there is no prompt
  Give --prompt TEXT or --prompts FILE.
[exit 2]

$ tenon generate --model m --prompts p.jsonl --threads 1
tenon: p.jsonl:1: ...
...
[exit 2]

$ tenon generate --model m --prompt x --context 4 --threads 1
tenon: prompt: ... tokens do not fit the context of 4
...
[exit 2]

$ tenon generate --model m --prompt x --threads 1 --without nothing
tenon: --without: 'nothing' is neither a pass nor a kernel
  The passes are fuse_addend, fuse_loss_gradient, fuse_low_rank, recompute_cheap; `tenon kernels` lists the kernels.
[exit 2]

# Matrices in another dtype are another model; the same ones are the same.
$ tenon generate --model m --prompt 'Say a' --max-new 5 --compute f32 --threads 1 --weights f32 | cmp - a
$ tenon generate --model m --prompt 'Say a' --max-new 5 --compute f32 --threads 1 --weights q4
tenon: --weights: ...
...
[exit 2]

$ rm m/chat_template.jinja; tenon generate --model m --prompt x --threads 1
tenon: --template: the model has no chat template
  Name a .jinja file, or give the text as it is with --raw.
[exit 2]

$ tenon generate --model m --prompt x --raw --max-new 1 --compute f32 --threads 1 > /dev/null
