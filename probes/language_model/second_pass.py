"""Activations of texts written elsewhere, from one pass that stops early.

For training, and for answers of a server that returns no activations, with this model
as surrogate. Answers written by this model get theirs while they are written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

import torch

from probes.language_model.network import Network
from probes.language_model.taps import PassStopped, tapped
from probes.taps import Activations, Tap

# Positions per pass, including padding.
_POSITIONS_AT_ONCE: Final = 4_096


@dataclass(frozen=True, slots=True)
class Passing:
    """A text's tokens, of which the positions `start` to `end` (exclusive) are kept.

    `first` is one more position, kept before them.
    """

    ids: tuple[int, ...]
    start: int
    end: int
    first: int | None = None

    @classmethod
    def of_last(cls, ids: tuple[int, ...]) -> Self:
        """Return a pass over these tokens that keeps only the last one."""
        return cls(ids, len(ids) - 1, len(ids))

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end <= len(self.ids):
            raise ValueError(
                f"positions {self.start} to {self.end} of {len(self.ids)} tokens"
            )

    @property
    def positions(self) -> list[int]:
        before = [] if self.first is None else [self.first]
        return [*before, *range(self.start, self.end)]


def read_activations(
    network: Network, passings: Sequence[Passing], taps: Sequence[Tap]
) -> list[Mapping[Tap, Activations]]:
    """Read texts written elsewhere; return float32 (kept positions, width) for each.

    Texts of similar length share a pass, padded on the right and masked, and every pass
    ends at the deepest tap. Nothing else may run on the network meanwhile.
    """
    found: dict[int, Mapping[Tap, Activations]] = {}
    order = sorted(range(len(passings)), key=lambda index: -len(passings[index].ids))
    for longest in order[:1]:
        network.require_room(len(passings[longest].ids))
    with tapped(network.module, taps, truncate=True) as flow:
        for first, last in pairwise(_bounds([len(passings[i].ids) for i in order])):
            batch = order[first:last]
            _run(network, [passings[index].ids for index in batch])
            for row, index in enumerate(batch):
                kept = passings[index].positions
                found[index] = {tap: flow.row(tap, row, kept) for tap in taps}
    return [found[index] for index in range(len(passings))]


def _run(network: Network, rows: Sequence[Sequence[int]]) -> None:
    width = max(map(len, rows))
    numbers = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for index, row in enumerate(rows):
        numbers[index, : len(row)] = torch.tensor(list(row))
        mask[index, : len(row)] = 1
    try:
        with torch.inference_mode():
            network.module(
                input_ids=numbers.to(network.device),
                attention_mask=mask.to(network.device),
                use_cache=False,
            )
    except PassStopped:
        return


def _bounds(lengths: Sequence[int]) -> list[int]:
    """Cut descending lengths into batches of bounded padded size."""
    bounds = [0]
    for index, length in enumerate(lengths):
        widest = lengths[bounds[-1]] if index > bounds[-1] else length
        if (index + 1 - bounds[-1]) * widest > _POSITIONS_AT_ONCE and index > bounds[
            -1
        ]:
            bounds.append(index)
    return [*bounds, len(lengths)] if lengths else bounds
