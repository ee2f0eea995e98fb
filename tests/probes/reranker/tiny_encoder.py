"""A cross-encoder with random weights, and preferences that it can learn."""

from pathlib import Path

import torch
import transformers

from probes.reranker.preferences import Preference
from tests.probes import tiny_models

ANIMALS = ("cat", "dog", "fish", "bird", "horse")


def save_encoder(directory: Path, *, safetensors: bool = True) -> Path:
    """Write a small BERT without any output for scores."""
    tokenizer = tiny_models.tokenizer()
    tokenizer.pad_token = "<s>"
    tokenizer.save_pretrained(directory)
    torch.manual_seed(3)
    network = transformers.BertModel(
        transformers.BertConfig(
            vocab_size=320, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=48, max_position_embeddings=128, pad_token_id=258,
        )
    )  # fmt: skip
    network.save_pretrained(directory)
    if not safetensors:
        (directory / "model.safetensors").unlink()
        torch.save(network.state_dict(), directory / "pytorch_model.bin")
    return directory


def preferences(count: int) -> list[Preference]:
    """Return preferences for notes that end in an exclamation mark."""
    return [
        Preference(
            f"{ANIMALS[number % 5]} {number}?",
            (f"{ANIMALS[number % 3]}!!!!",),
            tuple(f"{ANIMALS[(number + i) % 5]}...." for i in range(1 + number % 3)),
        )
        for number in range(count)
    ]
