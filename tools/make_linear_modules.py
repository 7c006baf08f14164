#!/usr/bin/env python3
"""Writes tests/linear_modules.txt: which modules PEFT's `target_modules="all-linear"` takes in each golden family.

    tools/make_linear_modules.py GOLDEN_ROOT > tests/linear_modules.txt

PEFT (tuners_utils.py) takes what is a torch.nn.Linear or a Conv1D, but for the head. Routers of mixtures of experts are
mostly neither. Needs torch and transformers. Lines: `family NAME`, then `MODULE COUNT`, where N stands for each number.
"""
import collections
import json
import os
import re
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.pytorch_utils import Conv1D


def main():
    root = sys.argv[1]
    print("# Made by tools/make_linear_modules.py.")
    for family in sorted(os.listdir(root)):
        if not os.path.exists(f"{root}/{family}/config.json"):
            continue
        try:
            config = AutoConfig.from_pretrained(f"{root}/{family}")
            with torch.device("meta"):
                model = AutoModelForCausalLM.from_config(config)
        except ValueError as error:
            print(f"{family}: {error}", file=sys.stderr)
            continue
        head = model.get_output_embeddings()
        counts = collections.Counter(re.sub(r"(?<=\.)\d+(?=\.|$)", "N", name) for name, module in model.named_modules()
                                     if isinstance(module, (torch.nn.Linear, Conv1D)) and module is not head)
        print("family", family)
        for name, count in sorted(counts.items()):
            print(name, count)


main()
