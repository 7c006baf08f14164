# Input that is wrong: one message with what, where and what to do, exit code 2, and nothing left behind.

$ "$TESTS/make_tiny_model" m; echo '{"prompt":"Say a","completion":" a"}' > d.jsonl
$ cat > break.py <<'END'
> import json, struct, sys, shutil, pathlib
> def model(name):
>     shutil.copytree("m", name); return pathlib.Path(name)
> def tensors(folder):
>     data = (folder / "model.safetensors").read_bytes(); size = struct.unpack("<Q", data[:8])[0]
>     return json.loads(data[8:8 + size]), data[8 + size:]
> def write(folder, header, data, length=None):
>     text = json.dumps(header).encode()
>     (folder / "model.safetensors").write_bytes(struct.pack("<Q", length or len(text)) + text + data)
> def config(name, **changes):
>     path = model(name) / "config.json"; c = json.loads(path.read_text())
>     for key, value in changes.items():
>         if value is None: del c[key]
>         else: c[key] = value
>     path.write_text(json.dumps(c))
> f = model("cut"); p = f / "model.safetensors"; p.write_bytes(p.read_bytes()[:-100])
> f = model("huge"); h, d = tensors(f); write(f, h, d, 2**60)
> f = model("overlap"); h, d = tensors(f); n = sorted(k for k in h if k != "__metadata__"); h[n[0]]["data_offsets"] = h[n[1]]["data_offsets"]; h[n[0]]["shape"] = h[n[1]]["shape"]; write(f, h, d)
> f = model("overflow"); h, d = tensors(f); h["model.norm.weight"]["shape"] = [2**32, 2**32]; write(f, h, d)
> f = model("dtype"); h, d = tensors(f); h["model.norm.weight"]["dtype"] = "C64"; write(f, h, d)
> f = model("integers"); h, d = tensors(f); h["model.norm.weight"]["dtype"] = "I32"; write(f, h, d)
> f = model("nan"); h, d = tensors(f); at = h["model.layers.0.mlp.up_proj.weight"]["data_offsets"][0]; d = bytearray(d); d[at:at + 4] = struct.pack("<f", float("nan")); write(f, h, bytes(d))
> f = model("lacks"); h, d = tensors(f); h["model.other.weight"] = h.pop("model.norm.weight"); write(f, h, d)
> f = model("index"); (f / "model.safetensors").rename(f / "model-00001-of-00002.safetensors"); h, d = tensors(pathlib.Path("m")); (f / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {k: "model-00002-of-00002.safetensors" for k in h if k != "__metadata__"}}))
> config("key", hidden_size=None); config("sizes", hidden_size=48); config("heads", num_key_value_heads=3); config("layers", num_hidden_layers=2**31 - 1); config("negative", vocab_size=-1)
> config("vocab", vocab_size=50)
> f = model("tokens"); h, d = tensors(f); e = h["model.embed_tokens.weight"]; a, b = e["data_offsets"]; gone = 60 * 32 * 4
> e["shape"] = [100, 32]; e["data_offsets"] = [a, b - gone]
> for k, t in h.items():
>     if k != "__metadata__" and t["data_offsets"][0] >= b: t["data_offsets"] = [x - gone for x in t["data_offsets"]]
> write(f, h, d[:b - gone] + d[b:]); p = f / "config.json"; c = json.loads(p.read_text()); c["vocab_size"] = 100; p.write_text(json.dumps(c))
> f = model("text"); (f / "config.json").write_text("{")
> g = pathlib.Path("g"); g.mkdir(); shutil.copy(sys.argv[1] + "/io/reference.gguf", g / "cut.gguf"); (g / "cut.gguf").write_bytes((g / "cut.gguf").read_bytes()[:200])
> data = bytearray(pathlib.Path(sys.argv[1] + "/io/reference.gguf").read_bytes()); data[8:16] = struct.pack("<Q", 2**63); (g / "count.gguf").write_bytes(data)
> END
$ python3 break.py "$TESTS"
$ echo 'try() { tenon train --model "$1" --data "${data:-d.jsonl}" --out r --steps 2 --rank 2 --compute f32 --tokens-per-step 64 --threads 1 "${@:2}" 2>&1 | grep -a -v -e "^model " -e "^data " -e "^adapter " -e "^compute " -e "^memory " -e "^kernels " -e "^step "; echo "exit ${PIPESTATUS[0]}"; }' > try.sh

# Weights
$ . ./try.sh; for model in cut huge overlap overflow dtype integers lacks index; do echo "== $model"; try $model; done
== cut
tenon: cut/model.safetensors: model.norm.weight: the tensor ends at byte 88704 of the data, but the file holds only 88604 bytes of data; it is cut short or damaged
  Download the file again, or write it anew with its maker.
exit 2
== huge
tenon: huge/model.safetensors: not a safetensors file, or cut short: it announces a header of 1152921504606846976 bytes, but has 90901 bytes in all
  Download the file again, or write it anew with its maker.
exit 2
== overlap
tenon: overlap/model.safetensors: model.embed_tokens.weight: 20480 bytes before the tensor belong to none
  Download the file again, or write it anew with its maker.
exit 2
== overflow
tenon: overflow/model.safetensors: model.norm.weight: the shape overflows: [4294967296, 4294967296]
  Download the file again, or write it anew with its maker.
exit 2
== dtype
tenon: dtype/model.safetensors: model.norm.weight: cannot read tensors of dtype C64
  Convert the checkpoint to BF16, F16 or F32.
exit 2
== integers
tenon: integers: model.norm.weight: weights of type i32 are not supported
  Convert the checkpoint to BF16, F16 or F32.
exit 2
== lacks
tenon: lacks: 1 tensor is missing: model.norm.weight
  The file is incomplete, or its configuration describes another model.
exit 2
== index
tenon: index/model.safetensors.index.json: 1 of 1 weight files are missing: model-00002-of-00002.safetensors
  Download the missing files into the same folder.
exit 2

# Values that are not numbers are seen when the weights are loaded.
$ . ./try.sh; try nan
tenon: nan: model.layers.0.mlp.up_proj.weight: the value at row 0, column 0 is not finite
  The file is damaged or the model was saved after it diverged.
exit 2

# Configurations
$ . ./try.sh; for model in key sizes heads layers negative text vocab tokens; do echo "== $model"; try $model; done
== key
tenon: key/config.json: the key 'hidden_size' is missing
  The configuration of this architecture must have it; download the file again or add the key.
exit 2
== sizes
tenon: sizes: model.embed_tokens.weight: its shape is [160, 32], but the configuration asks for [160, 48]
  The configuration and the weights are not of the same model.
exit 2
== heads
tenon: heads/config.json: the key 'num_key_value_heads' must divide num_attention_heads
  Take the config.json that was published with the checkpoint.
exit 2
== layers
tenon: layers/config.json: the key 'num_hidden_layers' is implausibly large
  Take the config.json that was published with the checkpoint.
exit 2
== negative
tenon: negative/config.json: the key 'vocab_size' must be a positive integer, but is -1
  Take the config.json that was published with the checkpoint.
exit 2
== text
tenon: text/config.json:1:2: not valid JSON: syntax error while parsing object key - unexpected end of input; expected string literal
  Correct the file, or download it again if it was cut short.
exit 2
== vocab
tenon: vocab: model.embed_tokens.weight: its shape is [160, 32], but the configuration asks for [50, 32]
  The configuration and the weights are not of the same model.
exit 2
== tokens
tenon: tokens: the tokenizer has 104 ids, but the model has 100 embedding rows
  The tokenizer and the weights are not of the same model.
exit 2

# GGUF
$ . ./try.sh; try g/cut.gguf; try g/count.gguf
tenon: g/cut.gguf: the header announces 17 metadata entries and 4 tensors, which do not fit in 200 bytes
  Download the file again, or write it anew with its maker.
exit 2
tenon: g/count.gguf: the header announces 17 metadata entries and 9223372036854775808 tensors, which do not fit in 1120 bytes
  Download the file again, or write it anew with its maker.
exit 2

# Settings
$ . ./try.sh; try m --rank 0; try m --targets all-linear,q_proj; try m --targets q_porj
tenon: --rank: 0 is out of range: it must be at least 1 and at most 65536
exit 2
tenon: --targets: all-linear already takes every module, so it stands alone
exit 2
tenon: targets: 'q_porj' matches no linear layer of this model
  There are: down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj; or all-linear.
exit 2

# Data
$ . ./try.sh; : > empty.jsonl; printf '{"prompt":"a\xff","completion":"b"}\n' > bytes.jsonl; echo '{"messages":[{"role":"user","content":"x"}]}' > question.jsonl; echo '{"messages":"x"}' > odd.jsonl; echo '{"prompt":"x"' > cut.jsonl
$ . ./try.sh; for data in empty.jsonl bytes.jsonl question.jsonl odd.jsonl cut.jsonl; do echo "== $data"; try m; done
== empty.jsonl
tenon: empty.jsonl: the file holds no row
  Give a file with at least one row of messages or text.
exit 2
== bytes.jsonl
tenon: bytes.jsonl:1: not valid JSON at byte 12 of the row: ...ill-formed UTF-8 byte...
  Convert the file to UTF-8, as with: iconv -f latin1 -t utf-8.
exit 2
== question.jsonl
tenon: question.jsonl: none of 1 rows has a token to train on (0 too long, 1 without an answer inside the limit of 64 tokens)
  Raise the limit of tokens, or look at how the rows are written.
exit 2
== odd.jsonl
tenon: odd.jsonl:1: the row has no known format; its keys are: messages
  Known: messages; ...
exit 2
== cut.jsonl
tenon: cut.jsonl:1: not valid JSON at byte 13 of the row: syntax error while parsing object - unexpected end of input; expected '}'
  Mend the row, or leave it out.
exit 2

# Output
$ . ./try.sh; try m --out d.jsonl/run; try m --out d.jsonl; try m --out /proc/run
tenon: d.jsonl: cannot make the folder: Not a directory
  Name a folder, not a file.
exit 2
tenon: d.jsonl: it is a file
  Name a folder with --out.
exit 2
tenon: /proc/run: cannot make the folder: No such file or directory
  Check the path; a folder in it may be missing.
exit 2

# Token ids beyond the vocabulary
$ tenon detokenize m 5000
tenon: detokenize: id 5000 is outside the vocabulary of 104 tokens
[exit 2]

# Nothing of all this has made a folder.
$ ls -d r
ls: cannot access 'r': No such file or directory
[exit 2]
