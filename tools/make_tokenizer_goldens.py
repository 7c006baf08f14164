#!/usr/bin/env python3
"""Writes tests/text/: tiny tokenizers and what the reference libraries make of many texts.

Run from the repository root, in an environment with `pip install tokenizers sentencepiece protobuf`, with the test
data folder at ../shared. Needed only when texts or cases are added; the results are committed.

- tokenizers/*.json, *.model: tokenizers of a few hundred tokens, trained here.
- texts.json: the texts, inline, as a part of a file under ../shared, or as a repeated string.
- goldens.tsv: a line a tokenizer and text: count and CRC-32 of the ids, of the spans, of the decoded text,
  and the ids themselves where they are few.
- elements.json: every element of the format, put in the place of a tiny tokenizer's stage, with ids, spans and
  decoded texts.
"""
import glob
import io
import json
import os
import random
import struct
import sys
import zlib

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from gguf_vocabulary import sentencepiece_model

OUT = "tests/text"
SHARED = "../shared/data"


def digest(data: bytes) -> str:
    return f"{zlib.crc32(data):08x}"


# ---------------------------------------------------------------------------------------------------- texts

INLINE = [
    "", " ", "  ", "\n", "\n\n", "\t", "Hello world", " Hello  World! ", "Hello, y'all! How're you? I'LL it's 'S 'Ve",
    "can't CAN'T 'ſ '", "3.14159 1234567890 ٣٤٥ ４５６ ½ ² Ⅷ", "HelloWorld fooBarBAZ getHTTPResponse ÀÉÎõü ǅ",
    "中文abc日本語カタカナひらがな123한국어", "שלום עולם مرحبا بالعالم", "हिन्दी क्षत्रिय தமிழ் ภาษาไทย", "👨‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🦙🚀",
    "e\u0301 n\u0303 A\u030a\u0323 ﬁ Å ㎏ 한글 \u1112\u1161\u11ab \u0958", "a\u200bb\u200cc\u200dd\ufeffe\u00ad",
    "\x00\x01\x02\x1b[0m\x7f\x80\x85\xa0", "İstanbul ß ﬃ ΑΣ Σ ς", "\u180e\u2028\u2029\u3000x\u2009y", "𐐀𐐨𝒜 𝟙𝟚 \U000e0001",
    "<s>hi</s> <unk> <|endoftext|><|im_start|>user\nx<|im_end|> [INST] [/INST]<bos><eos> [CLS] [MASK] x[SEP]",
    "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>  <|assistant|>  ok <tool_call>",
    "<｜User｜>q<｜Assistant｜> <start_of_turn>model\n<0x41><0x0A> ▁b▁▁c ▁ Ġhello Ċ", " \u0301x\u0301 .\u0301",
    "def f(x):\n    if x > 0:\r\n\treturn {'a': x**2}  # c\n\n\nclass A: pass\n", "a/b//c\\d http://x.y/z?q=1&r=%20 user@mail.com",
    "trail   ", "   lead", "tabs\t\t\tand\n \n \r\n\r\nlines", "!!!???...,,,;;;:::---___", "x" * 70, "ab " * 40, "\u4e00" * 50,
    "<MASK> aMASKb MASK  end <SW>x <SW>", "\ufffd \ufffd\ufffd", "$1,000.50 €20 £3 ¥4 + = < > ^ ` | ~",
]


def random_texts():
    rnd = random.Random(20)
    alphabet = list(" \n\r\t'\"abzABZsSt0189.,!?-_/<>|[]{}()éßñÅčΑαЖж中文の가각हिन्दीक्षไทย\u0301\u0308\u200d\u00a0\u2009\u3000🦙🚀👍🏽½²٣▁Ġ")
    alphabet += ["'s", "'LL", "  ", "\n\n", "<s>", "</s>", "<|im_end|>", "<|eot_id|>", "[INST]", "the", "ing", "ſ", "ﬁ", "\u1100\u1161", "\ufffd"]
    for _ in range(60):
        yield "".join(rnd.choice(alphabet) for _ in range(rnd.randint(3, 60)))
    # Assigned in Unicode 8 and before, so that every version of the tables says the same.
    ranges = [(0x20, 0x7e), (0xa0, 0x24f), (0x370, 0x3ff), (0x400, 0x4ff), (0x5d0, 0x5ea), (0x620, 0x64a), (0x904, 0x939), (0xe01, 0xe30),
              (0x1e00, 0x1eff), (0x2000, 0x206f), (0x20a0, 0x20bd), (0x2100, 0x218b), (0x2190, 0x23f3), (0x2460, 0x24ff), (0x3041, 0x3096),
              (0x30a1, 0x30fa), (0x4e00, 0x9fcc), (0xac00, 0xd7a3), (0xf900, 0xfa6d), (0xfb00, 0xfb06), (0xff01, 0xffbe), (0x1f300, 0x1f53d),
              (0x1d400, 0x1d454), (0x300, 0x34e), (0xd, 0xd), (0x9, 0xa)]
    for _ in range(40):
        yield "".join(chr(rnd.randint(*rnd.choice(ranges))) for _ in range(rnd.randint(3, 40)))


def make_texts():
    texts = [{"name": f"inline{i}", "text": t} for i, t in enumerate(INLINE)]
    texts += [{"name": f"random{i}", "text": t} for i, t in enumerate(random_texts())]
    for path in sorted(glob.glob(f"{SHARED}/datasets/udhr/*.txt")):
        name = os.path.basename(path)[:-4]
        texts.append({"name": f"udhr_{name}", "file": f"datasets/udhr/{name}.txt", "begin": 0, "end": 3000})
    texts.append({"name": "sonnet", "file": "datasets/sonnet.txt", "begin": 0, "end": 20000})
    texts.append({"name": "code", "file": "datasets/HumanEval.jsonl", "begin": 0, "end": 20000})
    texts.append({"name": "chat", "file": "datasets/mt_bench/question.jsonl", "begin": 0, "end": 10000})
    for name, unit, times in [("mega_a", "a", 1000000), ("mega_space", " ", 1000000), ("mega_word", "ab ", 333333),
                              ("mega_cjk", "中", 333333), ("mega_digit", "7", 1000000)]:
        texts.append({"name": name, "repeat": unit, "times": times})
    return texts


def text_of(entry):
    if "text" in entry:
        return entry["text"]
    if "repeat" in entry:
        return entry["repeat"] * entry["times"]
    with open(f"{SHARED}/{entry['file']}", "rb") as file:
        data = file.read()[entry["begin"]:entry["end"]]
    entry["end"] = entry["begin"] + len(data.decode("utf-8", "ignore").encode())  # whole characters
    return data.decode("utf-8", "ignore")


# ------------------------------------------------------------------------------------------- tiny tokenizers

def corpus():
    parts = [open(f"{SHARED}/datasets/sonnet.txt").read()]
    for name in ["eng", "fra", "deu_1996", "rus", "cmn_hans", "jpn", "hin", "arb"]:
        parts.append(open(f"{SHARED}/datasets/udhr/{name}.txt").read()[:6000])
    return [line for part in parts for line in part.split("\n") if line]


def train_byte_level(lines):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=True)
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=600, special_tokens=["<|endoftext|>", "<|im_end|>"],
                                                     initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_tokens([AddedToken("MASK", single_word=True, normalized=False), AddedToken("<SW>", lstrip=True, normalized=False)])
    t.add_special_tokens([AddedToken("<MASK>", rstrip=True, normalized=False)])
    return t


def train_metaspace(lines):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=specials, limit_alphabet=120, show_progress=False)
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    t.train_from_iterator(["▁" + line.replace(" ", "▁") for line in lines], trainer)
    data = json.loads(t.to_str())
    data["pre_tokenizer"] = None
    data["added_tokens"] = [a for a in data["added_tokens"] if not a["content"].startswith("<0x")]
    bos = next(a["id"] for a in data["added_tokens"] if a["content"] == "<s>")
    t = Tokenizer.from_str(json.dumps(data))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", bos)])
    return t


def train_unigram(lines):
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.decoder = decoders.Metaspace()
    latin = [line for line in lines if max(line) < "\u0250"]
    t.train_from_iterator(latin, trainers.UnigramTrainer(vocab_size=500, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", t.token_to_id("</s>"))])
    return t


def train_wordpiece(lines):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=600, limit_alphabet=150, show_progress=False,
                                                           special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def train_sentencepiece(lines, kind, path, **options):
    model = io.BytesIO()
    lines = [line for line in lines if max(line) < "\u0250"]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, model_type=kind, vocab_size=600,
                                             character_coverage=0.995, minloglevel=2, **options)
    with open(path, "wb") as file:
        file.write(model.getvalue())


def charsmap_rules():
    """A small character map: NFKC of a few characters, spaces, and a deletion."""
    rows = [("ﬁ", "fi"), ("ﬃ", "ffi"), ("\u212b", "\u00c5"), ("½", "1/2"), ("\u3000", " "), ("\u00a0", " "), ("\t", " "), ("\u200b", ""), ("Ａ", "A"),
            ("e\u0301", "\u00e9"), ("㎏", "kg"), ("…", "...")]
    path = "/tmp/tenon_charsmap.tsv"
    with open(path, "w") as file:
        for a, b in rows:
            file.write(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n")
    return path


# ---------------------------------------------------------------------------------------------------- cases

def byte_offsets(text):
    offsets = [0]
    for c in text:
        offsets.append(offsets[-1] + len(c.encode()))
    return offsets


def encode(tokenizer, text):
    e = tokenizer.encode(text)
    to_byte = byte_offsets(text)
    return e.ids, [(to_byte[a], to_byte[b]) for a, b in e.offsets]


def golden_line(key, tokenizer, entry, text):
    ids, spans = encode(tokenizer, text)
    decoded = tokenizer.decode(ids, skip_special_tokens=False)
    flat = b"".join(struct.pack("<qq", a, b) for a, b in spans)
    few = " ".join(map(str, ids)) if len(ids) <= 24 and entry["name"].startswith("inline") else ""
    return "\t".join([key, entry["name"], str(len(ids)), digest(struct.pack(f"<{len(ids)}i", *ids)), digest(flat), digest(decoded.encode()), few])


def sentencepiece_line(key, processor, entry, text):
    ids = processor.EncodeAsIds(text)
    few = " ".join(map(str, ids)) if len(ids) <= 24 and entry["name"].startswith("inline") else ""
    return "\t".join([key, entry["name"], str(len(ids)), digest(struct.pack(f"<{len(ids)}i", *ids)), "-", "-", few])


ELEMENT_TEXTS = [0, 4, 6, 7, 8, 10, 11, 12, 15, 16, 17, 18, 19, 20, 22, 25, 26, 30, 31, 35, 37]


def elements(charsmap_base64):
    n, p, d, q = "normalizer", "pre_tokenizer", "decoder", "post_processor"
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    yield from [("byte_level", {n: {"type": kind}}) for kind in ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Nmt"]]
    yield "byte_level", {n: {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]}}
    for left, right in [(True, False), (False, True), (True, True)]:
        yield "byte_level", {n: {"type": "Strip", "strip_left": left, "strip_right": right}}
    yield "byte_level", {n: {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": "_"}}
    yield "byte_level", {n: {"type": "Replace", "pattern": {"Regex": "[^\\S\\n]+|\\w(?=\\d)"}, "content": "<>"}}
    yield "byte_level", {n: {"type": "Replace", "pattern": {"String": "l"}, "content": "LL"}}
    yield "byte_level", {n: {"type": "Prepend", "prepend": "<<"}}
    yield "byte_level", {n: {"type": "ByteLevel"}, p: None}
    yield "byte_level", {n: {"type": "Precompiled", "precompiled_charsmap": charsmap_base64}}
    for clean, cjk, accents, lower in [(True, True, None, True), (False, False, False, False), (True, False, True, False), (False, True, None, True)]:
        yield "byte_level", {n: {"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": cjk, "strip_accents": accents, "lowercase": lower}}

    def then_bytes(step):
        return {p: {"type": "Sequence", "pretokenizers": [step, byte_level]}}

    for kind in ["Whitespace", "WhitespaceSplit", "BertPreTokenizer"]:
        yield "byte_level", then_bytes({"type": kind})
    for behaviour in ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]:
        yield "byte_level", then_bytes({"type": "Punctuation", "behavior": behaviour})
        for invert in [False, True]:
            yield "byte_level", then_bytes({"type": "Split", "pattern": {"Regex": "\\p{L}+|\\d"}, "behavior": behaviour, "invert": invert})
            yield "byte_level", then_bytes({"type": "Split", "pattern": {"String": "l"}, "behavior": behaviour, "invert": invert})
    yield "byte_level", then_bytes({"type": "Split", "pattern": {"Regex": "(?=[A-Z])"}, "behavior": "Isolated", "invert": False})
    yield "byte_level", then_bytes({"type": "Split", "pattern": {"Regex": "\\s+$|^\\w"}, "behavior": "Isolated", "invert": False})
    for individual in [False, True]:
        yield "byte_level", then_bytes({"type": "Digits", "individual_digits": individual})
    yield "byte_level", then_bytes({"type": "CharDelimiterSplit", "delimiter": "o"})
    yield "byte_level", then_bytes({"type": "FixedLength", "length": 3})
    for scheme in ["always", "first", "never"]:
        for split in [True, False]:
            yield "byte_level", then_bytes({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split})
            yield "byte_level", {p: {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}, byte_level]}}
    for prefix in [False, True]:
        for regex in [False, True]:
            yield "byte_level", {p: {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex},
                                 q: {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}}
    yield "byte_level", {p: {"type": "Sequence", "pretokenizers": [{"type": "Punctuation", "behavior": "Contiguous"}, {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
                                                                   {"type": "Digits", "individual_digits": False}, {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated", "invert": False}]}}
    for trim in [False, True]:
        yield "byte_level", {q: {"type": "RobertaProcessing", "sep": ["b", 5], "cls": ["a", 4], "trim_offsets": trim, "add_prefix_space": True}}
    yield "byte_level", {q: {"type": "Sequence", "processors": [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
                                                                {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "y", "type_id": 0}}],
                                                                 "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                                                                 "special_tokens": {"x": {"id": "x", "ids": [7, 8], "tokens": ["7", "8"]}, "y": {"id": "y", "ids": [9], "tokens": ["9"]}}}]}}
    for scheme in ["always", "first", "never"]:
        yield "metaspace", {n: None, p: {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": scheme == "first"}, d: {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": True}}
    yield "metaspace", {d: None}
    yield "metaspace", {d: {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Strip", "content": " ", "start": 1, "stop": 2}]}}
    yield "metaspace", {d: {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"Regex": "▁+"}, "content": "_"}, {"type": "Strip", "content": "e", "start": 1, "stop": 1}]}}
    yield "metaspace", {d: {"type": "CTC", "pad_token": "e", "word_delimiter_token": "▁", "cleanup": True}}
    yield "metaspace", {d: {"type": "CTC", "pad_token": "a", "word_delimiter_token": "▁", "cleanup": False}}
    yield "metaspace", {d: {"type": "BPEDecoder", "suffix": "e"}}
    for cleanup in [False, True]:
        yield "wordpiece", {d: {"type": "WordPiece", "prefix": "##", "cleanup": cleanup}}
    yield "unigram", {n: None}
    yield "unigram", {n: {"type": "Precompiled", "precompiled_charsmap": charsmap_base64}, p: {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}]}}


def element_cases(tokenizer, texts, rnd):
    cases = []
    for index in ELEMENT_TEXTS:
        text = texts[index]["text"]
        ids, spans = encode(tokenizer, text)
        cases.append({"text": text, "ids": ids, "spans": [x for span in spans for x in span]})
    decode = []
    size = tokenizer.get_vocab_size()
    for _ in range(4):
        ids = [rnd.randrange(size) for _ in range(rnd.randint(1, 14))]
        decode.append({"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=False), "no_special": tokenizer.decode(ids)})
    return cases, decode


def gguf_lines(texts, contents):
    key = "gguf_vocab/ggml-vocab-baichuan.gguf"
    processor = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(f"{SHARED}/{key}"))
    return [sentencepiece_line(key, processor, e, t) for e, t in zip(texts, contents)]


def main():
    os.makedirs(f"{OUT}/tokenizers", exist_ok=True)
    lines = corpus()
    tiny = {"byte_level": train_byte_level(lines), "metaspace": train_metaspace(lines), "unigram": train_unigram(lines), "wordpiece": train_wordpiece(lines)}
    for name, tokenizer in tiny.items():
        with open(f"{OUT}/tokenizers/{name}.json", "w") as file:
            json.dump(json.loads(tokenizer.to_str()), file, ensure_ascii=False, separators=(",", ":"))
    rules = charsmap_rules()
    train_sentencepiece(lines, "bpe", f"{OUT}/tokenizers/bpe.model", byte_fallback=True, normalization_rule_name="identity",
                        remove_extra_whitespaces=False, user_defined_symbols=["<ud>", "▁▁", "MASK"])
    train_sentencepiece(lines, "unigram", f"{OUT}/tokenizers/unigram.model", normalization_rule_tsv=rules, user_defined_symbols=["<ud>", "MASK"])
    texts = make_texts()
    contents = [text_of(entry) for entry in texts]
    with open(f"{OUT}/texts.json", "w") as file:
        json.dump(texts, file, ensure_ascii=False, indent=0)
    out = []
    inline = [(e, t) for e, t in zip(texts, contents) if "text" in e or "repeat" in e]
    for name in tiny:
        tokenizer = Tokenizer.from_file(f"{OUT}/tokenizers/{name}.json")
        out += [golden_line(f"{name}.json", tokenizer, e, t) for e, t in inline]
    for name in ["bpe", "unigram"]:
        processor = sentencepiece.SentencePieceProcessor(model_file=f"{OUT}/tokenizers/{name}.model")
        out += [sentencepiece_line(f"{name}.model", processor, e, t) for e, t in inline]
    for path in sorted(glob.glob(f"{SHARED}/tokenizers/*/tokenizer.json")):
        key = os.path.relpath(path, SHARED)
        print(key, file=sys.stderr)
        tokenizer = Tokenizer.from_file(path)
        tokenizer.no_padding()
        tokenizer.no_truncation()
        out += [golden_line(key, tokenizer, e, t) for e, t in zip(texts, contents)]
    for path in sorted(glob.glob(f"{SHARED}/tokenizers/*/tokenizer.model*")):
        key = os.path.relpath(path, SHARED)
        print(key, file=sys.stderr)
        processor = sentencepiece.SentencePieceProcessor(model_file=path)
        out += [sentencepiece_line(key, processor, e, t) for e, t in zip(texts, contents)]
    out += gguf_lines(texts, contents)
    with open(f"{OUT}/goldens.tsv", "w") as file:
        file.write("\n".join(out) + "\n")
    write_elements(texts)


def write_elements(texts):
    import base64
    sys.path.insert(0, os.path.dirname(sentencepiece.__file__))
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(open(f"{OUT}/tokenizers/unigram.model", "rb").read())
    charsmap = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    rnd = random.Random(7)
    result = []
    for base, replace in elements(charsmap):
        data = json.load(open(f"{OUT}/tokenizers/{base}.json"))
        data.update(replace)
        try:
            tokenizer = Tokenizer.from_str(json.dumps(data))
            cases, decode = element_cases(tokenizer, texts, rnd)
        except BaseException as error:  # the reference panics on some combinations
            print("left out:", base, json.dumps(replace)[:120], error, file=sys.stderr)
            continue
        result.append({"base": base, "replace": replace, "encode": cases, "decode": decode})
    with open(f"{OUT}/elements.json", "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in result) + "\n]\n")


if __name__ == "__main__":
    main()
