#!/usr/bin/env python3
"""Writes src/text/language_samples.inc: a sentence in each language of the UDHR set.

    make_language_samples.py UDHR

UDHR is the folder with index.tsv and the texts (Universal Declaration of Human Rights, one file a language). The
sentence is the first line of a paragraph's length: the beginning of the preamble. Run from the root of the repository.
"""
import sys

PARAGRAPH_CHARACTERS = {"Hans": 40, "Hant": 40, "Jpan": 40, "Kore": 40, "Yiii": 40}


def sentence(path, script):
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return next(line for line in lines if len(line) >= PARAGRAPH_CHARACTERS.get(script, 80))


def main():
    folder = sys.argv[1]
    with open(f"{folder}/index.tsv", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    with open("src/text/language_samples.inc", "w", encoding="utf-8") as out:
        out.write("// A paragraph of the Universal Declaration of Human Rights: TENON_LANGUAGE(name, text). Written by\n"
                  "// tools/make_language_samples.py.\n")
        for key, name, script, *_ in rows:
            out.write(f'TENON_LANGUAGE("{name}", R"({sentence(f"{folder}/{key}.txt", script)})")\n')


main()
