#!/usr/bin/env python3
"""What llama.cpp computes on golden families as GGUF files, beside their numbers.

    tools/gguf_reference.py GOLDEN_ROOT [FAMILY ...]

Writes each family of tests/gguf_names.txt with the names, metadata and changes to weights that are stated there
(tools/make_gguf_names.py), runs llama.cpp on it and prints the distance of its logits from the golden's: small where
the layout is the one that llama.cpp reads. Its products are rounded (float16 caches), so that 1e-2 is close. Needs
gguf, numpy, safetensors and llama-cpp-python.
"""
import ctypes
import json
import os
import re
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
        else:
            writer.add_array(key, value)

    for kind, key, first, *rest in lines:
        if kind == "value":
            add(key, json.loads(first))
        elif config.get(first) is not None:
            if kind == "key":
                if not key.endswith("nextn_predict_layers"):
                    add(key, config[first])
            elif kind == "list":
                add(key, [config[first] if kind == rest[0] else 0 for kind in layer_kinds(config)])
            else:
                add(key, config[first] + config[rest[0]] if kind == "sum" else config[first] * config[rest[0]])
    add(name + ".vocab_size", config["vocab_size"])
    rope = config.get("rope_parameters")
    if rope:
        rope = rope.get("full_attention", rope)
        head = config.get("qk_rope_head_dim") or config.get("head_dim") or (
            config["hidden_size"] // config["num_attention_heads"])
        add(name + ".rope.freq_base", float(rope["rope_theta"]))
        add(name + ".rope.dimension_count", int(rope.get("partial_rotary_factor", 1) * head))
        if rope.get("rope_type") == "yarn":
            writer.add_string(name + ".rope.scaling.type", "yarn")
            add(name + ".rope.scaling.factor", rope["factor"])
            add(name + ".rope.scaling.original_context_length", rope["original_max_position_embeddings"])
            add(name + ".rope.scaling.yarn_log_multiplier", 0.1 * rope["mscale_all_dim"])


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


def converted(module, gguf_name, w, actions, c):
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
    leaf = gguf_name.rstrip("!").removesuffix(".bias").split(".")[-1]
    if "permute" in actions and leaf in ("attn_q", "attn_k"):
        w = permute(w, c["num_attention_heads"] if leaf == "attn_q" else c["num_key_value_heads"])
    if "shift" in actions and module.endswith("norm"):
        w = w + 1
    if "regroup" in actions and leaf == "attn_qkv":
        groups = c.get("num_kv_heads", c["num_attention_heads"])
        dim = c["hidden_size"] // c["num_attention_heads"]
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
    stacked = {}
    for tensor, w in load_file(f"{root}/{golden}/model.safetensors").items():
        if config.get("tie_word_embeddings") and tensor == "lm_head.weight":
            continue
        suffix = next((s for s in (".weight", ".bias") if tensor.endswith(s)), "")
        module = tensor.removesuffix(suffix)
        block = re.search(r"\.(?:layers|h)\.(\d+)", module)
        expert = re.search(r"experts\.(\d+)", module)
        general = re.sub(r"experts\.\d+", "experts.E", re.sub(r"\.(layers|h)\.\d+", r".\1.N", module))
        found = names[general]
        for part, values in converted(general, found, w, actions, config):
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
    for target, experts in stacked.items():
        writer.add_tensor(target, np.stack([experts[e] for e in sorted(experts)]).astype(np.float32))
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


def main():
    said = []
    log = lc.llama_log_callback(lambda level, text, _: said.append(text.decode()) if level >= 3 else None)
    lc.llama_backend_init()
    lc.llama_log_set(log, ctypes.c_void_p(0))
    root, wanted = sys.argv[1], sys.argv[2:]
    for family in read_families():
        if wanted and family[0] not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            said.clear()
            title = f"{family[0]} as {family[1]} ({' '.join(sorted(family[2]))})"
            try:
                write_gguf(folder + "/m.gguf", root, family)
                golden = load_file(f"{root}/{family[0]}/golden.safetensors")
                got = logits(folder + "/m.gguf", golden["input_ids"])
            except Exception as error:
                print(f"{title}: {error!r}")
                continue
            if got is None:
                print(f"{title}: not loaded: {' '.join(said)[-300:].strip()}")
                continue
            want = golden["logits"]
            print(f"{title}: {np.linalg.norm(got - want) / np.linalg.norm(want):.1e}", flush=True)


if __name__ == "__main__":
    main()
