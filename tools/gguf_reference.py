#!/usr/bin/env python3
"""What llama.cpp computes on golden families as GGUF files, beside their numbers.

    tools/gguf_reference.py [--tenon BINARY] GOLDEN_ROOT [FAMILY ...]

Writes each family of tests/gguf_names.txt with the names, metadata and changes to weights that are stated there
(tools/make_gguf_names.py), runs llama.cpp on it and prints the distance of its logits from the golden's, and from those
that `tenon probe` gives for the same file: about 1e-6 where the layout is the one that llama.cpp reads. docs/gguf.md
says why some are not. Needs gguf, numpy, safetensors and llama-cpp-python.
"""
import argparse
import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

import gguf
import llama_cpp as lc
import numpy as np
from safetensors.numpy import load_file


def read_families():
    families = []
    for line in open(os.path.join(os.path.dirname(__file__), "../tests/gguf_names.txt")):
        kind, *words = line.split()
        if kind == "family":
            families.append((words[0], words[1], set(words[2:]), {}, []))
        elif kind == "name":
            families[-1][3][words[0]] = words[1]
        elif kind != "#":
            families[-1][4].append((kind, *words))
    return families


def layer_kinds(config):
    if "attn_layer_period" in config:
        return ["full_attention" if i % config["attn_layer_period"] == config["attn_layer_offset"] else "mamba"
                for i in range(config["num_hidden_layers"])]
    return config.get("layer_types") or config.get("layers_block_type")


def setting(config, key):
    for part in key.split("."):
        config = config.get(part) if config else None
    return config


def first_of(config, *keys):
    return next(config[key] for key in keys if config.get(key) is not None)


def add_metadata(writer, name, config, lines):
    added = set()

    def add(key, value):
        if key in added:
            return
        added.add(key)
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_array(key, value)

    for kind, key, first, *rest in lines:
        if kind == "value":
            add(key, json.loads(first))
        elif setting(config, first) is not None:
            if kind == "key":
                if not key.endswith("nextn_predict_layers"):
                    add(key, setting(config, first))
            elif kind == "flags":
                add(key, [each == rest[0] for each in config[first]])
            elif kind == "sections":
                add(key, (setting(config, first) + [0, 0])[:4])
            elif kind == "quantiles":
                add(key, [float(statistics.NormalDist().inv_cdf(each)) if each else -float("inf") for each in config[first]])
            elif kind == "list":
                add(key, [config[first] if kind == rest[0] else 0 for kind in layer_kinds(config)])
            else:
                add(key, config[first] + config[rest[0]] if kind == "sum" else config[first] * config[rest[0]])
    add(name + ".vocab_size", config["vocab_size"])
    rope = config.get("rope_parameters")
    if rope:
        rope = rope.get("full_attention", rope)
        head = config.get("qk_rope_head_dim") or config.get("head_dim") or (
            first_of(config, "hidden_size", "d_model") // first_of(config, "num_attention_heads", "n_heads"))
        add(name + ".rope.freq_base", float(rope["rope_theta"]))
        add(name + ".rope.dimension_count", int(rope.get("partial_rotary_factor", 1) * head))
        if rope.get("rope_type") == "yarn":
            writer.add_string(name + ".rope.scaling.type", "yarn")
            add(name + ".rope.scaling.factor", rope["factor"])
            add(name + ".rope.scaling.original_context_length", rope["original_max_position_embeddings"])
            if "mscale_all_dim" in rope:
                add(name + ".rope.scaling.yarn_log_multiplier", 0.1 * rope["mscale_all_dim"])


def llama3_factors(config):
    rope = config["rope_parameters"]
    dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    waves = 2 * np.pi * rope["rope_theta"] ** (np.arange(0, dim, 2) / dim)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    smooth = np.clip((rope["original_max_position_embeddings"] / waves - low) / (high - low), 0, 1)
    return (1 / ((1 - smooth) / rope["factor"] + smooth)).astype(np.float32)


def permute(w, heads):
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def multiply(module, w, c):
    """Falcon-H1's multipliers."""
    by = {"gate_proj": c["mlp_multipliers"][0], "down_proj": c["mlp_multipliers"][1],
          "q_proj": c["attention_in_multiplier"], "v_proj": c["attention_in_multiplier"],
          "k_proj": c["attention_in_multiplier"] * c["key_multiplier"], "o_proj": c["attention_out_multiplier"],
          "out_proj": c["ssm_out_multiplier"], "lm_head": c["lm_head_multiplier"],
          "embed_tokens": c["embedding_multiplier"]}.get(module.split(".")[-1], 1)
    if module.endswith("mamba.in_proj"):
        states = c["mamba_n_groups"] * c["mamba_d_state"]
        rows = [c["mamba_d_ssm"]] * 2 + [states] * 2 + [c["mamba_n_heads"]]
        by = (np.repeat(c["ssm_multipliers"], rows) * c["ssm_in_multiplier"])[:, None]
    return (w * by).astype(np.float32)


def tile(module, w, c):
    """Heads of values, from all of a key head to the first of every key, the second of every key ..."""
    part, heads, keys = module.split(".")[-1], c["linear_num_value_heads"], c["linear_num_key_heads"]
    order = np.arange(heads).reshape(keys, -1).T.ravel()
    dim = 1 if part in ("in_proj_a", "in_proj_b", "A_log", "dt_bias") else c["linear_value_head_dim"]
    order = (order[:, None] * dim + np.arange(dim)).ravel()
    if part == "out_proj":
        return w[:, order]
    first = 2 * keys * c["linear_key_head_dim"] if part in ("in_proj_qkv", "conv1d") else 0
    return np.concatenate([w[:first], w[first:][order]]) if part != "norm" else w


def converted(module, suffix, gguf_name, w, actions, c):
    """Pairs of a GGUF name without its suffix, and values."""
    part = module.split(".")[-1]
    if "split" in actions and ".experts." in module:
        if part == "gate_up_proj":
            w = w.swapaxes(1, 2)
            return [("ffn_gate_exps.weight", w[:, 0::2]), ("ffn_up_exps.weight", w[:, 1::2])]
        if part == "gate_up_proj_bias":
            return [("ffn_gate_exps.bias", w[:, 0::2]), ("ffn_up_exps.bias", w[:, 1::2])]
        return [("ffn_down_exps.weight", w.swapaxes(1, 2)) if part == "down_proj" else ("ffn_down_exps.bias", w)]
    if "absorb" in actions and part == "kv_b_proj":
        w = w.reshape(c["num_attention_heads"], -1, w.shape[-1])
        nope = c["qk_nope_head_dim"]
        return [("attn_k_b.weight", w[:, :nope].swapaxes(1, 2)), ("attn_v_b.weight", w[:, nope:])]
    if "halves" in actions and ".experts." in module:
        w = w.swapaxes(1, 2)
        if part == "down_proj":
            return [("ffn_down_exps.weight", w)]
        half = w.shape[1] // 2
        return [("ffn_gate_exps.weight", w[:, :half]), ("ffn_up_exps.weight", w[:, half:])]
    if "rows" in actions and part == "input_linear":
        half, kind = w.shape[-2] // 2, "_shexp.weight" if "shared" in module else "_exps.weight"
        return [("ffn_gate" + kind, w[..., :half, :]), ("ffn_up" + kind, w[..., half:, :])]
    if "qkvz" in actions and part == "in_proj_qkvz":
        keys, dim = c["linear_num_key_heads"], c["linear_key_head_dim"]
        by_key = w.reshape(keys, -1, w.shape[-1])
        values = (by_key.shape[1] - 2 * dim) // 2
        q, k, v, z = (x.reshape(-1, w.shape[-1]) for x in np.split(by_key, (dim, 2 * dim, 2 * dim + values), 1))
        return [("attn_qkv.weight", np.concatenate([q, k, v])), ("attn_gate.weight", z)]
    if "tiled" in actions and ".linear_attn." in module:
        w = tile(module, w, c)
    if "turn" in actions and w.ndim == 2 and part in ("c_attn", "c_proj", "c_fc"):
        w = w.T
    if "cut" in actions and ".experts." in module:
        w = w.reshape(c["ffn_config"]["moe_num_experts"], -1, w.shape[-1])
        w = w.swapaxes(1, 2) if part == "w2" else w
    leaf = gguf_name.rstrip("!").removesuffix(".bias").split(".")[-1]
    if "permute" in actions and leaf in ("attn_q", "attn_k"):
        w = permute(w, c["num_attention_heads"] if leaf == "attn_q" else c["num_key_value_heads"])
    if "shift" in actions and suffix == ".weight" and module.endswith("norm") and ".linear_attn." not in module:
        w = w + 1
    if "regroup" in actions and leaf == "attn_qkv":
        heads = first_of(c, "num_attention_heads", "n_head")
        groups, dim = c.get("num_kv_heads", heads), c["hidden_size"] // heads
        by_group = w.reshape(groups, -1, dim, *w.shape[1:])
        w = np.concatenate([x.reshape(-1, *w.shape[1:]) for x in (by_group[:, :-2], by_group[:, -2], by_group[:, -1])])
    if "scan" in actions:
        if leaf == "ssm_a":
            w = -np.exp(w)
        if leaf in ("conv", "ssm_conv1d") and w.ndim == 3:
            w = w[:, 0]
        if "heads" in actions and leaf in ("ssm_a", "ssm_d"):
            w = w[:, None]
        if "heads" in actions and leaf == "ssm_norm":
            w = w.reshape(c.get("n_groups") or c["mamba_n_groups"], -1)
    if "multiply" in actions:
        w = multiply(module, w, c)
    return [(None, w)]


def write_gguf(path, root, family):
    golden, name, actions, names, lines = family
    config = json.load(open(f"{root}/{golden}/config.json"))
    if config.get("new_decoder_architecture") is False:
        config["num_kv_heads"] = 1
    writer = gguf.GGUFWriter(path, name)
    writer.add_tokenizer_model("no_vocab")
    add_metadata(writer, name, config, lines)
    stacked, streams, lists = {}, {}, {}
    for tensor, w in load_file(f"{root}/{golden}/model.safetensors").items():
        if config.get("tie_word_embeddings") and tensor == "lm_head.weight":
            continue
        suffix = next((s for s in (".weight", ".bias") if tensor.endswith(s)), "")
        module = tensor.removesuffix(suffix)
        block = re.search(r"\.(?:layers|h|blocks)\.(\d+)", module)
        expert = re.search(r"experts\.(\d+)", module)
        if "streams" in actions and (found := re.match(r"model\.altup_(proj|unembed_proj)ections\.(\d+)", module)):
            target = {"proj": "altup_proj.weight", "unembed_proj": "altup_unembd_proj.weight"}[found[1]]
            streams.setdefault(target, {})[int(found[2])] = w
            continue
        if "listed" in actions and ".act_fn." in module:
            lists.setdefault("xielu." + module.split(".")[-1], {})[int(block[1])] = float(w.ravel()[0])
            continue
        general = re.sub(r"experts\.\d+", "experts.E", re.sub(r"\.(layers|h|blocks)\.\d+", r".\1.N", module))
        found = names[general]
        for part, values in converted(general, suffix, found, w, actions, config):
            if part:
                target = f"blk.{block[1]}.{part}"
            else:
                target = found.replace("blk.N", f"blk.{block[1]}") if block else found
                if not target.endswith((".bias", "!")):
                    target += suffix or ".weight"
                target = target.rstrip("!")
            if expert:
                stacked.setdefault(target, {})[int(expert[1])] = values
            else:
                if target.endswith(".bias") and values.ndim == 2 and values.shape[0] == 1:
                    values = values[0]
                writer.add_tensor(target, np.ascontiguousarray(values, np.float32))
    for key, values in lists.items():
        writer.add_array(key, [values[layer] for layer in sorted(values)])
    for target, experts in (stacked | streams).items():
        writer.add_tensor(target, np.stack([experts[e] for e in sorted(experts)]).astype(np.float32))
    if (config.get("rope_parameters") or {}).get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def logits(path, sequences):
    model = lc.llama_model_load_from_file(path.encode(), lc.llama_model_default_params())
    if not model:
        return None
    params = lc.llama_context_default_params()
    params.n_ctx, params.n_threads, params.n_threads_batch = 256, 1, 1
    params.type_k = params.type_v = 0
    params.flash_attn_type = lc.LLAMA_FLASH_ATTN_TYPE_DISABLED  # it rounds to float16
    context = lc.llama_init_from_model(model, params)
    vocab = lc.llama_vocab_n_tokens(lc.llama_model_get_vocab(model))
    out = []
    for ids in sequences:
        lc.llama_memory_clear(lc.llama_get_memory(context), True)
        batch = lc.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = int(token), i, 1, True
            batch.seq_id[i][0] = 0
        assert lc.llama_decode(context, batch) == 0
        out.append([np.ctypeslib.as_array(lc.llama_get_logits_ith(context, i), (vocab,)).copy() for i in range(len(ids))])
    lc.llama_free(context)
    lc.llama_model_free(model)
    return np.array(out)


def distance(got, want):
    return f"{np.linalg.norm(got - want) / np.linalg.norm(want):.1e}"


def tenon_logits(tenon, path, tokens):
    out = path + ".safetensors"
    ran = subprocess.run([tenon, "probe", "--model", path, "--tokens", tokens, "--out", out, "--compute", "f32"],
                         capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(ran.stderr.strip())
    return load_file(out)["logits"]


def compare(family, root, tenon):
    said = []
    log = lc.llama_log_callback(lambda level, text, _: said.append(text.decode()) if level >= 3 else None)
    lc.llama_backend_init()
    lc.llama_log_set(log, ctypes.c_void_p(0))
    tokens = f"{root}/{family[0]}/golden.safetensors"
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/m.gguf"
        write_gguf(path, root, family)
        golden = load_file(tokens)
        got = logits(path, golden["input_ids"])
        if got is None:
            return f"not loaded: {' '.join(said)[-300:].strip()}"
        beside = f", tenon {distance(tenon_logits(tenon, path, tokens), got)}" if tenon else ""
        return f"golden {distance(got, golden['logits'])}{beside}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tenon", help="the program, to compare its logits too")
    parser.add_argument("--row", type=int, help="one family, by its place in the list")
    parser.add_argument("root")
    parser.add_argument("families", nargs="*")
    args = parser.parse_args()
    families = read_families()
    if args.row is not None:
        return print(compare(families[args.row], args.root, args.tenon))
    for row, family in enumerate(families):
        if args.families and family[0] not in args.families:
            continue
        # A process for each, since llama.cpp ends on what it does not expect.
        command = [sys.executable, __file__, "--row", str(row), args.root]
        command += ["--tenon", args.tenon] if args.tenon else []
        ran = subprocess.run(command, capture_output=True, text=True)
        said = ran.stdout.strip() if ran.returncode == 0 else f"ended: {ran.stderr.strip().splitlines()[-1]}"
        print(f"{family[0]} as {family[1]} ({' '.join(sorted(family[2]))}): {said}", flush=True)


if __name__ == "__main__":
    main()
