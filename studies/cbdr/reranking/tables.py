"""The study's figures as tables, and what has to be known to read them."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Final

from qa.evaluation.metrics.intervals import Interval
from qa.evaluation.report.tables import TextTable, percent
from qa.training.boundary import probe_table

from .ranking import Compared
from .study import BASE, TUNED, Study, Way

NOTES: Final = (
    "Questions are parted by article: the probe, the preferences, the thresholds and the "
    "test have articles of their own. In brackets 95 % intervals: articles are drawn, and "
    "questions of the drawn articles, the same ones of both that are compared.",
    "p is McNemar's exact one over the questions as if each stood alone, and the interval "
    "is over articles: where questions of an article go together p is too small, and the "
    "interval is what counts.",
    "One note is put behind a question: the first of the order. Right is an answer that a "
    "reference stands in.",
    "The thresholds are those with the best accuracy on the calibration part.",
    "base is the reranker before it was fitted; where it begins with an embedding "
    "model's weights its output is random.",
)


def tables_of(study: Study) -> Iterator[TextTable]:
    """Yield the tables, the probe's first."""
    yield TextTable(
        "What was asked",
        ("", "count"),
        tuple((name, f"{count:,}") for name, count in study.counts.items()),
    )
    yield probe_table(study.probe)
    yield _ranking("Reranker before and after: notes that make the model surer",
                   study.by_shift)  # fmt: skip
    yield _ranking(
        "Reranker before and after: notes in which a reference stands",
        study.by_reference,
    )
    yield _ways(study)


def as_json(study: Study) -> dict[str, object]:
    """Return all figures for a file."""
    return asdict(study)


def _ranking(title: str, measured: Sequence[Compared]) -> TextTable:
    by_order = {(one.order, one.measure): one.difference for one in measured}
    rows = []
    for measure in dict.fromkeys(one.measure for one in measured):
        base, tuned = by_order[BASE, measure], by_order[TUNED, measure]
        rows.append(
            (
                measure,
                percent(tuned.first),
                percent(base.second),
                percent(tuned.second),
                _points(tuned.value, tuned.interval),
            )
        )
    columns = ("", "as found", "base", "reranked", "reranked - as found")
    return TextTable(title, columns, tuple(rows))


def _ways(study: Study) -> TextTable:
    return TextTable(
        "The reranker's gain and the gate's gain apart",
        ("", "retrieves", "accuracy", "gain", "only this right", "only the first", "p"),
        tuple(_way(way) for way in study.ways),
    )


def _way(way: Way) -> tuple[str, ...]:
    pairs = way.mcnemar
    return (
        way.name,
        percent(way.retrieval_rate),
        percent(way.accuracy.second),
        _points(way.accuracy.value, way.accuracy.interval),
        str(pairs.only_second),
        str(pairs.only_first),
        f"{pairs.p_value:.3f}",
    )


def _points(value: float | None, interval: Interval | None) -> str:
    """Return a difference in percentage points, with its interval."""
    if value is None:
        return ""
    if interval is None:
        return f"{value * 100:+.1f}"
    low, high = interval
    return f"{value * 100:+.1f} [{low * 100:+.1f}, {high * 100:+.1f}]"
