"""Writes tests/backend/block_goldens.txt: random blocks of every GGUF block dtype that Tenon reads and the
floats that the gguf package decodes them to.

    pip install gguf numpy
    python tools/make_block_goldens.py

One line a dtype: its name, 256 elements as bytes in hexadecimal, their values as 256 little-endian f32 in
hexadecimal.
"""

import pathlib

import gguf
import numpy as np

# Where a block's f16 scales lie; random bytes there could be infinite.
SCALES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}
ELEMENTS = 256


def main():
    generator = np.random.default_rng(7)
    lines = []
    for name, offsets in SCALES.items():
        kind = gguf.GGMLQuantizationType[name]
        block_elements, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        blocks = generator.integers(0, 256, (ELEMENTS // block_elements, block_bytes), dtype=np.uint8)
        for offset in offsets:
            scales = generator.uniform(-2, 2, len(blocks)).astype(np.float16)
            blocks[:, offset:offset + 2] = scales.view(np.uint8).reshape(-1, 2)
        values = gguf.quants.dequantize(blocks.reshape(-1), kind).astype("<f4")
        lines.append(f"{name.lower()} {blocks.tobytes().hex()} {values.tobytes().hex()}\n")
    target = pathlib.Path(__file__).parent.parent / "tests" / "backend" / "block_goldens.txt"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(lines))


if __name__ == "__main__":
    main()
