#!/usr/bin/env python3
"""Writes tests/gguf_names.txt: what llama.cpp's converter makes of each golden family.

Tensor names come from the Python package `gguf` (tensor_mapping.py, by the names in the golden's weights), metadata
keys from its constants.py. What the converter does to weights (convert_hf_to_gguf.py) is stated here, by family.

    tools/make_gguf_names.py GOLDEN_ROOT > tests/gguf_names.txt

Needs gguf 0.19 and safetensors. Lines: `family GOLDEN ARCHITECTURE ACTION...`, then `name MODULE GGUF`, where N is a
block and E an expert, and `key GGUF CONFIG` for metadata that is a key of config.json.
"""
import json
import re
import sys

from gguf.constants import MODEL_ARCH_NAMES, Keys
from gguf.tensor_mapping import get_tensor_name_map
from safetensors import safe_open

# permute: rows of q and k to neighbouring pairs. shift: 1 added to norms. stack: experts one after the other.
# split: gate and up of stacked experts, columns alternating, transposed (gpt-oss).
FAMILIES = [
    ("llama", "llama", "permute"), ("mixtral", "llama", "permute stack"), ("qwen25_tied", "qwen2", ""),
    ("qwen3", "qwen3", ""), ("qwen2_moe", "qwen2moe", "stack"), ("qwen3_moe", "qwen3moe", "stack"),
    ("gemma", "gemma", "shift"), ("gemma2", "gemma2", "shift"), ("gemma3", "gemma3", "shift"), ("phi3", "phi3", ""),
    ("granite", "granite", "permute"), ("olmo", "olmo", "permute"), ("olmo2", "olmo2", ""),
    ("starcoder2", "starcoder2", ""), ("smollm3", "smollm3", "permute"), ("arcee", "arcee", "permute"),
    ("cohere", "command-r", ""), ("cohere2", "cohere2", ""), ("ernie4_5", "ernie4_5", ""),
    ("hunyuan", "hunyuan-dense", ""), ("seed_oss", "seed_oss", ""), ("glm4", "glm4", ""), ("stablelm", "stablelm", ""),
    ("nemotron", "nemotron", "shift"), ("gpt_oss", "gpt-oss", "split"),
    ("yi15", "internlm2", "permute"), ("olmoe", "olmoe", "stack"), ("exaone4", "exaone4", ""),
    ("exaone4_full", "exaone4", ""), ("glm4_moe", "glm4moe", "stack"), ("glm4_moe_qknorm", "glm4moe", "stack"),
    ("dots1", "dots1", "stack"), ("ernie4_5_moe", "ernie4_5-moe", "stack"),
]
# Keys of config.json and what the converter calls them, where a family has them.
KEYS = [
    (Keys.LLM.BLOCK_COUNT, "num_hidden_layers"), (Keys.LLM.EMBEDDING_LENGTH, "hidden_size"),
    (Keys.LLM.FEED_FORWARD_LENGTH, "intermediate_size"), (Keys.LLM.CONTEXT_LENGTH, "max_position_embeddings"),
    (Keys.Attention.HEAD_COUNT, "num_attention_heads"), (Keys.Attention.HEAD_COUNT_KV, "num_key_value_heads"),
    (Keys.Attention.KEY_LENGTH, "head_dim"), (Keys.Attention.LAYERNORM_RMS_EPS, "rms_norm_eps"),
    (Keys.Attention.LAYERNORM_EPS, "layer_norm_eps"), (Keys.Attention.LAYERNORM_EPS, "norm_epsilon"),
    (Keys.Attention.LAYERNORM_EPS, "norm_eps"), (Keys.Attention.CLAMP_KQV, "clip_qkv"),
    (Keys.Attention.SLIDING_WINDOW, "sliding_window"), (Keys.LLM.EMBEDDING_SCALE, "embedding_multiplier"),
    (Keys.LLM.RESIDUAL_SCALE, "residual_multiplier"), (Keys.Attention.SCALE, "attention_multiplier"),
    (Keys.LLM.LOGIT_SCALE, "logits_scaling"), (Keys.LLM.LOGIT_SCALE, "logit_scale"),
    (Keys.LLM.ATTN_LOGIT_SOFTCAPPING, "attn_logit_softcapping"),
    (Keys.LLM.FINAL_LOGIT_SOFTCAPPING, "final_logit_softcapping"),
    (Keys.LLM.USE_PARALLEL_RESIDUAL, "use_parallel_residual"), (Keys.LLM.EXPERT_COUNT, "num_experts"),
    (Keys.LLM.EXPERT_COUNT, "num_local_experts"), (Keys.LLM.EXPERT_USED_COUNT, "num_experts_per_tok"),
    (Keys.LLM.EXPERT_FEED_FORWARD_LENGTH, "moe_intermediate_size"),
    (Keys.LLM.EXPERT_SHARED_FEED_FORWARD_LENGTH, "shared_expert_intermediate_size"),
    (Keys.LLM.EXPERT_COUNT, "n_routed_experts"), (Keys.LLM.EXPERT_COUNT, "moe_num_experts"),
    (Keys.LLM.EXPERT_USED_COUNT, "moe_k"), (Keys.LLM.EXPERT_SHARED_COUNT, "n_shared_experts"),
    (Keys.LLM.EXPERT_SHARED_COUNT, "moe_num_shared_experts"), (Keys.LLM.EXPERT_WEIGHTS_SCALE, "routed_scaling_factor"),
    (Keys.LLM.EXPERT_WEIGHTS_NORM, "norm_topk_prob"), (Keys.LLM.LEADING_DENSE_BLOCK_COUNT, "first_k_dense_replace"),
    (Keys.LLM.LEADING_DENSE_BLOCK_COUNT, "moe_layer_start_index"),
    (Keys.LLM.INTERLEAVE_MOE_LAYER_STEP, "moe_layer_interval"),
    (Keys.LLM.NEXTN_PREDICT_LAYERS, "num_nextn_predict_layers"),
]
EXPERTS = {"gate_proj": "ffn_gate_exps", "up_proj": "ffn_up_exps", "down_proj": "ffn_down_exps",
           "w1": "ffn_gate_exps", "w3": "ffn_up_exps", "w2": "ffn_down_exps"}


def main():
    architectures = {name: arch for arch, name in MODEL_ARCH_NAMES.items()}
    print("# Made by tools/make_gguf_names.py from the Python package gguf.")
    for family, name, actions in FAMILIES:
        folder = f"{sys.argv[1]}/{family}"
        config = json.load(open(folder + "/config.json"))
        names = get_tensor_name_map(architectures[name], config["num_hidden_layers"])
        print("family", family, name, actions)
        with safe_open(folder + "/model.safetensors", "np") as file:
            tensors = list(file.keys())
        seen = {}
        for tensor in tensors:
            expert = re.match(r"(.*)\.experts\.\d+\.(\w+)\.weight$", tensor)
            if expert:
                module, found = f"{expert[1]}.experts.E.{expert[2]}", "blk.N." + EXPERTS[expert[2]]
            else:
                module = re.sub(r"\.(weight|bias)$", "", tensor)
                found = names.get_name(module)
                if module.endswith("e_score_correction_bias"):
                    found = names.get_name(module.removesuffix("_bias")) + ".bias"
            seen.setdefault(re.sub(r"layers\.\d+", "layers.N", module),
                            re.sub(r"blk\.\d+", "blk.N", found) if found else "-")
        for module, found in sorted(seen.items()):
            print("name", module, found)
        for key, setting in KEYS:
            if config.get(setting) is not None:
                print("key", key.format(arch=name), setting)


main()
