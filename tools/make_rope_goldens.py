#!/usr/bin/env python3
"""Writes tests/models/rope_goldens.json: rotary frequencies and amplitudes by transformers for sequences shorter and
longer than the original length, for each kind of scaling with the parameters of a published model.

    tools/make_rope_goldens.py > tests/models/rope_goldens.json

Needs torch and transformers 5.
"""
import json

from transformers import HunYuanDenseV1Config, LlamaConfig, Phi3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense import HunYuanDenseV1RotaryEmbedding

LONG = [1.08, 1.11, 1.14, 1.34, 1.59, 1.6, 1.62, 2.62, 3.23, 3.23, 4.79, 7.4, 7.7, 9.09, 12.2, 17.67]
SHORT = [1.0, 1.02, 1.03, 1.03, 1.05, 1.05, 1.05, 1.05, 1.05, 1.07, 1.1, 1.11, 1.16, 1.16, 1.17, 1.29]
# name, theta, original length, longest, the rest of rope_parameters, lengths
CASES = [
    ("llama3 (Llama 3.1)", 500000.0, 8192, 131072,
     {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}, [100, 9000]),
    ("linear", 10000.0, 2048, 16384, {"rope_type": "linear", "factor": 8.0}, [3000]),
    ("dynamic (InternLM 2.5)", 1000000.0, 1024, 1024, {"rope_type": "dynamic", "factor": 2.0}, [1000, 1025, 3000]),
    ("dynamic with alpha (HunYuan)", 10000.0, 32768, 32768,
     {"rope_type": "dynamic", "alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0,
      "mscale_all_dim": 1.0}, [100, 40000]),
    ("yarn (Qwen 2.5)", 1000000.0, 2048, 8192, {"rope_type": "yarn", "factor": 4.0}, [100, 3000]),
    ("yarn with mscale (DeepSeek V3)", 10000.0, 4096, 163840,
     {"rope_type": "yarn", "factor": 40.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}, [5000]),
    ("yarn with mscale (DeepSeek V2 Lite)", 10000.0, 4096, 163840,
     {"rope_type": "yarn", "factor": 40.0, "beta_fast": 32, "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 0.5}, [5000]),
    ("yarn with attention factor (Olmo 3)", 500000.0, 8192, 65536,
     {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32, "beta_slow": 1, "attention_factor": 1.2079441541679836}, [9000]),
    ("yarn not truncated (gpt-oss)", 150000.0, 4096, 131072,
     {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}, [5000]),
    ("longrope (Phi 3.5)", 10000.0, 4096, 131072,
     {"rope_type": "longrope", "long_factor": LONG, "short_factor": SHORT}, [100, 4096, 4097]),
]


def main():
    out = []
    for name, theta, original, longest, parameters, lengths in CASES:
        parameters = {**parameters, "rope_theta": theta}
        if parameters["rope_type"] not in ("linear", "dynamic"):
            parameters["original_max_position_embeddings"] = original
        alpha = "alpha" in parameters
        kind = HunYuanDenseV1Config if alpha else Phi3Config if parameters["rope_type"] == "longrope" else LlamaConfig
        config = kind(hidden_size=64, intermediate_size=128, num_attention_heads=2, num_key_value_heads=2,
                      num_hidden_layers=1, vocab_size=64, head_dim=32, max_position_embeddings=longest, pad_token_id=0,
                      original_max_position_embeddings=original, rope_parameters=dict(parameters))
        for length in lengths:
            if alpha:
                frequencies, amplitude = HunYuanDenseV1RotaryEmbedding.compute_ntk_alpha_rope_parameters(config)
            else:
                frequencies, amplitude = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](config, "cpu", seq_len=length)
            out.append({"name": f"{name}, {length} tokens", "rope_parameters": parameters, "longest": longest,
                        "tokens": length, "amplitude": amplitude, "inv_freq": [float(f) for f in frequencies]})
    print("[\n" + ",\n".join(json.dumps(case) for case in out) + "\n]")


main()
