"""A run's results as columns, and the report's counts of its policy's decisions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qa.evaluation.judging import Judged
from qa.evaluation.metrics.intervals import (
    Interval,
    Rate,
    bootstrap,
    clusters_of,
    mean,
    share,
)
from qa.evaluation.metrics.selective import abstention_f1, two_by_two

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Columns of rows in the order of their ids; a cluster holds the rows of one group.

    Questions of which only drafts are judged are neither due nor undue.
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
        refused_rightly = ~self.answered & self.undue
        right: Flags = (self.answered & ~self.wrong) | refused_rightly
        return right

    @property
    def all(self) -> Flags:
        return np.ones(len(self.rows), dtype=np.bool_)

    @property
    def is_clustered(self) -> bool:
        return len(np.unique(self.clusters)) < len(self.rows)

    @property
    def should_answer(self) -> list[bool | None]:
        return [row.is_answerable for row in self.rows]


def columns_of(rows: Sequence[Judged]) -> Columns:
    ordered = tuple(sorted(rows, key=lambda row: row.id))
    if len({row.id for row in ordered}) != len(ordered):
        raise ValueError("an id occurs twice among the results")
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


# {name: meaning}, in the order of printing.
RATES = {
    "false_answers": "answered, of the questions to be refused",
    "false_refusals": "refused, of the questions to be answered",
    "wrong_answers": "wrong, of all answers shown",
    "right": "answered rightly or rightly refused, of all questions",
    "answered": "answered, of all questions (coverage)",
    "accuracy": "right, of all answers shown",
    "recall": "shown, of all right drafts",
    "masked": "not shown, of all drafts",
    "masked_right": "right, of the drafts that were not shown",
}
Part = dict[str, Any]


def rates(columns: Columns) -> Part:
    answered, wrong, drafted = columns.answered, columns.wrong, columns.has_draft
    masked = drafted & ~answered
    pairs: dict[str, tuple[Flags, Flags]] = {
        "false_answers": (answered, columns.undue),
        "false_refusals": (~answered, columns.due),
        "wrong_answers": (wrong, answered),
        "right": (columns.right, columns.all),
        "answered": (answered, columns.all),
        "accuracy": (~wrong, answered),
        "recall": (answered, ~wrong),
        "masked": (~answered, drafted),
        "masked_right": (~wrong, masked),
    }
    clustered: list[Interval | None] = []
    if columns.is_clustered:
        statistics = [share(*pair) for pair in pairs.values()]
        clustered = bootstrap(statistics, columns.clusters)
    parts = {name: rate(*pair) for name, pair in pairs.items()}
    for name, interval in zip(parts, clustered, strict=False):
        parts[name]["clustered_95"] = interval
    return parts


def rate(counted: Flags, among: Flags) -> Part:
    found = Rate(int((counted & among).sum()), int(among.sum()))
    return {
        "count": found.count,
        "of": found.total,
        "rate": found.value,
        "wilson_95": found.interval,
    }


def outcomes(columns: Columns) -> Part:
    table = two_by_two(columns.should_answer, columns.answered.tolist())
    correct = columns.answered & columns.due & ~columns.wrong
    return {
        "answered_rightly_due": table.due_answered,
        "answered_and_correct": int(correct.sum()),
        "false_refusals": table.due_refused,
        "false_answers": table.undue_answered,
        "refused_rightly": table.undue_refused,
    }


def abstention(columns: Columns) -> Part | None:
    if not columns.undue.any():
        return None
    answered = columns.answered.tolist()
    table = two_by_two(columns.should_answer, answered)
    known = columns.due | columns.undue
    statistics = [
        share(columns.undue, known & ~columns.answered),
        share(~columns.answered, columns.undue),
        abstention_f1(columns.should_answer, answered),
    ]
    intervals = bootstrap(statistics, columns.clusters)
    values = (table.precision, table.recall, table.f1)
    names = ("precision", "recall", "f1")
    return {
        name: {"value": value, "bootstrap_95": interval}
        for name, value, interval in zip(names, values, intervals, strict=True)
    }


def confusion(columns: Columns) -> list[Part]:
    found = Counter(
        (_expected(row.is_answerable), row.is_answered, row.gate, row.reason)
        for row in columns.rows
    )
    return [
        {
            "expected": expected,
            "outcome": "answered" if is_answered else "refused",
            "gate": gate,
            "reason": reason,
            "count": count,
        }
        for (expected, is_answered, gate, reason), count in sorted(found.items())
    ]


def measures(columns: Columns) -> Part:
    names = sorted({name for row in columns.rows for name in row.measures})
    masked = columns.has_draft & ~columns.answered
    sets = {"all": columns.all, "shown": columns.answered, "masked": masked}
    held = {
        name: np.array([row.measures.get(name, np.nan) for row in columns.rows])
        for name in names
    }
    chosen = {
        (name, title): inside & ~np.isnan(held[name])
        for name in names
        for title, inside in sets.items()
    }
    intervals = bootstrap(
        [mean(held[name], among) for (name, _), among in chosen.items()],
        columns.clusters,
    )
    parts: Part = {name: {} for name in names}
    for ((name, title), among), interval in zip(chosen.items(), intervals, strict=True):
        values = held[name][among]
        parts[name][title] = {
            "count": len(values),
            "mean": float(values.mean()) if len(values) else None,
            "bootstrap_95": interval,
        }
    return parts


def times(columns: Columns) -> Part:
    """Return how long questions took, and the share outside the language model.

    The share is over the questions that asked a model, relative to the model's time.
    The run itself loses less, since it searches for the next question while the model
    works.
    """
    whole = np.array([row.milliseconds for row in columns.rows])
    model = np.array([row.model_milliseconds for row in columns.rows])
    asked = model > 0
    own, spent = float(model[asked].sum()), float(whole[asked].sum())
    return {
        "question": _spread(whole),
        "question_without_model": _spread(whole[~asked]),
        "question_with_model": _spread(whole[asked]),
        "model": _spread(model[asked]),
        "overhead_share": (spent - own) / own if own else None,
    }


def _expected(is_answerable: bool | None) -> str:
    if is_answerable is None:
        return "either"
    return "answered" if is_answerable else "refused"


def _spread(milliseconds: NDArray[np.float64]) -> Part | None:
    if not len(milliseconds):
        return None
    middle, late = np.quantile(milliseconds, (0.5, 0.95))
    return {
        "count": len(milliseconds),
        "median_ms": float(middle),
        "p95_ms": float(late),
        "mean_ms": float(np.mean(milliseconds)),
        "total_ms": float(np.sum(milliseconds)),
    }
