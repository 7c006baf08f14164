# Which models can be brought, and what each takes.

$ tenon models | grep -c '^llama '
1

# The page is what the command prints, over the published configurations too where they are at hand.
$ tenon models --markdown > page; c="$TESTS/../../shared/data/configs"; if test -d "$c"; then tenon models --markdown "$c"/*; else echo; sed -n '/^## Published models/,$p' "$TESTS/../docs/models.md"; fi >> page; cmp page "$TESTS/../docs/models.md"

# A model of 671 billion parameters is planned in under a second of the processor's time.
$ c="$TESTS/../../shared/data/configs/DeepSeek-V3"; if test -d "$c"; then python3 -c 'import resource, subprocess, sys; subprocess.run(["tenon", "models", sys.argv[1] + "/config.json"], capture_output=True, check=True); r = resource.getrusage(resource.RUSAGE_CHILDREN); print(r.ru_utime < 1)' "$c"; else echo True; fi
True

# From the configuration alone: no weights are read.
$ "$TESTS/make_tiny_model" m
$ cp m/config.json only.json; tenon models only.json | tail -1
only.json  llama ...

# Keys that change no arithmetic are known as such; a switch among them must be off.
$ sed '1s/{/{"cache_implementation": "hybrid", "use_mrope": false, /' only.json > off.json; tenon models off.json | tail -1
off.json  llama ...
$ sed '1s/{/{"use_mrope": true, /' only.json > on.json; tenon models on.json | tail -1
on.json ... the key 'use_mrope' must be false for this architecture...

# What is known and left out is refused with the reason; so is what is not known.
$ echo '{"model_type": "minicpm"}' > out.json; echo '{"model_type": "abc"}' > abc.json; tenon models out.json abc.json | tail -2
out.json ... the architecture 'minicpm' is not supported: ...
abc.json ... the architecture 'abc' is not supported...

# Forms of an architecture that are not built are refused by the key that asks for them.
$ x='"model_type": "xlstm", "hidden_size": 64, "num_heads": 4, "num_blocks": 2, "vocab_size": 96'; echo "{$x}" > x.json; echo "{$x, \"weight_mode\": \"fused\"}" > fused.json; echo "{$x, \"qk_dim_factor\": 0.3}" > part.json; tenon models x.json fused.json part.json | tail -3
x.json ... xlstm ... 2 mLSTM ...
fused.json ... the key 'weight_mode' must be 'single' ...
part.json ... the key 'qk_dim_factor' times hidden_size must be a multiple of num_heads ...

$ tenon models nowhere.json | tail -1
nowhere.json ...
