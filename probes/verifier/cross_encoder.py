"""The cross-encoder: a question and an entry read as one text, by layers of their own.

It sees which words of the entry belong to which of the question, which states that were
made of each text alone cannot tell; nothing of an entry can be kept for it, so that only
the likeliest entries are read so. The design is that of Nogueira and Cho, "Passage
Re-ranking with BERT" (2019).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from transformers import AutoConfig

from probes.language_model.loading import choose_dtype

from .reading import Pair, Reader, through, upper_layers

_CHUNK: Final = 32  # pairs that are read at once


class CrossEncoder(nn.Module):
    """A logit that the entry answers, of each pair read together."""

    def __init__(self, layers: nn.ModuleList, width: int) -> None:
        super().__init__()
        self.layers = layers
        self.head = nn.Sequential(
            nn.Linear(3 * width, width), nn.GELU(), nn.Linear(width, 1)
        )

    @classmethod
    def of(cls, directory: Path, *, fitted: bool = True) -> Self:
        """Return one of all layers of the embedder, as it came or without weights yet."""
        config = AutoConfig.from_pretrained(str(directory))
        layers = upper_layers(directory, config.num_hidden_layers, fitted=fitted)
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
        sides = [
            (states * part[:, :, None]).sum(1) / part.sum(1, keepdim=True).clamp_min(1)
            for part in ((mask * (kinds == 0)).to(states), (mask * kinds).to(states))
        ]
        logits: torch.Tensor = self.head(torch.cat([states[:, 0], *sides], 1))
        return logits.float().squeeze(-1)


def joint_logits(
    network: CrossEncoder, reader: Reader, pairs: Sequence[Pair]
) -> torch.Tensor:
    """Return each pair's logit, (pairs,); those of like length are read together."""
    rows = [reader.joined(question, entry) for question, entry in pairs]
    order = sorted(range(len(rows)), key=lambda at: len(rows[at][0]))
    found = [
        _read(network, reader, [rows[at] for at in order[start : start + _CHUNK]])
        for start in range(0, len(order), _CHUNK)
    ]
    back = torch.empty(len(order), dtype=torch.long)
    back[torch.tensor(order)] = torch.arange(len(order))
    return torch.cat(found)[back]


def _read(
    network: CrossEncoder,
    reader: Reader,
    rows: Sequence[tuple[NDArray[np.int32], NDArray[np.int32]]],
) -> torch.Tensor:
    longest = max(len(ids) for ids, _ in rows)
    ids = np.zeros((len(rows), longest), np.int64)
    kinds, mask = np.zeros_like(ids), np.zeros(ids.shape, np.float32)
    for row, (own, kind) in enumerate(rows):
        ids[row, : len(own)], kinds[row, : len(own)], mask[row, : len(own)] = (
            own,
            kind,
            1,
        )
    device, dtype = reader.device, next(network.parameters()).dtype
    # While it is fitted the weights stay in full and only the products are halved.
    halves = network.training and choose_dtype(device) is torch.bfloat16
    with torch.autocast(device.type, torch.bfloat16, enabled=halves):
        hidden = reader.embedded(torch.from_numpy(ids), torch.from_numpy(kinds))
        logits: torch.Tensor = network(
            hidden.to(dtype),
            torch.from_numpy(kinds).to(device),
            torch.from_numpy(mask).to(device),
        )
    return logits.float().cpu()
