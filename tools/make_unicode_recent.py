#!/usr/bin/env python3
"""Writes src/text/unicode_recent.inc: the general categories that Unicode has given or changed since version 14, as far
as the tokenizers library knows them, so that words are split as it splits them, whatever version the system's
utf8proc knows. Run from the repository root with `pip install regex tokenizers`, under a Python whose unicodedata is
at version 14 (3.11)."""
import unicodedata

import regex
from tokenizers import Regex, pre_tokenizers

CATEGORIES = ["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Cf"]
SPLIT = {c: pre_tokenizers.Split(Regex(rf"\p{{{c}}}"), "isolated") for c in CATEGORIES}
MATCH = {c: regex.compile(rf"\p{{gc={c}}}") for c in CATEGORIES}


def main():
    assert unicodedata.unidata_version == "14.0.0", unicodedata.unidata_version
    ranges = []
    for code in [*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xE1000)]:
        old = unicodedata.category(chr(code))
        if old in MATCH and MATCH[old].match(chr(code)):
            continue
        new = next((c for c in CATEGORIES if MATCH[c].match(chr(code))), None)
        if new is None or new == old or len(SPLIT[new].pre_tokenize_str(f"\x01{chr(code)}\x01")) != 3:
            continue
        if ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == new:
            ranges[-1][1] = code
        else:
            ranges.append([code, code, new])
    with open("src/text/unicode_recent.inc", "w") as file:
        file.write("// First and last code point and general category, of what Unicode 15 and 16 added or changed. Written by\n"
                   "// tools/make_unicode_recent.py.\n")
        for first, last, category in ranges:
            file.write(f"{{0x{first:x}, 0x{last:x}, UTF8PROC_CATEGORY_{category.upper()}}},\n")


main()
