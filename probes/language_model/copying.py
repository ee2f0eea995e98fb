"""Write by copying: the model may only write what is in the source.

Once it is known where a copy begins, its tokens are fixed, so it needs no
token-by-token loop: one pass over the source as the continuation gives the probability
of each next token and each end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from probes.language_model.model import WhiteBoxModel
from probes.language_model.values import Context, Passage, Scored


@dataclass(frozen=True, slots=True)
class Copied:
    """A span of the source, `end` exclusive; natural logs of probabilities."""

    start: int
    end: int
    log_probabilities: tuple[float, ...]
    end_log_probability: float


def copy_span(
    model: WhiteBoxModel,
    after: Context,
    source: Sequence[int],
    *,
    starts: Sequence[int],
    ends: Sequence[int],
    stops: Sequence[int],
    beams: int = 4,
) -> Copied:
    """Return the likeliest span of `source` as the continuation of a context.

    A span begins at one of `starts` and ends before one of `ends`, both ascending; any
    of `stops` ends the copy. Only the `beams` likeliest beginnings are followed.

    Raises:
        ValueError: No span is allowed.
    """
    spans = [start for start in starts if any(end > start for end in ends)]
    if not spans:
        raise ValueError("Nothing may be copied: no end comes after a start.")
    first = after.next_log_probabilities[[source[start] for start in spans]]
    best = torch.topk(first, min(beams, len(spans))).indices.tolist()
    followed = [spans[index] for index in best]
    rows = model.score_all(
        [source[start : max(ends)] for start in followed], after, stops=stops
    )
    candidates = [
        _copied(start, end, row)
        for start, row in zip(followed, rows, strict=True)
        for end in ends
        if end > start
    ]
    return max(
        candidates, key=lambda s: sum(s.log_probabilities) + s.end_log_probability
    )


def copy_whole(
    model: WhiteBoxModel,
    after: Context | Passage,
    lead: Sequence[int],
    source: Sequence[int],
    *,
    stops: Sequence[int],
) -> Copied:
    """Return all of `source` as the continuation of a passage and a lead, in one pass.

    The same as `copy_span` with a single span, at half the cost.
    """
    row = model.score_each([[*lead, *source]], [after], stops=stops, skips=[len(lead)])[
        0
    ]
    return _copied(0, len(source), row)


def _copied(start: int, end: int, scored: Scored) -> Copied:
    length = end - start
    return Copied(
        start,
        end,
        tuple(scored.log_probabilities[:length].tolist()),
        float(scored.stops[length]),
    )
