# A GPU that is too small for a run is known before anything is loaded, with what would fit.
[needs tenon kernels --device cuda | grep '^emulated GPU']

$ "$TESTS/make_tiny_model" m
$ tenon generate --model m --device cuda --raw --prompt hi --context 33554432
tenon: emulated GPU: ... are needed, ... more than the 4.00 GiB that are free
  This fits: --context ...
[exit 3]
