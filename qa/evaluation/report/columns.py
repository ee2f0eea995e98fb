"""The rows of a run as columns, so that thousands are counted and resampled at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qa.evaluation.judged import Judged
from qa.evaluation.metrics.intervals import clusters_of

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """One entry a row; rows are in the order of their ids.

    Attributes:
        due: Should be answered.
        undue: Should be refused; neither holds where only drafts are judged.
        answered: Was answered by the run's own policy.
        wrong: Showing the draft would show something wrong.
        has_draft: A draft was written.
        clusters: Rows with the same number are of one group.
    """

    rows: tuple[Judged, ...]
    due: Flags
    undue: Flags
    answered: Flags
    wrong: Flags
    has_draft: Flags
    clusters: NDArray[np.intp]

    @property
    def right(self) -> Flags:
        """Answered, and rightly so, or refused where it should be."""
        refused_rightly = ~self.answered & self.undue
        right: Flags = (self.answered & ~self.wrong) | refused_rightly
        return right

    @property
    def all(self) -> Flags:
        """Every row."""
        return np.ones(len(self.rows), dtype=np.bool_)

    @property
    def is_clustered(self) -> bool:
        """Whether any group holds several rows."""
        return len(np.unique(self.clusters)) < len(self.rows)

    @property
    def should_answer(self) -> list[bool | None]:
        """Whether each should be answered, where that is known."""
        return [row.is_answerable for row in self.rows]


def columns_of(rows: Sequence[Judged]) -> Columns:
    """Lay the rows out by id: no figure depends on the order in which they came.

    Raises:
        ValueError: An id stands twice.
    """
    ordered = tuple(sorted(rows, key=lambda row: row.id))
    if len({row.id for row in ordered}) != len(ordered):
        raise ValueError("an id stands twice among the results")
    return Columns(
        rows=ordered,
        due=_flags([row.is_answerable is True for row in ordered]),
        undue=_flags([row.is_answerable is False for row in ordered]),
        answered=_flags([row.is_answered for row in ordered]),
        wrong=_flags([row.is_wrong_if_shown for row in ordered]),
        has_draft=_flags([row.is_correct is not None for row in ordered]),
        clusters=clusters_of([(row.id, row.group) for row in ordered]),
    )


def _flags(values: Sequence[bool]) -> Flags:
    return np.array(values, dtype=np.bool_)
