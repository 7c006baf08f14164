#!/usr/bin/env python3
"""Writes the hand-made part of tests/fuzz/: small right and tricky wrong files for each parser.  Names say what the
parser must answer ("good..." accepted, "bad..." refused); inputs that a fuzzer found are kept beside them."""

import pathlib
import struct

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/fuzz"


def save(target, cases):
    folder = OUT / f"{target}_fuzz"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in cases.items():
        (folder / name).write_bytes(data)


def st(header, data=b"", length=None):
    text = header.encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(name, dtype, shape, begin, end):
    return f'"{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}'


def safetensors():
    f32 = tensor("w", "F32", "[2]", 0, 8)
    two = f32 + "," + tensor("v", "BF16", "[3]", 8, 14)
    good = st("{" + two + "}", bytes(14))
    save("safetensors", {
        "good_empty": st("{}"),
        "good_two": good,
        "good_metadata": st('{"__metadata__":{"format":"pt","a":"\\u00e9\\n"},' + f32 + "}  ", bytes(8)),
        "good_empty_tensors": st("{" + tensor("a", "U8", "[0]", 0, 0) + "," + tensor("b", "U8", "[]", 0, 1) + "}", b"x"),
        "bad_truncated_data": good[:-1],
        "bad_truncated_header": good[:30],
        "bad_short": b"\x08\0\0",
        "bad_length_max": st("{}", length=2**64 - 1),
        "bad_length_one_more": st("{}", length=3),
        "bad_length_zero": st("{}", length=0),
        "bad_overlap": st("{" + f32 + "," + tensor("v", "F32", "[2]", 4, 12) + "}", bytes(12)),
        "bad_gap": st("{" + f32 + "," + tensor("v", "F32", "[1]", 12, 16) + "}", bytes(16)),
        "bad_tail": st("{" + f32 + "}", bytes(9)),
        "bad_duplicate": st("{" + f32 + "," + tensor("w", "F32", "[2]", 8, 16) + "}", bytes(16)),
        "bad_duplicate_metadata": st('{"__metadata__":{},"__metadata__":{}}'),
        "bad_shape_2_32_squared": st("{" + tensor("w", "F32", f"[{2**32},{2**32}]", 0, 0) + "}"),
        "bad_shape_bytes_overflow": st("{" + tensor("w", "F64", f"[{2**60}]", 0, 0) + "}"),
        "bad_shape_negative": st("{" + tensor("w", "F32", "[-1]", 0, 0) + "}"),
        "bad_range_reversed": st("{" + tensor("w", "F32", "[2]", 8, 0) + "}", bytes(8)),
        "bad_range_max": st("{" + tensor("w", "U8", "[1]", 2**64 - 2, 2**64 - 1) + "}", bytes(1)),
        "bad_dtype": st("{" + tensor("w", "F6_E2M3", "[8]", 0, 8) + "}", bytes(8)),
        "bad_nesting": st('{"w":' + "[" * 2000),
        "bad_rank": st("{" + tensor("w", "U8", "[" + ",".join("1" * 7) + "]", 0, 1) + "}", bytes(1)),
        "bad_utf8": struct.pack("<Q", 9) + b'{"\xff\xfe":1}',
    })


def text(value):
    return struct.pack("<Q", len(value)) + value


def entry(key, kind, payload):
    return text(key) + struct.pack("<I", kind) + payload


def info(name, dims, kind, offset):
    return text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims) + struct.pack(
        "<IQ", kind, offset)


def gg(entries=(), infos=(), data=0, version=3, counts=None):
    counts = counts or (len(infos), len(entries))
    out = b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join(entries) + b"".join(infos)
    return out + bytes(-len(out) % 32 + data)


def gguf():
    u32 = lambda key, value: entry(key, 4, struct.pack("<I", value))
    array = lambda kind, count, payload: struct.pack("<IQ", kind, count) + payload
    strings = entry(b"s", 9, array(8, 2, text(b"a") + text(b"")))
    nested = entry(b"n", 9, array(9, 1, array(0, 2, b"ab")))
    every = [entry(b"k%d" % k, k, bytes(n)) for k, n in
             enumerate([1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8])]
    one = info(b"w", [8], 0, 0)
    good = gg([u32(b"a", 1), strings], [one, info(b"v", [32, 2], 2, 32)], 68)
    save("gguf", {
        "good_empty": gg(),
        "good_two": good,
        "good_version_2": gg([strings], version=2),
        "good_every_type": gg(every),
        "good_nested": gg([nested]),
        "good_alignment_8": gg([u32(b"general.alignment", 8)], [one], 64),
        "good_alignment_huge": gg([u32(b"general.alignment", 2**31)]),
        "bad_truncated_data": good[:-1],
        "bad_truncated_header": good[:70],
        "bad_magic": b"GGML" + good[4:],
        "bad_version_1": gg(version=1),
        "bad_big_endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
        "bad_count_tensors": gg(counts=(2**64 - 1, 0)),
        "bad_count_entries": gg(counts=(0, 2**63)),
        "bad_empty_key": gg([u32(b"", 1)], data=64),
        "bad_duplicate_key": gg([u32(b"a", 1), u32(b"a", 1)]),
        "bad_type": gg([entry(b"a", 13, bytes(8))]),
        "bad_element_type": gg([entry(b"a", 9, array(4096, 1, bytes(8)))]),
        "bad_array_count": gg([entry(b"a", 9, array(4, 2**62, bytes(8)))]),
        "bad_array_count_strings": gg([entry(b"a", 9, array(8, 2**61, bytes(8)))]),
        "bad_string_length": gg([entry(b"a", 8, struct.pack("<Q", 2**64 - 8))]),
        "bad_nesting": gg([entry(b"a", 9, array(9, 1, b"") * 50)]),
        "bad_bool": gg([entry(b"a", 7, b"\x02")]),
        "bad_alignment_0": gg([u32(b"general.alignment", 0)], [one], 64),
        "bad_alignment_24": gg([u32(b"general.alignment", 24)], [one], 64),
        "bad_alignment_string": gg([entry(b"general.alignment", 8, text(b"32"))], [one], 64),
        "bad_dim_2_42": gg([], [info(b"w", [2**42 + 1], 0, 0)], 64),
        "bad_dim_0": gg([], [info(b"w", [8, 0], 0, 0)], 64),
        "bad_dim_negative": gg([], [info(b"w", [2**64 - 1], 0, 0)], 64),
        "bad_dims_overflow": gg([], [info(b"w", [2**32, 2**32, 2**32], 0, 0)], 64),
        "bad_bytes_overflow": gg([], [info(b"w", [2**61], 0, 0)], 64),
        "bad_rank": gg([], [info(b"w", [1] * 5, 0, 0)], 64),
        "bad_rank_max": gg([], [text(b"w") + struct.pack("<I", 2**32 - 1)], 64),
        "bad_row_of_half_blocks": gg([], [info(b"w", [16, 2], 2, 0)], 64),
        "bad_offset_max": gg([], [info(b"w", [8], 0, 2**64 - 32)], 64),
        "bad_offset_unaligned": gg([], [info(b"w", [8], 0, 4)], 64),
        "bad_overlap": gg([], [info(b"w", [16], 0, 0), info(b"v", [8], 0, 32)], 64),
        "bad_duplicate_tensor": gg([], [one, info(b"w", [8], 0, 32)], 64),
        "bad_tensor_type": gg([], [info(b"w", [256], 16, 0)], 66),
        "bad_tensor_type_unknown": gg([], [info(b"w", [8], 999, 0)], 66),
    })


def json():
    save("json", {
        "good_numbers": b'{"a":[0,-1,1.5e3,Infinity,-Infinity,NaN],"b":"NaN \\" \\\\"}',
        "good_marker": b'["\\u0000inf","\\u0000nan", NaN]',
        "good_nested": b"[" * 200 + b"]" * 200,
        "bad_nested": b"[" * 100000,
        "bad_infinity": b"[Infinit]",
        "bad_minus": b"[-NaN]",
        "bad_open_string": b'{"a":"\\',
        "bad_utf8": b'"\xff"',
        "bad_range": b"[1e400]",
        "bad_empty": b"",
    })


if __name__ == "__main__":
    safetensors()
    gguf()
    json()
