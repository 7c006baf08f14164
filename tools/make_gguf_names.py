#!/usr/bin/env python3
"""Writes tests/gguf_names.txt: what llama.cpp's converter makes of each golden family.

Tensor names come from the Python package `gguf` (tensor_mapping.py, by the names in the golden's weights), metadata
keys from its constants.py. What the converter does to weights (convert_hf_to_gguf.py) is stated here, by family.

    tools/make_gguf_names.py GOLDEN_ROOT > tests/gguf_names.txt

Needs gguf 0.19 and safetensors. Lines: `family GOLDEN ARCHITECTURE ACTION...`, then `name MODULE GGUF`, where N is a
block, E an expert and ! says that there is no suffix, and metadata: `key GGUF CONFIG` of a key of config.json, `value GGUF VALUE`, `sum GGUF CONFIG
CONFIG`, `product GGUF CONFIG CONFIG`, and `list GGUF CONFIG KIND`, which has the key's value for layers of that kind
and 0 for others. `flags GGUF CONFIG KIND` has true for those, `quantiles GGUF CONFIG` a list of shares as deviations
of a normal distribution. Keys of config.json in an object have a dot.
"""
import json
import re
import sys

from gguf.constants import MODEL_ARCH_NAMES, Keys
from gguf.tensor_mapping import get_tensor_name_map
from safetensors import safe_open

# permute: rows of q and k to neighbouring pairs. shift: 1 added to norms. stack: experts one after the other.
# split: gate and up of stacked experts, columns alternating, transposed (gpt-oss). halves: the same, one after the
# other (Llama 4). rows: gate and up one after the other, not transposed (Granite). regroup: queries, keys and values of
# groups to all queries, all keys, all values. absorb: kv_b of latent attention as k_b, transposed, and v_b. scan: A_log
# to -exp(A_log), convolutions without the axis of one. heads: A and D with an axis of one, the norm by group.
# multiply: Falcon-H1's multipliers into the weights. tiled: heads of values in a delta rule from all of a key head to the
# first of every key, the second of every key ... (Qwen3.5). qkvz: the delta rule's projection by key head to all queries,
# keys and values, and the gates apart (Qwen3-Next). turn: matrices transposed (GPT-2). streams: projections between
# streams stacked (Gemma 3n). cut: experts below each other to stacked ones, w2 transposed (DBRX). listed: parameters of
# the activation into lists of the metadata (Apertus).
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
    ("deepseek_v2", "deepseek2", "stack"), ("deepseek_v2_qlora", "deepseek2", "stack"),
    ("deepseek_v2_yarn", "deepseek2", "stack"), ("deepseek_v3", "deepseek2", "stack"),
    ("deepseek_v2", "deepseek2", "stack absorb"), ("deepseek_v3_yarn", "deepseek2", "stack absorb"),
    ("glm4_moe_lite", "deepseek2", "stack absorb"), ("youtu", "deepseek2", "absorb"), ("minicpm3", "minicpm3", ""),
    ("phi", "phi2", ""), ("falcon", "falcon", "regroup"), ("falcon_new", "falcon", "regroup"),
    ("gpt_neox", "gptneox", "regroup"), ("lfm2", "lfm2", "scan"), ("lfm2_moe", "lfm2moe", "stack scan"),
    ("mamba", "mamba", "scan"), ("falcon_mamba", "mamba", "scan"), ("mamba2", "mamba2", "scan heads"),
    ("jamba", "jamba", "stack scan"), ("nemotron_h", "nemotron_h", "scan heads"),
    ("nemotron_h_moe", "nemotron_h_moe", "stack scan heads"), ("falcon_h1", "falcon-h1", "scan heads multiply"),
    ("granitemoe", "granitemoe", "permute rows"), ("granitemoeshared", "granitemoe", "permute rows"),
    ("granitemoehybrid", "granitehybrid", "permute rows scan heads"), ("llama4_text", "llama4", "halves"),
    ("exaone", "exaone", ""),
    ("hunyuan_v1_moe", "hunyuan-moe", "stack"), ("minimax_m2", "minimax-m2", "stack"),
    ("qwen3_next", "qwen3next", "shift stack scan qkvz"), ("qwen3_5", "qwen35", "shift scan tiled"),
    ("qwen3_5_moe", "qwen35moe", "shift stack scan tiled"), ("gemma3n", "gemma3n", "streams"), ("gpt2", "gpt2", "turn"),
    ("gpt_bigcode", "starcoder", ""), ("bloom", "bloom", "regroup"), ("mpt", "mpt", ""), ("dbrx", "dbrx", "cut"),
    ("phimoe", "phimoe", "stack"), ("apertus", "apertus", "listed"), ("bitnet", "bitnet", ""),
    ("afmoe", "afmoe", "stack"), ("exaone_moe", "exaone-moe", "stack"), ("olmo3", "olmo2", ""),
]
# Keys of config.json and what the converter calls them, where a family has them.
KEYS = [
    (Keys.LLM.BLOCK_COUNT, "num_hidden_layers"), (Keys.LLM.EMBEDDING_LENGTH, "hidden_size"),
    (Keys.LLM.FEED_FORWARD_LENGTH, "intermediate_size"), (Keys.LLM.CONTEXT_LENGTH, "max_position_embeddings"),
    (Keys.Attention.HEAD_COUNT, "num_attention_heads"), (Keys.Attention.HEAD_COUNT_KV, "num_key_value_heads"),
    (Keys.Attention.KEY_LENGTH, "head_dim"), (Keys.Attention.VALUE_LENGTH, "head_dim"), (Keys.Attention.LAYERNORM_RMS_EPS, "rms_norm_eps"),
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
LATENT = ["key {arch}.attention.kv_lora_rank kv_lora_rank", "key {arch}.attention.q_lora_rank q_lora_rank",
          "key {arch}.attention.value_length v_head_dim",
          "sum {arch}.attention.key_length qk_nope_head_dim qk_rope_head_dim"]
ABSORBED = ["value {arch}.attention.head_count_kv 1", "key {arch}.attention.kv_lora_rank kv_lora_rank",
            "key {arch}.attention.q_lora_rank q_lora_rank", "key {arch}.attention.value_length kv_lora_rank",
            "sum {arch}.attention.key_length kv_lora_rank qk_rope_head_dim",
            "key {arch}.attention.value_length_mla v_head_dim",
            "sum {arch}.attention.key_length_mla qk_nope_head_dim qk_rope_head_dim"]
GROUPS = ["key {arch}.expert_group_count n_group", "key {arch}.expert_group_used_count topk_group"]
STATELESS = ["value {arch}.context_length 1048576", "value {arch}.feed_forward_length 0", "value {arch}.attention.head_count 0",
             "key {arch}.attention.layer_norm_rms_epsilon layer_norm_epsilon"]
SHORT = ["key {arch}.shortconv.l_cache conv_L_cache", "key {arch}.attention.layer_norm_rms_epsilon norm_eps",
         "list {arch}.attention.head_count_kv num_key_value_heads full_attention"]
MAMBA2 = ["key {arch}.ssm.conv_kernel mamba_d_conv", "key {arch}.ssm.state_size mamba_d_state",
          "key {arch}.ssm.time_step_rank mamba_n_heads", "key {arch}.ssm.group_count mamba_n_groups",
          "product {arch}.ssm.inner_size mamba_n_heads mamba_d_head"]
MAMBA = ["key {arch}.ssm.conv_kernel conv_kernel", "key {arch}.ssm.state_size state_size"]
NEMOTRON = ["value {arch}.block_count 4", "key {arch}.attention.layer_norm_epsilon layer_norm_epsilon", "key {arch}.attention.layer_norm_rms_epsilon layer_norm_epsilon",
            "key {arch}.ssm.conv_kernel conv_kernel", "key {arch}.ssm.state_size ssm_state_size",
            "key {arch}.ssm.time_step_rank mamba_num_heads", "key {arch}.ssm.group_count n_groups",
            "product {arch}.ssm.inner_size mamba_num_heads mamba_head_dim",
            "list {arch}.attention.head_count_kv num_key_value_heads full_attention"]
DELTA = ["key {arch}.ssm.conv_kernel linear_conv_kernel_dim", "key {arch}.ssm.state_size linear_key_head_dim",
         "key {arch}.ssm.group_count linear_num_key_heads", "key {arch}.ssm.time_step_rank linear_num_value_heads",
         "product {arch}.ssm.inner_size linear_num_value_heads linear_value_head_dim"]
GPT = ["key {arch}.block_count n_layer", "key {arch}.embedding_length n_embd", "key {arch}.feed_forward_length n_inner",
       "key {arch}.context_length n_positions", "key {arch}.attention.head_count n_head",
       "key {arch}.attention.layer_norm_epsilon layer_norm_epsilon"]
MPT = ["key {arch}.block_count n_layers", "key {arch}.embedding_length d_model", "key {arch}.context_length max_seq_len",
       "key {arch}.attention.head_count n_heads", "value {arch}.attention.layer_norm_epsilon 1e-05",
       "key {arch}.attention.clamp_kqv attn_config.clip_qkv"]
SLIDING = ["flags {arch}.attention.sliding_window_pattern layer_types sliding_attention"]
# Metadata of single families, before what KEYS has.
PARTICULAR = {
    "deepseek2": LATENT + GROUPS, "deepseek2 absorb": ABSORBED + GROUPS, "minicpm3": LATENT,
    "falcon": ["key {arch}.attention.head_count_kv num_kv_heads", "key {arch}.feed_forward_length ffn_hidden_size",
               "key {arch}.attention.layer_norm_epsilon layer_norm_epsilon"],
    "lfm2": SHORT, "lfm2moe": SHORT + ["key {arch}.leading_dense_block_count num_dense_layers",
                                       "value {arch}.expert_gating_func 2"],
    "mamba": STATELESS + MAMBA + ["key {arch}.ssm.inner_size intermediate_size",
                                  "key {arch}.ssm.time_step_rank time_step_rank"],
    "mamba2": STATELESS + MAMBA + ["key {arch}.ssm.time_step_rank num_heads", "key {arch}.ssm.group_count n_groups",
                                   "product {arch}.ssm.inner_size num_heads head_dim"],
    "jamba": ["list {arch}.attention.head_count_kv num_key_value_heads full_attention",
              "key {arch}.ssm.conv_kernel mamba_d_conv", "key {arch}.ssm.state_size mamba_d_state",
              "key {arch}.ssm.time_step_rank mamba_dt_rank", "product {arch}.ssm.inner_size mamba_expand hidden_size"],
    "nemotron_h": NEMOTRON + ["list {arch}.feed_forward_length intermediate_size mlp"],
    "nemotron_h_moe": NEMOTRON + ["list {arch}.feed_forward_length moe_intermediate_size moe",
                                  "key {arch}.expert_shared_feed_forward_length moe_shared_expert_intermediate_size",
                                  "value {arch}.expert_gating_func 2"] + GROUPS,
    "falcon-h1": MAMBA2,
    "granitemoe": ["key {arch}.expert_shared_feed_forward_length shared_intermediate_size"],
    "granitehybrid": MAMBA2 + ["key {arch}.expert_shared_feed_forward_length shared_intermediate_size",
                               "list {arch}.attention.head_count_kv num_key_value_heads full_attention",
                               "value {arch}.rope.scaling.finetuned false"],
    "llama4": ["key {arch}.feed_forward_length intermediate_size_mlp",
               "key {arch}.expert_feed_forward_length intermediate_size",
               "key {arch}.interleave_moe_layer_step interleave_moe_layer_step"],
    "hunyuan-moe": ["key {arch}.expert_feed_forward_length intermediate_size",
                    "key {arch}.expert_used_count moe_topk"],
    "qwen3next": DELTA, "qwen35": DELTA + ["sections {arch}.rope.dimension_sections rope_parameters.mrope_section"],
    "qwen35moe": DELTA + ["sections {arch}.rope.dimension_sections rope_parameters.mrope_section"],
    "gemma3n": ["key {arch}.altup.active_idx altup_active_idx", "key {arch}.altup.num_inputs altup_num_inputs",
                "key {arch}.embedding_length_per_layer_input hidden_size_per_layer_input",
                "key {arch}.attention.shared_kv_layers num_kv_shared_layers",
                "quantiles {arch}.activation_sparsity_scale activation_sparsity_pattern"] + SLIDING,
    "gpt2": GPT, "starcoder": GPT + ["value {arch}.attention.head_count_kv 1"],
    "bloom": ["key {arch}.block_count n_layer", "key {arch}.attention.head_count n_head",
              "key {arch}.attention.head_count_kv n_head", "value {arch}.context_length 256",
              "value {arch}.feed_forward_length 192",
              "key {arch}.attention.layer_norm_epsilon layer_norm_epsilon"],
    "mpt": MPT + ["value {arch}.feed_forward_length 128",
                  "value {arch}.attention.max_alibi_bias 8.0"],
    "dbrx": MPT + ["key {arch}.feed_forward_length ffn_config.ffn_hidden_size",
                   "key {arch}.attention.head_count_kv attn_config.kv_n_heads",
                   "key {arch}.expert_count ffn_config.moe_num_experts",
                   "key {arch}.expert_used_count ffn_config.moe_top_k"],
    "olmo": ["value {arch}.attention.layer_norm_epsilon 1e-05"], "dots1": ["value {arch}.expert_gating_func 2"],
    "gpt-oss": ["key {arch}.expert_feed_forward_length intermediate_size"],
    "ernie4_5-moe": ["product {arch}.expert_shared_feed_forward_length moe_intermediate_size moe_num_shared_experts"],
    "bitnet": ["key {arch}.hidden_activation hidden_act"],
    "afmoe": ["key {arch}.expert_shared_count num_shared_experts", "key {arch}.expert_weights_scale route_scale",
              "value {arch}.expert_weights_norm true", "key {arch}.leading_dense_block_count num_dense_layers",
              "value {arch}.expert_gating_func 2"],
    "exaone-moe": ["key {arch}.expert_shared_count num_shared_experts", "value {arch}.expert_gating_func 2"] + SLIDING,
    "minimax-m2": ["key {arch}.expert_feed_forward_length intermediate_size", "value {arch}.expert_gating_func 2"],
}
OF_GOLDEN = {
    "deepseek_v3": ["value {arch}.expert_gating_func 2"], "deepseek_v3_yarn": ["value {arch}.expert_gating_func 2"],
    "glm4_moe_lite": ["value {arch}.expert_gating_func 2", "value {arch}.leading_dense_block_count 1"],
    "deepseek_v2_qlora": ["value {arch}.expert_gating_func 1"],
    "youtu": ["value {arch}.expert_shared_count 0", "key {arch}.leading_dense_block_count num_hidden_layers",
              "key {arch}.expert_feed_forward_length intermediate_size"],
    "olmo3": SLIDING, "qwen3_5_moe": ["value {arch}.full_attention_interval 3"],
    "lfm2": ["value {arch}.feed_forward_length 56"], "falcon_mamba": ["value {arch}.ssm.dt_b_c_rms true"],
}
# What transformers and the files that the converter knows call a module.
OTHER_NAMES = [("transformer.", ""), ("attn_sub_norm", "inner_attn_ln"), ("ffn_sub_norm", "ffn_layernorm")]
NOT_WRITTEN = [("nemotron_h", ".expert_"), ("falcon_h1", "_scale"), ("dots1", "sliding_window"),
               ("lfm2_moe", "expert_weights_scale")]
EXPERTS = {"gate_proj": "ffn_gate_exps", "up_proj": "ffn_up_exps", "down_proj": "ffn_down_exps",
           "w1": "ffn_gate_exps", "w3": "ffn_up_exps", "w2": "ffn_down_exps"}


def main():
    architectures = {name: arch for arch, name in MODEL_ARCH_NAMES.items()}
    print("# Made by tools/make_gguf_names.py from the Python package gguf.")
    for family, name, actions in FAMILIES:
        folder = f"{sys.argv[1]}/{family}"
        config = json.load(open(folder + "/config.json"))
        layers = next((config[key] for key in ("num_hidden_layers", "n_layer", "n_layers") if key in config),
                      None) or len(config["layers_block_type"])
        names = get_tensor_name_map(architectures[name], layers)
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
                for own, other in OTHER_NAMES:
                    found = found or names.get_name(module.replace(own, other))
                if not found and names.get_name(tensor):
                    found = names.get_name(tensor) + "!"  # Falcon-H1's norms before the feed-forward
                elif found and tensor.endswith((".A_log", ".D")):
                    found += "!"
                if module.endswith("e_score_correction_bias"):
                    found = (names.get_name(module.removesuffix("_bias")) or found) + ".bias"
                elif module.endswith("expert_bias"):
                    found += ".bias"
                elif module.endswith("dt_bias"):
                    found = names.get_name(module.removesuffix("dt_bias") + "dt_proj") + ".bias"
            seen.setdefault(re.sub(r"\.(layers|h|blocks)\.\d+", r".\1.N", module),
                            re.sub(r"blk\.\d+", "blk.N", found) if found else "-")
        for module, found in sorted(seen.items()):
            print("name", module, found)
        particular = PARTICULAR.get(f"{name} absorb" if "absorb" in actions else name, [])
        for line in particular + OF_GOLDEN.get(family, []):
            print(line.format(arch=name))
        for key, setting in KEYS:
            # Dense Nemotron-H has sizes of experts all the same; Falcon-H1's multipliers go into its weights; the converter
            # leaves out dots1's window and LFM2's scale.
            left_out = any(family == each and part in key for each, part in NOT_WRITTEN)
            if config.get(setting) is not None and not left_out:
                print("key", key.format(arch=name), setting)


main()
