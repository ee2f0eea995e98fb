"""Writing an adapter: weights as safetensors, everything else as JSON, never a pickle."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file

from .card import CARD, CONFIGURATION, FORMAT, WEIGHTS, AdapterCard, sha256_of


def save_adapter(directory: Path, adapted: PeftModel, card: AdapterCard) -> AdapterCard:
    """Write an adapter's files, half precision; the card comes last and names the weights.

    A write that was broken off leaves files that `read_card` refuses.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / CARD).unlink(missing_ok=True)
    adapted.save_pretrained(str(directory), safe_serialization=True)
    # Its own model card is a form to fill in; ours says what there is to say.
    (directory / "README.md").unlink(missing_ok=True)
    forget_path(directory / CONFIGURATION, "base_model_name_or_path", card.base)
    weights = load_file(directory / WEIGHTS)
    halves = {name: value.to(torch.bfloat16) for name, value in weights.items()}
    save_file(halves, directory / WEIGHTS, metadata={"format": "pt"})
    written = replace(card, weights_sha256=sha256_of(directory / WEIGHTS))
    text = json.dumps({"format": FORMAT, **asdict(written)}, indent=2, sort_keys=True)
    (directory / CARD).write_text(f"{text}\n", encoding="utf-8")
    return written


def forget_path(file: Path, field: str, name: str) -> None:
    """Let a configuration name a model, not the directory of the machine that read it."""
    said = json.loads(file.read_text(encoding="utf-8"))
    said[field] = name
    file.write_text(json.dumps(said, indent=2, sort_keys=True) + "\n", encoding="utf-8")
