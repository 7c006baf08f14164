#!/usr/bin/env python3
"""Writes tests/io/quant_goldens.safetensors: blocks of every quantised type and what the PyPI package `gguf` makes of
them, and rows with the blocks that its quantisers give.  Needs: pip install gguf==0.19.0 safetensors==0.8.0 numpy.
The output depends on nothing but the versions."""

import pathlib

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from safetensors.numpy import save_file

# Where the f16 scales lie inside a block.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
BLOCKS = 6
QUANTISERS = ["Q8_0", "Q4_0", "Q4_1"]


def blocks_of(name, rng):
    kind = GGMLQuantizationType[name]
    _, size = GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    blocks[1] = 255  # every field at its end
    blocks[2] = 0
    # Scales: ordinary ones, then a subnormal, zero, negative and the largest.
    values = np.array([0.013, 1.5, 6e-8, 0.0, -2.75, 65504.0], dtype=np.float16)
    for column in SCALES[name]:
        blocks[:, column:column + 2] = np.roll(values, column).view(np.uint8).reshape(BLOCKS, 2)
    return blocks


def rows(rng):
    out = rng.standard_normal((8, 32)).astype(np.float32)
    out[1] = 0
    out[2] = 0.75
    out[3] *= 1e-6
    out[4] *= 1e4
    out[5] = np.arange(32) - 15.5  # ties
    out[6] = -np.abs(out[6])
    out[7, 3], out[7, 9] = 4.0, -4.0  # equal magnitudes
    return out


def main():
    rng = np.random.default_rng(20240817)
    tensors = {}
    for name in SCALES:
        blocks = blocks_of(name, rng)
        tensors[f"{name.lower()}.blocks"] = blocks
        tensors[f"{name.lower()}.values"] = quants.dequantize(blocks, GGMLQuantizationType[name]).astype(np.float32)
    source = rows(rng)
    tensors["quantise.rows"] = source
    for name in QUANTISERS:
        tensors[f"quantise.{name.lower()}"] = quants.quantize(source, GGMLQuantizationType[name])
    path = pathlib.Path(__file__).resolve().parent.parent / "tests/io/quant_goldens.safetensors"
    save_file(tensors, path)
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
