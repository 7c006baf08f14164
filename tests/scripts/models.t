# Which models can be brought, and what each takes.

$ tenon models | grep -c '^llama '
1

# The page is what the command prints.
$ tenon models --markdown | cmp - "$TESTS/../docs/models.md"

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
$ echo '{"model_type": "rwkv"}' > rwkv.json; echo '{"model_type": "abc"}' > abc.json; tenon models rwkv.json abc.json | tail -2
rwkv.json ... the architecture 'rwkv' is not supported: ...
abc.json ... the architecture 'abc' is not supported...

$ tenon models nowhere.json | tail -1
nowhere.json ...
