"""The tables of verdicts by past questions, with paired intervals."""

from collections.abc import Iterator

import numpy as np

from qa.evaluation.report.tables import TextTable
from qa.language_models.label_pair import LabelPair

from .figures import MIDDLE, area_of, difference, figures
from .judging import Judgements, Shown, Way


def tables_of(judgements: Judgements) -> tuple[TextTable, ...]:
    """Return the figures of every way, what makes a difference, and each set's."""
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
            ("labels", "against", "accuracy", "p", "AUROC"),
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


def _compared(judgements: Judgements, labels: LabelPair) -> Iterator[tuple[str, ...]]:
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
        yield (str(labels), name, *difference(before, after, judgements.is_known))


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
