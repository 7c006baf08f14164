# Speed on random tokens. Figures differ from run to run; what they are and their relations do not.

$ "$TESTS/make_tiny_model" m
$ tenon bench train --model m --batch 2 --seq 16 --rank 2 --steps 2 --threads 1 --compute f32 --json > t
$ python3 -c 'import json; b = json.load(open("t")); print(b["tool"], b["dtype"], b["batch"] * b["seq"], len(b["losses"]), b["tokens_per_second"] > 0, b["best_tokens_per_second"] >= b["tokens_per_second"], b["start_to_first_step_seconds"] > 0, b["peak_rss_gib"] > 0, 0 < b["share_of_ceiling"] < 1)'
tenon f32 32 4 True True True True True

# The losses are those of a model that knows nothing, and the same again.
$ tenon bench train --model m --batch 2 --seq 16 --rank 2 --steps 2 --threads 1 --compute f32 --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["losses"] == json.load(open("t"))["losses"])'
True

# Computing blocks again changes no bit of them.
$ tenon bench train --model m --batch 2 --seq 16 --rank 2 --steps 2 --threads 1 --compute f32 --checkpointing --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["losses"] == json.load(open("t"))["losses"])'
True

$ tenon bench generate --model m --prompt 20 --new 4 --streams 2 --repeat 1 --threads 1 --compute f32 --json > g
$ python3 -c 'import json; b = json.load(open("g")); print(b["streams"], b["type"], b["prefill_tokens_per_second"] > 0, b["decode_tokens_per_second"] > 0, b["weight_bytes"] > 0)'
2 as-is True True True

$ tenon bench train --model m --batch 1 --seq 8 --rank 2 --steps 1 --threads 1 --kernel-times
tool ... tenon
...
tokens per second ...
...
...ms  of all  calls  GFLOP/s  GB/s  of ceiling  kernel ... types
...

$ tenon bench kernels --op rope --seconds 0 --threads 1
tool ...
...
op    case ... us  GFLOP/s  GB/s  of ceiling  kernel ... types
rope ... rope_vector ...
...

$ tenon bench kernels --op nothing
tenon: --op: no case measures the op 'nothing'
  There are: matmul, ...
[exit 2]

$ tenon bench
tenon: bench: ...
...
[exit 2]

$ tenon bench swim
tenon: WORK: 'swim' cannot be measured
  Say train, generate or kernels.
[exit 2]

$ tenon bench train
tenon: --model: either a model or a configuration for random weights is to run
  Name a folder or a GGUF file with --model, or a config.json with --random.
[exit 2]

$ tenon bench train --model m --seq 1
tenon: --seq: ...
...
[exit 2]

# Random weights for a configuration: a model that knows nothing loses about log(vocabulary).
$ tenon bench train --random m/config.json --batch 2 --seq 16 --rank 2 --steps 2 --threads 1 --compute f32 --json | python3 -c 'import json, math, sys; loss = json.load(sys.stdin)["losses"][0]; print(abs(loss - math.log(json.load(open("m/config.json"))["vocab_size"])) < 0.5)'
True
$ tenon bench train --random m/config.json --model m
tenon: --model: either a model or a configuration for random weights is to run
...
[exit 2]

# Every case has a count of instructions to be compared with (bench/instructions).
$ "$TESTS/../bench/instructions" --tenon "$(command -v tenon)" --names
