#!/usr/bin/env python3
"""Writes tests/io/reference.safetensors and tests/io/reference.gguf with the reference packages, so that our readers and
writers are tested against bytes that we did not make.  Needs: pip install gguf==0.19.0 safetensors==0.8.0 numpy."""

import pathlib

import gguf
import numpy as np
from safetensors import TensorSpec, serialize

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/io"


def write_safetensors():
    f32 = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensors = {
        "a.f64": ("float64", np.array([0.5, -2.0])),
        "b.i64": ("int64", np.array([-1, 2**40])),
        "c.f32": ("float32", f32),
        "d.i32": ("int32", np.array([7], dtype=np.int32)),
        "e.bf16": ("bfloat16", (np.array([1.0, -2.0], dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)),
        "f.f16": ("float16", np.array([1.0, 65504.0], dtype=np.float16)),
        "h.i8": ("int8", np.array([-128, 127], dtype=np.int8)),
        "i.u8": ("uint8", np.array([[]], dtype=np.uint8)),
        "j.\"quoted\"\n\u00e9": ("uint8", np.array(9, dtype=np.uint8)),
    }
    entries = {
        name: TensorSpec(dtype=dtype, shape=list(a.shape), data_ptr=a.ctypes.data, data_len=a.nbytes)
        for name, (dtype, a) in tensors.items()
    }
    (OUT / "reference.safetensors").write_bytes(serialize(entries, metadata={"format": "pt"}))


def write_gguf():
    writer = gguf.GGUFWriter(str(OUT / "reference.gguf"), "llama")
    writer.add_uint8("t.u8", 255)
    writer.add_int8("t.i8", -128)
    writer.add_uint16("t.u16", 65535)
    writer.add_int16("t.i16", -32768)
    writer.add_uint32("t.u32", 4294967295)
    writer.add_int32("t.i32", -2147483648)
    writer.add_uint64("t.u64", 18446744073709551615)
    writer.add_int64("t.i64", -9223372036854775808)
    writer.add_float32("t.f32", 0.1)
    writer.add_float64("t.f64", 0.1)
    writer.add_bool("t.bool", True)
    writer.add_string("t.string", "h\u00e9llo")
    writer.add_array("t.strings", ["a", "", "caf\u00e9"])
    writer.add_array("t.i32s", [1, -2, 3])
    writer.add_array("t.f32s", [0.5, -1.5])
    writer.add_array("t.bools", [True, False, True])
    rng = np.random.default_rng(5)
    writer.add_tensor("w.f32", np.arange(6, dtype=np.float32).reshape(2, 3))
    writer.add_tensor("w.f16", np.arange(4, dtype=np.float16))
    rows = rng.standard_normal((3, 64)).astype(np.float32)
    for kind in ("Q8_0", "Q4_1"):
        quantised = gguf.quants.quantize(rows, gguf.GGMLQuantizationType[kind])
        writer.add_tensor(f"w.{kind.lower()}", quantised, raw_dtype=gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write_safetensors()
    write_gguf()
