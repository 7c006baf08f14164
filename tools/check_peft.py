#!/usr/bin/env python3
"""Checks Tenon's adapters against the real peft, both ways: peft loads an adapter that Tenon trained and gives the
logits that Tenon gives, and Tenon loads one that peft saved (the goldens are such adapters; tests/golden_test.cc).

    tools/check_peft.py [--tenon build/release/tenon]

Needs: pip install torch transformers peft safetensors. Prints the distance of the logits; exits with 1 above 1e-5."""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenon", default=ROOT / "build" / "release" / "tenon")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = folder / "model"
        subprocess.run([ROOT / "tests" / "make_tiny_model", model], check=True)
        rows = folder / "rows.jsonl"
        rows.write_text('{"messages": [{"role": "user", "content": "say a"}, {"role": "assistant", "content": "it is aa"}]}\n')
        run = folder / "run"
        subprocess.run([a.tenon, "train", "--model", model, "--data", rows, "--out", run, "--steps", "20", "--lr", "1e-2",
                        "--rank", "4", "--tokens-per-step", "64", "--compute", "f32"], check=True)
        ids = torch.arange(40, dtype=torch.int32).reshape(2, 20) + 3
        save_file({"input_ids": ids, "labels": ids.clone()}, folder / "in.safetensors")
        subprocess.run([a.tenon, "probe", "--model", model, "--adapter", run / "adapter", "--tokens",
                        folder / "in.safetensors", "--out", folder / "out.safetensors", "--compute", "f32"], check=True)
        ours = load_file(folder / "out.safetensors")["logits"]
        base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
        peft = PeftModel.from_pretrained(base, run / "adapter")
        with torch.no_grad():
            theirs = peft(input_ids=ids.long()).logits
        distance = ((ours - theirs).norm() / theirs.norm()).item()
        print(f"peft loads Tenon's adapter; logits are {distance:.1e} apart")
        if distance > 1e-5:
            sys.exit(1)


if __name__ == "__main__":
    main()
