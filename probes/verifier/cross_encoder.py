"""The cross-encoder: a question and an entry read as one text, by layers of their own.

It sees which words of the entry belong to which of the question, which states that were
made of each text alone cannot tell; nothing of an entry can be kept for it, so that only
the likeliest entries are read so. The design is that of Nogueira and Cho, "Passage
Re-ranking with BERT" (2019).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoConfig

from probes.language_model.loading import choose_dtype

from .reading import Pair, Reader, by_length, through, upper_layers

_CHUNK: Final = 32  # pairs that are read at once


class CrossEncoder(nn.Module):
    """A logit that the entry answers, of each pair read together."""

    def __init__(self, layers: nn.ModuleList, width: int) -> None:
        super().__init__()
        self.layers = layers
        self.head = head(width)

    @classmethod
    def of(cls, directory: Path, *, fitted: bool = True) -> Self:
        """Return one of all layers of the embedder, as it came or without weights yet."""
        config = AutoConfig.from_pretrained(str(directory))
        layers = upper_layers(directory, config.num_hidden_layers, fitted=fitted)
        for part in layers.modules():
            if isinstance(part, nn.Dropout):
                # It doubles a step's time, and no question is fitted more than a few times.
                part.p = 0.0
        return cls(layers, config.hidden_size)

    def forward(
        self, hidden: torch.Tensor, kinds: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Return logits of shape (pairs,).

        Args:
            hidden: What the embedder's first layer reads: (pairs, tokens, width).
            kinds: 0 of the question's tokens and 1 of the entry's: (pairs, tokens).
            mask: 1 of text and 0 of what pads: the same shape.
        """
        states = through(self.layers, hidden, mask)
        return pooled(self.head, states, mask * (kinds == 0), mask * kinds)


def head(width: int) -> nn.Sequential:
    """Return what makes a logit of the states of a pair, with new weights."""
    return nn.Sequential(nn.Linear(3 * width, width), nn.GELU(), nn.Linear(width, 1))


def pooled(head: nn.Module, states: torch.Tensor, *sides: torch.Tensor) -> torch.Tensor:
    """Return logits (pairs,) of the first token's state and the means of both sides.

    Args:
        states: (pairs, tokens, width).
        sides: 1 of the question's tokens and of the entry's, 0 elsewhere: (pairs, tokens).
    """
    means = [
        (states * part[:, :, None]).sum(1) / part.sum(1, keepdim=True).clamp_min(1)
        for part in (side.to(states) for side in sides)
    ]
    logits: torch.Tensor = head(torch.cat([states[:, 0], *means], 1))
    return logits.float().squeeze(-1)


def joint_logits(
    network: CrossEncoder, reader: Reader, pairs: Sequence[Pair]
) -> torch.Tensor:
    """Return each pair's logit, (pairs,); those of like length are read together."""
    rows = [reader.joined(question, entry) for question, entry in pairs]
    lengths = [len(ids) for ids, _ in rows]
    return by_length(
        lengths,
        _CHUNK,
        lambda places: _read(network, reader, [rows[at] for at in places]),
    )


def _read(
    network: CrossEncoder,
    reader: Reader,
    rows: Sequence[tuple[NDArray[np.int32], NDArray[np.int32]]],
) -> torch.Tensor:
    device, dtype = reader.device, next(network.parameters()).dtype
    ids = _padded([own for own, _ in rows])
    kinds = _padded([kind for _, kind in rows]).to(device)
    mask = _padded([np.ones(len(own), np.float32) for own, _ in rows]).to(device)
    # While it is fitted the weights stay in full and only the products are halved.
    halves = network.training and choose_dtype(device) is torch.bfloat16
    with torch.autocast(device.type, torch.bfloat16, enabled=halves):
        hidden = reader.embedded(ids, kinds).to(dtype)
        logits: torch.Tensor = network(hidden, kinds, mask)
    return logits.float().cpu()


def _padded(rows: Sequence[NDArray[Any]]) -> torch.Tensor:
    return pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True)
