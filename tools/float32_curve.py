#!/usr/bin/env python3
"""How far transformers' own float32 run of a golden's six AdamW losses is from its float64 run.

    tools/float32_curve.py ../shared/golden/qwen3_5 ...

Needs torch, transformers and peft. What it prints is the reason for a `train_loss` in
tests/golden_supported.txt: AdamW divides a gradient by its size, so one that is zero but for rounding moves a
weight as far as any other.
"""

import json
import sys
from pathlib import Path

import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM


def curve(folder: Path, settings: dict, dtype: torch.dtype) -> list[float]:
    tensors = load_file(folder / "golden.safetensors")
    base = AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation="eager", experts_implementation="eager"
    )
    model = PeftModel.from_pretrained(base, folder / "adapter", is_trainable=True).to(dtype).eval()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(
        trained,
        lr=settings["lr"],
        betas=tuple(settings["betas"]),
        eps=settings["eps"],
        weight_decay=settings["weight_decay"],
    )
    losses = []
    for _ in settings["losses"]:
        optimiser.zero_grad()
        loss = model(input_ids=tensors["input_ids"].long(), labels=tensors["labels"].long()).loss
        losses.append(loss.item())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, settings["max_grad_norm"])
        optimiser.step()
    return losses


def main() -> None:
    torch.set_num_threads(1)
    for name in sys.argv[1:]:
        folder = Path(name)
        settings = json.loads((folder / "golden.json").read_text())["lora_train"]
        apart = [abs(a - b) for a, b in zip(curve(folder, settings, torch.float32), settings["losses"])]
        print(f"{folder.name:16} {max(apart):.1e}  by step: {' '.join(f'{x:.1e}' for x in apart)}")


if __name__ == "__main__":
    main()
