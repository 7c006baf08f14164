#!/usr/bin/env python3
"""Writes tests/models/scaled: 8-bit and 4-bit weights with scales beside, and the values that they stand for.

    tools/make_scaled_goldens.py OUT

Values come from torch's float8 dtypes and, for MXFP4, from transformers' own conversion. Needs torch, transformers 5,
safetensors.
"""
import json
import sys

import torch
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

BLOCK = (8, 16)


def codes(dtype):
    return torch.arange(256, dtype=torch.uint8).view(dtype)


def spread(scales, rows, columns):
    return scales.repeat_interleave(BLOCK[0], 0)[:rows].repeat_interleave(BLOCK[1], 1)[:, :columns]


def main():
    torch.manual_seed(11)
    stored, values = {}, {}

    def add(name, weight, scale, scale_name, by_value):
        stored[name] = weight
        stored[name + scale_name] = scale
        values[name] = weight.float() * by_value

    def random8(*shape):
        return torch.randn(*shape).to(torch.float8_e4m3fn)

    every = codes(torch.float8_e4m3fn).reshape(16, 16)
    every = torch.where(every.float().isfinite(), every.float(), torch.zeros(1)).to(torch.float8_e4m3fn)
    add("e4m3.weight", every, torch.ones(()), "_scale", 1.0)
    every = codes(torch.float8_e5m2).reshape(16, 16)
    every = torch.where(every.float().isfinite(), every.float(), torch.zeros(1)).to(torch.float8_e5m2)
    add("e5m2.weight", every, torch.ones(()), "_scale", 1.0)

    scales = torch.rand(3, 3) + 0.5
    add("blocks.weight", random8(20, 40), scales, "_scale_inv", spread(scales, 20, 40))
    scales = torch.randint(120, 134, (3, 3), dtype=torch.uint8).view(torch.float8_e8m0fnu)
    add("powers.weight", random8(20, 40), scales, "_scale_inv", spread(scales.float(), 20, 40))
    scale = torch.tensor([0.375])
    add("whole.weight", random8(5, 7), scale, "_scale", scale)
    scales = torch.rand(2, 3, 3) + 0.5
    add("stacked", random8(2, 20, 40), scales, "_scale_inv", torch.stack([spread(s, 20, 40) for s in scales]))

    blocks = torch.randint(0, 256, (2, 6, 3, 16), dtype=torch.uint8)
    exponents = torch.randint(118, 136, (2, 6, 3), dtype=torch.uint8)
    stored["experts.down_proj_blocks"], stored["experts.down_proj_scales"] = blocks, exponents
    # [experts, in, out], as the unquantised checkpoints have them.
    values["experts.down_proj"] = convert_moe_packed_tensors(blocks, exponents, dtype=torch.float32).contiguous()

    # Without a block size there is a scale a row.
    rows, channel = {}, torch.rand(6, 1) + 0.5
    rows["channel.weight"] = random8(6, 9)
    rows["channel.weight_scale"] = channel
    values["channel.weight"] = rows["channel.weight"].float() * channel
    for name, tensors in [("blocks", stored), ("rows", rows)]:
        save_file(tensors, f"{sys.argv[1]}/{name}/model.safetensors")
        with open(f"{sys.argv[1]}/{name}/config.json", "w") as file:
            json.dump({"model_type": "none"}, file)
    save_file(values, sys.argv[1] + "/values.safetensors")


main()
