"""Rows of different lengths after one context, read and written side by side.

Rows are padded on the left, so that all end at the same place; the padding is masked
and takes no position. Which rows share a batch changes the last bits of the output, so
the same seed need not give the same words on another machine or in another batch.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from transformers.cache_utils import DynamicLayer

from probes.language_model.network import Network, fork
from probes.language_model.taps import PassStopped, tapped
from probes.language_model.tokens import Tokens
from probes.language_model.values import Context, log_softmax
from probes.taps import Activations, Tap

# Rows per pass of `look_each`; each has a copy of the context's cache.
_ROWS_AT_ONCE: Final = 32


@dataclass(frozen=True, slots=True)
class Written:
    """One row's text, cut before the stop string, if one ended it.

    Attributes:
        log_probabilities: Natural logs over the whole vocabulary, at temperature 1
            whatever the sampling temperature, including the token that ended the text.
    """

    text: str
    log_probabilities: tuple[float, ...]
    finished: bool


class Batch:
    """Rows that are read together; `logits` are those after the last token."""

    def __init__(
        self, network: Network, rows: Sequence[Sequence[int]], after: Context
    ) -> None:
        width = max(map(len, rows))
        network.require_room(len(after) + width)
        self._network = network
        self._cache = fork(after.cache)
        self._cache.batch_repeat_interleave(len(rows))
        padded = [[0] * (width - len(row)) + list(row) for row in rows]
        is_real = torch.tensor(
            [[0] * (width - len(row)) + [1] * len(row) for row in rows],
            device=network.device,
        )
        shared = is_real.new_ones(len(rows), len(after))
        self._mask = torch.cat([shared, is_real], dim=1)
        positions = len(after) + (is_real.cumsum(1) - 1).clamp(min=0)
        self._last = positions[:, -1:]
        # Shape (rows, 1, vocabulary).
        self.logits = self._run(torch.tensor(padded), positions)

    @property
    def rows(self) -> int:
        return len(self._last)

    def read(self, ids: torch.Tensor) -> None:
        """Read one more token in each row; `ids` has shape (rows,)."""
        self._network.require_room(self._mask.shape[1] + 1)
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(ids), 1)], dim=1)
        self._last = self._last + 1
        self.logits = self._run(ids[:, None], self._last)

    def keep(self, rows: Sequence[int]) -> None:
        chosen = torch.tensor(rows, dtype=torch.long, device=self._network.device)
        self._cache.batch_select_indices(chosen)
        self._mask, self._last = self._mask[chosen], self._last[chosen]
        self.logits = self.logits[chosen]

    def _run(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            output = self._network.module(
                input_ids=ids.to(self._network.device),
                attention_mask=self._mask,
                position_ids=positions,
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=1,
            )
        logits: torch.Tensor = output.logits
        return logits


def write_each(
    network: Network,
    rows: Sequence[Sequence[int]],
    after: Context,
    *,
    max_tokens: int,
    stop: Sequence[str] = (),
    temperature: float = 0.0,
    seed: int = 0,
) -> tuple[Written, ...]:
    """Write on from each row, side by side; sampled if the temperature is above 0."""
    chance = torch.Generator().manual_seed(seed)
    return tuple(
        written
        for company in _companies(rows, after)
        for written in _write(
            Batch(network, company, after),
            network.tokens,
            max_tokens=max_tokens,
            stop=stop,
            temperature=temperature,
            chance=chance,
        )
    )


def weigh_each(
    network: Network,
    rows: Sequence[Sequence[int]],
    options: Sequence[int],
    after: Context,
) -> np.ndarray:
    """Return each option's probability against the others, shape (rows, options)."""
    scores = [
        Batch(network, company, after).logits[:, -1].float()
        for company in _companies(rows, after)
    ]
    shares: np.ndarray = (
        torch.cat(scores)[:, list(options)].softmax(dim=1).cpu().numpy()
    )
    return shares


def look_each(
    network: Network, rows: Sequence[Sequence[int]], after: Context, taps: Sequence[Tap]
) -> list[Mapping[Tap, Activations]]:
    """Return the activations at each row's last token, float32 (width,) per tap."""
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    found: dict[int, Mapping[Tap, Activations]] = {}
    with tapped(network.module, taps, truncate=True) as flow:
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            indices = order[first : first + _ROWS_AT_ONCE]
            places = iter(indices)
            for company in _companies([rows[index] for index in indices], after):
                with suppress(PassStopped):
                    Batch(network, company, after)
                for row in range(len(company)):
                    states = {
                        tap: flow.row(tap, row, slice(-1, None))[0] for tap in taps
                    }
                    found[next(places)] = states
    return [found[index] for index in range(len(rows))]


def _companies(
    rows: Sequence[Sequence[int]], after: Context
) -> list[Sequence[Sequence[int]]]:
    """Return the rows that may share a batch: all, or each alone.

    A sliding-window layer counts padding into its window and so loses real tokens.
    """
    slides = any(type(layer) is not DynamicLayer for layer in after.cache.layers)
    return [[row] for row in rows] if slides else [rows]


def _write(
    batch: Batch,
    tokens: Tokens,
    *,
    max_tokens: int,
    stop: Sequence[str],
    temperature: float,
    chance: torch.Generator,
) -> list[Written]:
    rows = range(batch.rows)
    never = torch.tensor(sorted(tokens.control_ids - tokens.end_ids), dtype=torch.long)
    open_rows = list(range(len(rows)))
    ids: list[list[int]] = [[] for _ in rows]
    totals: list[list[float]] = [[] for _ in rows]
    texts, finished = [""] * len(rows), [False] * len(rows)
    for _ in range(max_tokens):
        scores = log_softmax(batch.logits[:, -1]).cpu()
        drawn = _draw(scores.index_fill(1, never, -torch.inf), temperature, chance)
        going_on = []
        for place, row in enumerate(open_rows):
            number = int(drawn[place])
            totals[row].append(float(scores[place, number]))
            if number in tokens.end_ids:
                finished[row] = True
                continue
            ids[row].append(number)
            text = tokens.decode(ids[row])
            cut = min((at for at in map(text.find, stop) if at >= 0), default=-1)
            finished[row] = cut >= 0
            texts[row] = text[:cut] if cut >= 0 else text
            if not finished[row]:
                going_on.append(place)
        if not going_on:
            break
        if len(going_on) < len(open_rows):
            batch.keep(going_on)
            open_rows = [open_rows[place] for place in going_on]
        batch.read(drawn[going_on])
    return [
        Written(text, tuple(total), ended)
        for text, total, ended in zip(texts, totals, finished, strict=True)
    ]


def _draw(
    scores: torch.Tensor, temperature: float, chance: torch.Generator
) -> torch.Tensor:
    """Draw a token for each row, or take the likeliest if the temperature is 0."""
    if temperature == 0:
        return scores.argmax(dim=1)
    shares = (scores / temperature).softmax(dim=1)
    return torch.multinomial(shares, 1, generator=chance)[:, 0]
