"""An evaluation for people (tables) and for scripts (JSON)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from qa.evaluation.metrics.rates import Rate
from qa.evaluation.results import Result


@dataclass(frozen=True, slots=True)
class Metrics:
    """What an evaluation comes to.

    Attributes:
        false_answers: Of the questions to be refused, those that were answered.
        false_refusals: Of the questions to be answered, those that were refused.
        wrong_answers: Of all shown answers, those that are wrong: false answers and
            answers that do not hold or cite what they should.
        right: Of all questions, those that came out right.
        table: (should be answered, was answered) -> count.
        correct: Of the questions rightly answered, how many answers are correct.
        confusion: (expected label, actual label) -> count.
    """

    false_answers: Rate
    false_refusals: Rate
    wrong_answers: Rate
    right: Rate
    correct: Rate
    table: Counter[tuple[bool, bool]]
    confusion: Counter[tuple[str, str]]


def metrics_of(results: Sequence[Result]) -> Metrics:
    """Count the results."""
    table = Counter((r.case.is_answerable, r.is_answered) for r in results)
    answered = [r for r in results if r.is_answered]
    due = [r for r in answered if r.case.is_answerable]
    refusable = table[False, True] + table[False, False]
    answerable = table[True, True] + table[True, False]
    return Metrics(
        false_answers=Rate(table[False, True], refusable),
        false_refusals=Rate(table[True, False], answerable),
        wrong_answers=Rate(sum(not r.is_right for r in answered), len(answered)),
        right=Rate(sum(r.is_right for r in results), len(results)),
        correct=Rate(sum(r.is_right for r in due), len(due)),
        table=table,
        confusion=Counter((r.expected, r.actual) for r in results),
    )


# Name, field of Metrics, what it means; the order in which they are printed.
RATES = (
    ("false answers", "false_answers", "answered, of the questions to be refused"),
    ("false refusals", "false_refusals", "refused, of the questions to be answered"),
    ("wrong answers", "wrong_answers", "wrong, of all answers shown"),
    ("right", "right", "right, of all questions"),
)


def print_report(results: Sequence[Result], console: Console) -> None:
    """Print the rates, the 2 x 2 table, the confusion and every wrong result."""
    metrics = metrics_of(results)
    for part in (
        _rates(metrics),
        _two_by_two(metrics),
        _confusion(metrics),
        *_wrong(results),
    ):
        console.print(part)
    console.print(Text(_times(results), style="dim"))


def as_json(suite: str, results: Sequence[Result]) -> dict[str, Any]:
    """Return the whole report as a JSON object; results by id."""
    metrics = metrics_of(results)
    return {
        "suite": suite,
        "questions": len(results),
        "rates": {field: _rate(getattr(metrics, field)) for _, field, _ in RATES},
        "two_by_two": {
            "answered_rightly_due": metrics.table[True, True],
            "answered_and_correct": metrics.correct.count,
            "false_refusals": metrics.table[True, False],
            "false_answers": metrics.table[False, True],
            "refused_rightly": metrics.table[False, False],
        },
        "confusion": [
            {"expected": expected, "actual": actual, "count": count}
            for (expected, actual), count in sorted(metrics.confusion.items())
        ],
        "results": {
            r.case.id: {
                **asdict(r),
                "is_right": r.is_right,
                "expected": r.expected,
                "actual": r.actual,
            }
            for r in results
        },
    }


def _rate(rate: Rate) -> dict[str, object]:
    return {
        "count": rate.count,
        "of": rate.total,
        "rate": rate.value,
        "wilson_95": rate.interval,
    }


def _rates(metrics: Metrics) -> Table:
    table = _table("Rates", "", "count", "of", "rate", "95 % interval", "meaning")
    for name, field, meaning in RATES:
        rate: Rate = getattr(metrics, field)
        low, high = rate.interval or (None, None)
        interval = "" if low is None else f"{_percent(low)} to {_percent(high)}"
        table.add_row(
            name,
            str(rate.count),
            str(rate.total),
            _percent(rate.value),
            interval,
            Text(meaning, style="dim"),
        )
    return table


def _two_by_two(metrics: Metrics) -> Table:
    table = _table("Outcomes", "should be", "answered", "of these correct", "refused")
    for due, name in ((True, "answered"), (False, "refused")):
        table.add_row(
            name,
            str(metrics.table[due, True]),
            str(metrics.correct.count if due else 0),
            str(metrics.table[due, False]),
        )
    return table


def _confusion(metrics: Metrics) -> Table:
    table = _table("Where and why", "expected", "actual", "count")
    for (expected, actual), count in sorted(metrics.confusion.items()):
        style = "" if _agree(expected, actual) else "yellow"
        table.add_row(expected, actual, str(count), style=style)
    return table


def _agree(expected: str, actual: str) -> bool:
    """Tell whether `actual` is what was expected, as far as that was said."""
    return actual.startswith(expected.replace(": anywhere", ""))


def _wrong(results: Sequence[Result]) -> Iterator[RenderableType]:
    wrong = [result for result in results if not result.is_right]
    if not wrong:
        return
    table = _table("Wrong", "id", "question", "expected", "actual", "text")
    for result in wrong:
        told = result.text if result.is_answered else ""
        table.add_row(
            result.case.id, result.case.question, result.expected, result.actual, told
        )
    yield table


def _times(results: Sequence[Result]) -> str:
    seconds = sorted(result.seconds for result in results)
    if not seconds:
        return "No question was asked."
    refused = sorted(r.seconds for r in results if r.gate == "hard_refusal")
    median = f"{len(seconds)} questions, median {_middle(seconds) * 1000:.0f} ms"
    hard = f", hard refusals {_middle(refused) * 1000:.0f} ms" if refused else ""
    return f"{median}{hard}, {sum(seconds):.1f} s in all."


def _middle(ordered: Sequence[float]) -> float:
    return ordered[len(ordered) // 2]


def _percent(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.1f} %"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        numeric = column in {"count", "of", "rate"}
        table.add_column(column, justify="right" if numeric else "left")
    return table
