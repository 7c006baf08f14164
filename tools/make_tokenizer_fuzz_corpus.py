#!/usr/bin/env python3
"""Writes tests/fuzz/tokenizer_fuzz/: small inputs for src/text/tokenizer_fuzz_checks.h, accepted ones (good_*) and refused
ones (bad_*). Run from the repository root."""
import json
import os
import struct

OUT = "tests/fuzz/tokenizer_fuzz"
VOCAB = {"?": 0, "a": 1, "b": 2, "c": 3, "ab": 4, "abc": 5, "▁": 6, "▁a": 7, "##b": 8, "<0x41>": 9, "Ġ": 10, "Ġa": 11}


def put(name, data):
    with open(f"{OUT}/{name}", "wb") as file:
        file.write(data)


def tokenizer_json(model=None, **stages):
    model = model or {"type": "BPE", "unk_token": "?", "fuse_unk": True, "vocab": VOCAB, "merges": ["a b", ["ab", "c"], "▁ a", "Ġ a"]}
    added = [{"id": 12, "content": "<s>", "special": True}, {"id": 13, "content": "x y", "special": False, "lstrip": True, "rstrip": True},
             {"id": 14, "content": "w", "single_word": True, "normalized": True}]
    return b"J" + json.dumps({"added_tokens": added, "model": model, **stages}, ensure_ascii=False).encode()


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def sentencepiece(kind, pieces, **trainer):
    out = b"".join(field(1, field(1, t.encode()) + field(2, s) + field(3, k)) for t, s, k in pieces)
    return b"S" + out + field(2, field(3, kind) + b"".join(field(n, v) for n, v in trainer.get("spec", []))) + field(3, field(3, 1) + field(4, 1))


def gguf(entries):
    def string(text):
        data = text if isinstance(text, bytes) else text.encode()
        return struct.pack("<Q", len(data)) + data

    def value(v):
        if isinstance(v, bool):
            return struct.pack("<IB", 7, v)
        if isinstance(v, int):
            return struct.pack("<II", 4, v)
        if isinstance(v, str):
            return struct.pack("<I", 8) + string(v)
        kind, items = v
        body = b"".join(string(i) for i in items) if kind == 8 else struct.pack(f"<{len(items)}{'f' if kind == 6 else 'i'}", *items)
        return struct.pack("<IIQ", 9, kind, len(items)) + body

    out = b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries))
    for key, v in entries.items():
        out += string(f"tokenizer.{key}") + value(v)
    return b"G" + out + b"\0" * (-(len(out)) % 32)


def main():
    os.makedirs(OUT, exist_ok=True)
    text = b"\0abc w  x y <s>\xff aab"
    byte_level = {"type": "ByteLevel", "add_prefix_space": True}
    put("good_bpe", tokenizer_json() + text)
    put("good_byte_level", tokenizer_json(pre_tokenizer=byte_level, post_processor=byte_level, decoder={"type": "ByteLevel"}) + text)
    put("good_normalizers", tokenizer_json(normalizer={"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, {"type": "NFKC"}, {"type": "NFD"}, {"type": "Lowercase"},
        {"type": "StripAccents"}, {"type": "Strip"}, {"type": "Nmt"}, {"type": "BertNormalizer"}, {"type": "Replace", "pattern": {"Regex": "c+"}, "content": "b"}]}) + text)
    put("good_pretokenizers", tokenizer_json(pre_tokenizer={"type": "Sequence", "pretokenizers": [
        {"type": "Metaspace", "prepend_scheme": "first"}, {"type": "Digits"}, {"type": "Punctuation", "behavior": "Contiguous"}, {"type": "FixedLength", "length": 2},
        {"type": "Split", "pattern": {"Regex": "(?=b)"}, "behavior": "MergedWithNext"}]}) + text)
    put("good_decoders", tokenizer_json(decoder={"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 1}]}) + text)
    put("good_template", tokenizer_json(post_processor={"type": "TemplateProcessing", "single": [
        {"SpecialToken": {"id": "s", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {"s": {"id": "s", "ids": [999], "tokens": ["s"]}}}) + text)
    put("good_wordpiece", tokenizer_json({"type": "WordPiece", "vocab": VOCAB, "unk_token": "?"}, pre_tokenizer={"type": "BertPreTokenizer"}, decoder={"type": "WordPiece"}) + text)
    put("good_unigram", tokenizer_json({"type": "Unigram", "unk_id": 0, "vocab": [["?", 0.0], ["a", -1.5], ["ab", -2.5], ["b", -1.0]]}) + text)
    put("good_wordlevel", tokenizer_json({"type": "WordLevel", "vocab": VOCAB, "unk_token": "?"}, pre_tokenizer={"type": "Whitespace"}, decoder={"type": "CTC"}) + text)
    put("good_fallback", tokenizer_json({"type": "BPE", "byte_fallback": True, "vocab": {**VOCAB, **{f"<0x{b:02X}>": 100 + b for b in range(256)}}, "merges": ["a b"]}) + text)
    put("bad_json", b"J{\"model\":")
    put("bad_type", tokenizer_json({"type": "Unknown"}))
    put("bad_merge", tokenizer_json({"type": "BPE", "vocab": VOCAB, "merges": ["a z"]}))
    put("bad_id", tokenizer_json({"type": "BPE", "vocab": {"a": -1}, "merges": []}))
    put("bad_unk", tokenizer_json({"type": "Unigram", "unk_id": 9, "vocab": [["a", 0.0]]}))
    put("bad_regex", tokenizer_json(pre_tokenizer={"type": "Split", "pattern": {"Regex": "[a&&b]"}, "behavior": "Isolated"}))
    put("bad_charsmap", tokenizer_json(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAAAA=="}))
    put("bad_template", tokenizer_json(post_processor={"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "s", "type_id": 0}}], "special_tokens": {}}))
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), ("ab", -1.0, 1), ("▁", -2.0, 1), ("a", -3.0, 1), ("<ud>", 0.0, 4), ("abz", -4.0, 1)]
    put("good_spm_bpe", sentencepiece(2, pieces + [(f"<0x{b:02X}>", 0.0, 6) for b in range(256)], spec=[(35, 1)]))
    put("good_spm_unigram", sentencepiece(1, pieces))
    put("bad_spm_kind", sentencepiece(4, pieces))
    put("bad_spm_short", sentencepiece(2, pieces)[:50])
    put("bad_spm_unk", sentencepiece(2, pieces, spec=[(40, 500)]))
    tokens = ["<unk>", "<s>", "</s>", "a", "b", "ab", "Ġ", "▁a", "▁"]
    kinds = (5, [2, 3, 3, 1, 1, 1, 1, 1, 4])
    scores = (6, [0.0, 0.0, 0.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0])
    put("good_gguf_bpe", gguf({"ggml.model": "gpt2", "ggml.pre": "gpt-2", "ggml.tokens": (8, tokens), "ggml.token_type": kinds, "ggml.merges": (8, ["a b"]), "ggml.eos_token_id": 2, "chat_template": "{{x}}"}))
    put("good_gguf_spm", gguf({"ggml.model": "llama", "ggml.tokens": (8, tokens), "ggml.token_type": kinds, "ggml.scores": scores}))
    put("good_gguf_unigram", gguf({"ggml.model": "t5", "ggml.tokens": (8, tokens), "ggml.token_type": kinds, "ggml.scores": scores, "ggml.remove_extra_whitespaces": True}))
    put("good_gguf_wordpiece", gguf({"ggml.model": "bert", "ggml.tokens": (8, tokens), "ggml.token_type": kinds, "ggml.unknown_token_id": 0, "ggml.bos_token_id": 1}))
    put("bad_gguf_pre", gguf({"ggml.model": "gpt2", "ggml.pre": "odd", "ggml.tokens": (8, tokens), "ggml.merges": (8, [])}))
    put("bad_gguf_kind", gguf({"ggml.model": "rwkv", "ggml.tokens": (8, tokens)}))
    put("bad_gguf_scores", gguf({"ggml.model": "llama", "ggml.tokens": (8, tokens), "ggml.scores": (6, [0.0])}))
    put("bad_tiktoken", b"TYQ== 0\nYg== 2\n")
    put("bad_tiktoken_size", b"TYQ== 0\n")
    put("good_tekken", b"K" + json.dumps({"config": {"pattern": "\\p{L}+|\\s+", "default_num_special_tokens": 4}, "vocab": [{"token_bytes": "YQ=="}, {"token_bytes": "YWE="}],
                                         "special_tokens": [{"rank": 1, "token_str": "<s>"}]}).encode() + text)
    put("bad_tekken_rank", b'K{"config":{"pattern":"a","default_num_special_tokens":1},"vocab":[],"special_tokens":[{"rank":1,"token_str":"<s>"}]}')
    put("good_vocab_merges", b"V" + json.dumps(VOCAB, ensure_ascii=False).encode() + b"\x01#version: 0.2\na b\nab c\n" + text)
    put("bad_vocab_merges", b"V" + json.dumps(VOCAB, ensure_ascii=False).encode() + b"\x01a\n")


if __name__ == "__main__":
    main()
