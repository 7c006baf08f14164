#!/usr/bin/env python3
"""Sets tokenizer_bench beside PyPI's tokenizers: the same files, the same paragraphs, one thread, in turns.

    bench_tokenizers.py BENCH DATA [NAME...]

BENCH is the built bench/tokenizer_bench, DATA the test data folder with tokenizers/ and datasets/. Both sides use the
processor clock and the best of their passes; the turns alternate, and the ratio is that of the best of each side.
"""
import glob
import json
import os
import subprocess
import sys
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer  # noqa: E402  (after the environment)

NAMES = ["llama3", "qwen3", "gemma3", "llama2", "deepseek_v3"]
TURNS = 3


def reference_mb_s(tokenizer, paragraphs):
    total = sum(len(p.encode()) for p in paragraphs)
    begin = time.process_time()
    for paragraph in paragraphs:
        tokenizer.encode(paragraph)
    return total / (time.process_time() - begin) / 1e6


def compare(bench, data, name, files):
    path = f"{data}/tokenizers/{name}/tokenizer.json"
    tokenizer = Tokenizer.from_file(path)
    text = "\n\n".join(open(file, encoding="utf-8").read() for file in files)
    paragraphs = [p for p in text.split("\n\n") if p]
    own, load, reference = 0.0, float("inf"), 0.0
    for _ in range(TURNS):
        reference = max(reference, reference_mb_s(tokenizer, paragraphs))
        out = json.loads(subprocess.check_output([bench, path, *files]))
        own, load = max(own, out["ids_mb_s"]), min(load, out["load_ms"])
    return own, reference, load


def main():
    bench, data = sys.argv[1:3]
    sets = {"tinyshakespeare": [f"{data}/datasets/tinyshakespeare.txt"],
            "udhr": sorted(glob.glob(f"{data}/datasets/udhr/*.txt"))}
    print(f"{'tokenizer':14}{'text':18}{'tenon MB/s':>12}{'tokenizers MB/s':>17}{'ratio':>8}{'load ms':>10}")
    for name in sys.argv[3:] or NAMES:
        for text, files in sets.items():
            own, reference, load = compare(bench, data, name, files)
            print(f"{name:14}{text:18}{own:12.1f}{reference:17.1f}{own / reference:8.1f}{load:10.1f}", flush=True)


main()
