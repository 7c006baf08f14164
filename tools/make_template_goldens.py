#!/usr/bin/env python3
"""Writes the goldens of src/text/chat_template under tests/text/templates/ from PyPI's jinja2 (3.1.6).

    make_template_goldens.py DATA

DATA is the folder with chat_templates/ and tokenizers/. Templates and conversations of the suite itself are read from
tests/text/templates/. Run from the root of the repository. Files written:
  cases.json        the conversations
  families.json     full texts for the templates that are committed (families/*.jinja)
  all.tsv           for every template of DATA and every conversation, a hash and a length, or an error
  expressions.json  small templates with their output
"""
import glob
import json
import os
import sys

from jinja_reference import CLOCK, render
from template_cases import conversations
from template_expressions import expressions

OUT = "tests/text/templates"


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value


def dump(name, value):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as out:
        out.write(value)


def templates(data):
    """(name, source) of every template below DATA; a tokenizer's config holds one under chat_template."""
    out = []
    for path in sorted(glob.glob(data + "/**/*.jinja", recursive=True)):
        with open(path, encoding="utf-8", newline="") as file:
            out.append((os.path.relpath(path, data), file.read()))
    for path in sorted(glob.glob(data + "/tokenizers/**/tokenizer_config.json", recursive=True)):
        with open(path, encoding="utf-8") as file:
            template = json.load(file).get("chat_template")
        if template is not None:
            assert isinstance(template, str)
            out.append((os.path.relpath(path, data), template))
    return out


def families(cases):
    out = {}
    for path in sorted(glob.glob(OUT + "/families/*.jinja")):
        with open(path, encoding="utf-8", newline="") as file:
            source = file.read()
        rows = out[os.path.basename(path)[:-6]] = {}
        for name, variables in cases.items():
            text, error, spans = render(source, variables)
            rows[name] = {"error": list(error)} if error else {"text": text, "spans": spans}
    return out


def all_rows(data, cases):
    errors = []
    lines = ["cases\t" + "\t".join(cases)]
    for name, source in templates(data):
        cells = [name, f"{fnv(source.encode()):016x}"]
        for variables in cases.values():
            text, error, _ = render(source, variables)
            if error:
                if error not in errors:
                    errors.append(error)
                cells.append(f"!{errors.index(error)}")
            elif " at 0x" in text:  # an address: not the same twice
                cells.append("-")
            else:
                cells.append(f"{fnv(text.encode()):016x}:{len(text.encode())}")
        lines.append("\t".join(cells))
    for index, (kind, message) in enumerate(errors):
        lines.append(f"error\t{index}\t{kind}\t{json.dumps(message)}")
    return "\n".join(lines) + "\n"


def expression_rows():
    rows = []
    for source, variables in expressions():
        text, error, spans = render(source, variables)
        if text is not None and " at 0x" in text:  # an address: not the same twice
            continue
        row = {"t": source}
        if variables:
            row["v"] = variables
        if error:
            row["e"] = list(error)
        else:
            row["o"] = text
        if spans:
            row["s"] = spans
        rows.append(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
    return "[\n" + ",\n".join(rows) + "\n]\n"


def main():
    cases = conversations()
    dump("cases.json", json.dumps({"clock": CLOCK, "cases": cases}, ensure_ascii=False, separators=(",", ":")) + "\n")
    dump("families.json", json.dumps(families(cases), ensure_ascii=False, indent=0) + "\n")
    dump("all.tsv", all_rows(sys.argv[1], cases))
    dump("expressions.json", expression_rows())


if __name__ == "__main__":
    main()
