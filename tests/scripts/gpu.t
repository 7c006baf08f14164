# The GPU's device, emulated: what is said of one that cannot be used, that fails, that is too small; which kernels
# attention gets. Skipped where the build has no such device.
[needs tenon kernels --device cuda | grep '^emulated GPU']

$ "$TESTS/make_tiny_model" m

# One message and exit code 2 for a machine that cannot run it.
$ TENON_EMULATED_FAULT=no-driver tenon kernels --device cuda
tenon: --device cuda: no CUDA driver is loaded here
  Run on a machine with an NVIDIA GPU.
[exit 2]

$ TENON_EMULATED_FAULT=old-driver tenon kernels --device cuda
tenon: --device cuda: the driver serves CUDA up to 12.4, this program needs 13.0
  Update the NVIDIA driver.
[exit 2]

$ TENON_EMULATED_FAULT=architecture tenon kernels --device cuda
tenon: emulated GPU: this build has no code for sm_60
  Build with its architecture in CMAKE_CUDA_ARCHITECTURES.
[exit 2]

$ tenon kernels --device cuda:7
tenon: --device: there is no device 7: 1 visible
[exit 2]

# Every op that needs a kernel has one.
$ tenon kernels --device cuda --json | python3 -c 'import json, sys; print(len({k["op"] for k in json.load(sys.stdin)["kernels"] if k["dtypes"]}) > 70)'
True

# Kernels of attention by name: in the plan, and refused with the reason.
$ tenon plan --model m --tokens-per-step 64 --rank 2 --device cuda --compute bf16 | grep -E '^(context|attention)'
context ... of the driver and its libraries, beside the plan
attention ... attention_warpgroup, attention_grad_warpgroup

$ tenon plan --model m --tokens-per-step 64 --rank 2 --device cuda --compute bf16 --attention rows | grep ^attention
attention ... attention_rows, attention_grad_rows

$ tenon plan --model m --tokens-per-step 64 --rank 2 --device cuda --compute f32 --attention flash
tenon: ...: no kernel serves it on emulated GPU: attention_rows is forbidden; attention_flash serves other types, attributes or devices; ...
[exit 2]

$ tenon plan --model m --device cuda --attention cudnn
tenon: --attention: no attention kernel of this device is called 'cudnn'
  There are: ...
[exit 2]

# A plan for a GPU that is not here.
$ tenon plan --model m --tokens-per-step 64 --rank 2 --facts "$TESTS/../facts/h200.json" | tail -1
It fits: ... of 139.40 GiB.

$ tenon doctor env --device cuda > emulated.json; tenon plan --model m --tokens-per-step 64 --facts emulated.json | tail -1
It fits: ...

$ python3 -c 'import json; f = json.load(open("emulated.json")); print(f["kind"], f["name"], f["gflops_f32"] > 0, f["source"][:17])'
cuda emulated GPU True tenon doctor env,

# A failure names the step, the kernel and its sizes; the run ends with its last checkpoint whole.
$ printf '{"prompt": "one", "completion": "two"}\n{"prompt": "three", "completion": "four"}\n' > rows.jsonl
$ echo 'tenon train --model m --data rows.jsonl --out "$1" --steps 4 --tokens-per-step 32 --rank 2 --device cuda --compute f32 --checkpoint-every 1 "${@:2}"' > train.sh
$ TENON_EMULATED_FAULT=adamw:29 bash train.sh lost --graphs off 2>&1 | tail -4
...
tenon: ...: kernel adamw(f32[...: it failed: the device was lost (emulated)
...
[exit 1]

$ TENON_EMULATED_FAULT=adamw:29 bash train.sh lost2 2>&1 | grep -E 'one of|graphs off'
tenon: graph: one of ... kernels failed, from ...: kernel ... to ...: the device was lost (emulated)
... --graphs off names the kernel...
[exit 1]

# The run that is gone on with after a failed graph names the kernel with graphs off.
$ TENON_EMULATED_FAULT=adamw:1 tenon train --resume lost2 --graphs off 2>&1 | grep -A2 'it failed'
tenon: ...: kernel adamw(f32[...: it failed: the device was lost (emulated)
  What was saved before it is whole; the process must end to use the device again.
  Then `tenon train --resume lost2` goes on from step 1.
[exit 1]

# On from there, to the bits of a run that nothing disturbed.
$ bash train.sh whole > /dev/null 2>&1; tenon train --resume lost > /dev/null 2>&1; cmp lost/adapter/adapter_model.safetensors whole/adapter/adapter_model.safetensors && echo same
same
