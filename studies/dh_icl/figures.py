"""Figures of verdicts by past questions, with paired intervals, as tables."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from qa.evaluation.metrics.intervals import (
    Difference,
    Numbers,
    Rate,
    Statistic,
    bootstrap,
    differences,
    mcnemar,
)
from qa.evaluation.metrics.selective import auroc, rank
from qa.evaluation.report.tables import TextTable
from qa.inference.label_judge import LabelPair
from studies.figures import auroc as auroc_statistic
from studies.figures import rate, share_difference, with_interval
from studies.study import Claim

from .judging import Judgements, Shown, Way

# The published rule: the label with the higher score.
MIDDLE: Final = 0.5
Flags = NDArray[np.bool_]


def figures(scores: Numbers, right: Flags) -> tuple[str, str, str]:
    """Return accuracy, balanced accuracy and AUROC of verdicts, as text.

    Args:
        scores: Probability of "yes" for each question, in [0, 1].
        right: The right verdict for each question.
    """
    says = scores >= MIDDLE
    accuracy = rate(Rate(int((says == right).sum()), len(right)))
    return accuracy, _balanced(says, right), area_of(scores, right)


def accuracy_gained(before: Numbers, after: Numbers, right: Flags) -> Difference:
    """Return the accuracy of the second verdicts minus that of the first."""
    return share_difference(*((each >= MIDDLE) == right for each in (before, after)))


def difference(before: Numbers, after: Numbers, right: Flags) -> tuple[str, str, str]:
    """Return the gain in accuracy, its McNemar p, and the gain in AUROC, as text."""
    hits = [(each >= MIDDLE) == right for each in (before, after)]
    accuracy = accuracy_gained(before, after, right)
    (area,) = differences(
        [(_area(before, right), _area(after, right))], np.arange(len(right))
    )
    p = mcnemar(hits[0].tolist(), hits[1].tolist()).p_value
    return (
        with_interval(accuracy.value, accuracy.interval, 2, sign="+"),
        f"{p:.3f}",
        with_interval(area.value, area.interval, 2, sign="+"),
    )


def _balanced(says: Flags, right: Flags) -> str:
    """Return the mean of the accuracies on positive and on negative questions."""
    if right.all() or not right.any():
        return "-"
    return f"{(says[right].mean() + (~says[~right]).mean()) / 2:.2f}"


def area_of(scores: Numbers, right: Flags) -> str:
    """Return the AUROC of the scores with its interval, as text."""
    value = auroc(scores.tolist(), (~right).tolist())
    (interval,) = bootstrap([_area(scores, right)], np.arange(len(right)))
    return with_interval(value, interval, 2)


def _area(scores: Numbers, right: Flags) -> Statistic:
    return auroc_statistic(rank(scores.tolist(), (~right).tolist()))


# The tables of verdicts by past questions, with paired intervals.


def tables_of(judgements: Judgements) -> tuple[TextTable, ...]:
    """Return the tables of every way, of the paired differences, and by data set."""
    pairs = list(dict.fromkeys(way.labels for way in judgements.known))
    compared = [row for labels in pairs for row in _compared(judgements, labels)]
    best = Way(pairs[0], Shown.PAST, True)
    return (
        TextTable(
            "Does the model know? By labels, examples and correction",
            ("labels", "shown", "corrected", "retrieval rate", "accuracy", "balanced", "AUROC"),
            tuple(_row(judgements, way) for way in judgements.known),
            words=3,
        ),
        TextTable(
            "What makes a difference, on the same questions",
            ("labels", "change", "accuracy", "p", "AUROC"),
            tuple(compared),
            words=2,
        ),
        TextTable(
            f"By data set: {best.labels}, past questions, corrected; and without asking",
            ("set", "questions", "known", "retrieval rate", "accuracy", "AUROC",
             "AUROC of known share", "AUROC of log probability"),
            tuple(_rows_by_set(judgements, best)),
        ),
    )  # fmt: skip


def _row(judgements: Judgements, way: Way) -> tuple[str, ...]:
    known, right = judgements.known[way], judgements.is_known
    return (
        str(way.labels),
        way.shown.value,
        "yes" if way.is_corrected else "no",
        f"{(known < MIDDLE).mean():.2f}",
        *figures(known, right),
    )


def _pairs(
    judgements: Judgements, labels: LabelPair
) -> Iterator[tuple[str, Numbers, Numbers]]:
    ways = {
        (w.shown, w.is_corrected): w for w in judgements.known if w.labels == labels
    }
    for name, first, second in (
        ("correction of past questions", (Shown.PAST, False), (Shown.PAST, True)),
        ("correction of fixed examples", (Shown.FIXED, False), (Shown.FIXED, True)),
        ("past questions for fixed examples", (Shown.FIXED, True), (Shown.PAST, True)),
        ("past questions for none", (Shown.NOTHING, False), (Shown.PAST, True)),
    ):
        before, after = (judgements.known[ways[key]] for key in (first, second))
        yield name, before, after


def _compared(judgements: Judgements, labels: LabelPair) -> Iterator[tuple[str, ...]]:
    for name, before, after in _pairs(judgements, labels):
        yield (str(labels), name, *difference(before, after, judgements.is_known))


_PAPER: Final = {
    "correction of past questions": "Table 4, a",
    "past questions for fixed examples": "Table 5",
    "past questions for none": "Table 3",
}


def claims_of(judgements: Judgements) -> Iterator[Claim]:
    """Yield the accuracy gains of the published form, with the first pair of labels."""
    right = judgements.is_known
    labels = next(iter(judgements.known)).labels
    by_share = area_of(judgements.share, right)
    for name, before, after in _pairs(judgements, labels):
        found = accuracy_gained(before, after, right)
        yield Claim(
            f"DH-ICL: {name}, accuracy of the verdict",
            _PAPER.get(name, "Table 3"),
            found.value,
            found.interval,
            len(right),
            f"AUROC of the verdicts {area_of(after, right)}; of the share of known past "
            f"questions, without asking the model, {by_share}.",
        )


def _rows_by_set(judgements: Judgements, way: Way) -> Iterator[tuple[str, ...]]:
    names = np.array([each.data_set for each in judgements.questions])
    likely = np.array([each.log_probability for each in judgements.questions])
    for name in (*dict.fromkeys(names.tolist()), "all"):
        own = np.ones(len(names), dtype=np.bool_) if name == "all" else names == name
        known, right = judgements.known[way][own], judgements.is_known[own]
        accuracy, _, area = figures(known, right)
        yield (
            name,
            str(int(own.sum())),
            f"{right.mean():.2f}",
            f"{(known < MIDDLE).mean():.2f}",
            accuracy,
            area,
            area_of(judgements.share[own], right),
            area_of(likely[own], right),
        )
