#!/usr/bin/env python3
"""Packs golden families (tests/golden/README.md) into one small file each.

Weights and the adapter are rounded to small integers times a power of two, and everything else is computed anew
for the rounded model with transformers and peft, in float64: logits, loss, the gradient of every weight, the
adapter's logits and gradients, six AdamW losses, greedy tokens. Of logits and gradients only the norm and 16
fixed random projections are kept. A family is packed only if the same code, on the weights as they are, gives
what its folder says.

    tools/pack_goldens.py GOLDEN_ROOT OUT [FAMILY...]

Needs torch, transformers 5.24, peft 0.21.2, safetensors.
"""
import gc
import json
import os
import shutil
import sys
import tempfile
import warnings

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import save_file

PROMPT, GREEDY, STEPS, PROJECTIONS = 9, 24, 6, 16


def read_tensors(path):
    with safe_open(path, "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def rounded(values):
    """Integers and the exponent that they are multiplied with 2 to the power of: 6 bits, or 8 for vectors."""
    most = 127 if values.ndim < 2 or values.size < 256 else 31
    largest = float(np.abs(values).max()) if values.size else 0.0
    if largest == 0:
        return values.astype(np.int8), 0
    exponent = int(np.ceil(np.log2(largest / most)))
    return np.asarray(np.round(values.astype(np.float64) / 2.0**exponent).clip(-most, most), np.int8), exponent


def signs(count):
    """[16, count] of +-1: the low bits of splitmix64 of the index."""
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    bits = (z[None, :] >> np.arange(PROJECTIONS, dtype=np.uint64)[:, None]) & np.uint64(1)
    return bits.astype(np.float64) * 2 - 1


def projected(values):
    flat = np.asarray(values, dtype=np.float64).ravel()
    return np.concatenate([[np.linalg.norm(flat)], signs(flat.size) @ flat]).astype(np.float32)


def distance(got, want, floor=0.0):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return float(np.linalg.norm(got - want) / (np.linalg.norm(want) + floor + 1e-300))


def worst(got, want):
    floor = 1e-4 * np.sqrt(sum(np.linalg.norm(v.astype(np.float64)) ** 2 for v in want.values()))
    return max((distance(got[k], want[k], floor) for k in want), default=0.0)


ATTENTION = "eager"  # or "sdpa", for families whose eager attention rounds to float32
STAY_DOUBLE = False  # whether Tensor.float() leaves float64 as it is, for families that route in float32
as_float32 = torch.Tensor.float


def as_float(tensor):
    return tensor if STAY_DOUBLE and tensor.dtype == torch.float64 else as_float32(tensor)


torch.Tensor.float = as_float


def load(folder, dtype):
    import transformers

    with open(folder + "/config.json") as file:
        architecture = json.load(file)["architectures"][0]
    make = getattr(transformers, architecture, transformers.AutoModelForCausalLM)
    model = make.from_pretrained(folder, dtype=dtype, attn_implementation=ATTENTION, experts_implementation="eager")
    return model.to(dtype).eval()


def forward(model, ids, labels=None):
    labels = None if labels is None else torch.tensor(labels, dtype=torch.long)
    return model(input_ids=torch.tensor(ids, dtype=torch.long), labels=labels, use_cache=False)


def gradients_by_file(model, scratch, names):
    """Gradients in the names and layouts of the file: the gradients saved as if they were the weights."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    model.save_pretrained(scratch)
    saved = read_tensors(os.path.join(scratch, "model.safetensors"))
    shutil.rmtree(scratch)
    return {name: saved[name] for name in names if name in saved}


def adapter_gradients(model):
    out = {}
    for name, parameter in model.named_parameters():
        if ".lora_" in name and parameter.grad is not None:
            out[name.removeprefix("base_model.model.").replace(".default", "")] = parameter.grad.double().numpy()
    return out


def evaluate(folder, reference, dtype, curve=True):
    """What golden.safetensors and golden.json say, for a folder of weights and an adapter."""
    from peft import PeftModel

    torch.manual_seed(0)
    ids, labels = reference["input_ids"], reference["labels"]
    out = {}
    model = load(folder, dtype)
    result = forward(model, ids, labels)
    out["loss"] = float(result.loss)
    out["logits"] = result.logits.detach().double().numpy()
    result.loss.backward()
    if curve:
        sequence, margins = list(ids[0][:PROMPT]), []
        with torch.no_grad():
            for _ in range(GREEDY):
                best = forward(model, [sequence]).logits[0, -1].topk(2)
                margins.append(float(best.values[0] - best.values[1]))
                sequence.append(int(best.indices[0]))
        out["greedy_ids"], out["greedy_margins"] = np.array([sequence], np.int32), margins
    names = [name.removeprefix("grad.") for name in reference if name.startswith("grad.")]
    out["grad"] = gradients_by_file(model, folder + "/gradients", names)
    del model
    gc.collect()
    model = PeftModel.from_pretrained(load(folder, dtype), folder + "/adapter", is_trainable=True).to(dtype).eval()
    result = forward(model, ids, labels)
    out["lora_loss"] = float(result.loss)
    out["lora_logits"] = result.logits.detach().double().numpy()
    model.zero_grad()
    result.loss.backward()
    out["lora_grad"] = adapter_gradients(model)
    if curve:
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=curve["lr"], betas=tuple(curve["betas"]), eps=curve["eps"],
                                      weight_decay=curve["weight_decay"])
        out["losses"] = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = forward(model, ids, labels).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, curve["max_grad_norm"])
            optimizer.step()
            out["losses"].append(float(loss))
    return out


def check_method(folder, reference, facts):
    """How far this program is from the folder on the folder's own weights."""
    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(folder, work, dirs_exist_ok=True)
        got = evaluate(work, reference, torch.float64, None)
    part = lambda prefix: {k.removeprefix(prefix): v for k, v in reference.items() if k.startswith(prefix)}
    errors = {
        "logits": distance(got["logits"], reference["logits"]),
        "grad": worst(got["grad"], part("grad.")),
        "lora_logits": distance(got["lora_logits"], reference["lora_logits"]),
        "lora_grad": worst(got["lora_grad"], part("lora_grad.")),
    }
    # The reference may round to float32 inside, so that its own numbers move by as much between machines.
    own = {k: facts["float32_error"][k.replace("lora_logits", "logits")] for k in errors}
    bad = {k: v for k, v in errors.items() if not v < max(3e-6, own[k])}
    if bad:
        raise RuntimeError(f"the folder's own numbers are not reproduced: {bad}")


def choose_method(folder, reference, facts):
    global ATTENTION, STAY_DOUBLE
    errors = []
    for ATTENTION, STAY_DOUBLE in [("eager", False), ("sdpa", False), ("eager", True)]:
        try:
            return check_method(folder, reference, facts)
        except (RuntimeError, ValueError) as error:
            errors.append(str(error))
    raise RuntimeError("; ".join(errors))


def pack(folder, out_path):
    reference = read_tensors(folder + "/golden.safetensors")
    facts = json.load(open(folder + "/golden.json"))
    choose_method(folder, reference, facts)
    tensors, exponents = {}, {}
    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(folder, work, dirs_exist_ok=True)
        for part, path in [("model", "model.safetensors"), ("adapter", "adapter/adapter_model.safetensors")]:
            values = read_tensors(f"{folder}/{path}")
            for name, value in values.items():
                if value.dtype.kind != "f":
                    tensors[f"{part}/{name}"] = value
                    continue
                small, exponent = rounded(value)
                tensors[f"{part}/{name}"], exponents[f"{part}/{name}"] = small, exponent
                values[name] = np.asarray(small.astype(np.float64) * 2.0**exponent, dtype=np.float32)
            save_file(values, f"{work}/{path}", {"format": "pt"})
        exact = evaluate(work, reference, torch.float64, facts["lora_train"])
        single = evaluate(work, reference, torch.float32, None)
    names, rows = [], []
    for kind in ["logits", "lora_logits"]:
        names.append(kind), rows.append(projected(exact[kind]))
    for kind in ["grad", "lora_grad"]:
        for name, value in sorted(exact[kind].items()):
            names.append(f"{kind}.{name}"), rows.append(projected(value))
    tensors["projected"] = np.stack(rows)
    for name in ["input_ids", "labels"]:
        tensors[name] = reference[name].astype(np.int32)
    tensors["greedy_ids"] = exact["greedy_ids"]
    golden = {k: exact[k] for k in ["loss", "lora_loss", "greedy_margins"]}
    golden["lora_train"] = {**facts["lora_train"], "losses": exact["losses"]}
    golden["float32_error"] = {
        "logits": max(distance(single[k], exact[k]) for k in ["logits", "lora_logits"]),
        "grad": worst(single["grad"], exact["grad"]),
        "lora_grad": worst(single["lora_grad"], exact["lora_grad"]),
    }
    adapter = json.load(open(folder + "/adapter/adapter_config.json"))
    adapter = {k: v for k, v in adapter.items() if v not in (None, {}, [], False)}
    compact = lambda value: json.dumps(value, separators=(",", ":"))
    metadata = {"config": compact(json.load(open(folder + "/config.json"))), "golden": compact(golden),
                "adapter_config": compact(adapter), "exponents": compact(exponents), "projected": compact(names)}
    save_file(tensors, out_path, metadata)
    return golden["float32_error"]


def main():
    root, out, *families = sys.argv[1:]
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    os.makedirs(out, exist_ok=True)
    for family in families or sorted(os.listdir(root)):
        folder, path = os.path.join(root, family), os.path.join(out, family + ".safetensors")
        if not os.path.isdir(folder) or (not families and os.path.exists(path)):
            continue
        try:
            print(family, pack(folder, path), flush=True)
        except Exception as error:  # one family that does not reproduce must not stop the others
            print(family, "NOT PACKED:", str(error).replace("\n", " ")[:300], flush=True)


if __name__ == "__main__":
    main()
