"""How likely a model considers continuations, and labels after examples.

The position of a label is known from how the row was built and never searched for, so a
text that looks like an example is not taken for one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from probes.language_model.network import Network
from probes.language_model.taps import NO_STEERING, Steering, steered
from probes.language_model.values import Context, Passage, Scored, log_softmax, resume

# Positions per pass whose logits are held: 100 MB at 50,000 tokens in bfloat16.
_POSITIONS_AT_ONCE: Final = 1_024


def score_each(
    network: Network,
    options: Sequence[Sequence[int]],
    after: Sequence[Context | Passage],
    *,
    stops: Sequence[int] = (),
    skips: Sequence[int] | None = None,
) -> tuple[Scored, ...]:
    """Return how likely each option is to follow its own passage, in one pass.

    The passages share one prefix, any of `stops` may end an option, and the number of
    tokens in `skips` is read at the beginning of each option but not scored.
    """
    skipped = skips or [0] * len(options)
    passages = [passage for passage in after if isinstance(passage, Passage)]
    if len(passages) < len(after):
        return tuple(
            score_all(
                network,
                [option],
                resume(own, network.configuration),
                stops=stops,
                skips=[skip],
            )[0]
            for option, own, skip in zip(options, after, skipped, strict=True)
        )
    rows, base = _padded(options, skipped)
    logits = network.after_each(rows, passages, keep=len(rows[0]) - base)
    return tuple(
        _score_row(option, skip, base, row, passage.next_log_probabilities, stops)
        for option, skip, row, passage in zip(
            options, skipped, logits, passages, strict=True
        )
    )


def score_all(
    network: Network,
    options: Sequence[Sequence[int]],
    after: Context,
    *,
    stops: Sequence[int] = (),
    skips: Sequence[int] | None = None,
    steering: Steering = NO_STEERING,
) -> tuple[Scored, ...]:
    """Score several continuations of one context, in one pass where memory allows.

    An empty option is scored by its stop alone; otherwise as `score_each`.
    """
    skipped, first = skips or [0] * len(options), after.next_log_probabilities
    if not stops and max(map(len, options), default=0) <= 1 and not any(skipped):
        return tuple(_score_rows(option, first, None, stops) for option in options)
    scored: list[Scored] = []
    while len(scored) < len(options):
        count = _rows_at_once(options[len(scored) :])
        part = slice(len(scored), len(scored) + count)
        rows, base = _padded(options[part], skipped[part])
        with steered(network.module, steering):
            logits, _ = network.after(rows, after, keep=len(rows[0]) - base)
        scored += [
            _score_row(option, skip, base, row, first, stops)
            for option, skip, row in zip(
                options[part], skipped[part], logits, strict=True
            )
        ]
    return tuple(scored)


def _padded(
    options: Sequence[Sequence[int]], skips: Sequence[int]
) -> tuple[list[list[int]], int]:
    """Return rows of one width, and how many of their first positions get no logits.

    Padding is on the right, where causal attention never looks. Logits over the whole
    vocabulary are most of the work, so skipped positions get none.
    """
    width = max(1, *map(len, options))
    return (
        [[*option, *[0] * (width - len(option))] for option in options],
        max(min(skips) - 1, 0),
    )


def _score_row(
    option: Sequence[int],
    skip: int,
    base: int,
    row: torch.Tensor,
    first: torch.Tensor,
    stops: Sequence[int],
) -> Scored:
    """Score what follows the first `skip` tokens; `row` begins after token `base`."""
    before = row[skip - 1 - base] if skip else first
    return _score_rows(option[skip:], before, row[skip - base :], stops)


def _score_rows(
    option: Sequence[int],
    before: torch.Tensor,
    after: torch.Tensor | None,
    stops: Sequence[int],
) -> Scored:
    """Score one option from logits (vocabulary,) before it and (n, vocabulary) after."""
    table = log_softmax(before)[None]
    if after is not None:
        table = torch.cat([table, log_softmax(after[: len(option)])])
    numbers = torch.tensor(option, dtype=torch.long, device=table.device)
    tokens = table[: len(option)].gather(1, numbers[:, None])[:, 0]
    ends = (
        torch.logsumexp(table[:, list(stops)], dim=1)
        if stops
        else torch.full((len(table),), -torch.inf)
    )
    return Scored(tokens.cpu().numpy(), ends.cpu().numpy())


def _rows_at_once(options: Sequence[Sequence[int]]) -> int:
    width, count = 1, 0
    for option in options:
        width = max(width, len(option))
        if count and (count + 1) * width > _POSITIONS_AT_ONCE:
            break
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class Example:
    """An example: its tokens up to the label, and the label as an option (0-based)."""

    ids: tuple[int, ...]
    label: int


def score_labels(
    network: Network,
    examples: Sequence[Example],
    question: Sequence[int],
    options: Sequence[int],
    after: Context,
    *,
    end: Sequence[int] = (),
) -> NDArray[np.float32]:
    """Return the logits of labels at each example and after the question, in one pass.

    Shape (len(examples) + 1, options): row i sees the examples before i. `end` stands
    between an example's label and what follows it.
    """
    row: list[int] = []
    places: list[int] = []
    for example in examples:
        row += example.ids
        places.append(len(row) - 1)
        row += [options[example.label], *end]
    row += question
    places.append(len(row) - 1)
    logits, _ = network.after([row], after, keep=torch.tensor(places))
    scores: NDArray[np.float32] = logits[0, :, list(options)].float().cpu().numpy()
    return scores
