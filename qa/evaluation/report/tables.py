"""A report as text tables, printed in the terminal or written as Markdown."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .counts import RATES
from .signals import ABLATIONS, COVERAGES, RISKS

WRONG_SHOWN = 20
Report = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TextTable:
    """A titled table; the first `words` columns hold text, the others numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1


def tables(
    report: Report, questions: Mapping[str, str] | None = None
) -> Iterator[TextTable]:
    """Yield every non-empty table; `questions` are texts by id."""
    parts = (
        _rates(report),
        _outcomes(report),
        _abstention(report),
        _confusion(report),
        _gates(report),
        _signals(report),
        _choices(report),
        _calibration(report),
        _measures(report),
        _times(report),
        _wrong(report, questions or {}),
    )
    yield from (part for part in parts if part.rows)


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _rates(report: Report) -> TextTable:
    rows = []
    for name, meaning in RATES.items():
        rate = report["rates"][name]
        interval = _wider(rate["wilson_95"], rate.get("clustered_95"))
        counted = f"{rate['count']:,}", f"{rate['of']:,}", percent(rate["rate"])
        title = name.replace("_", " ")
        rows.append((title, meaning, *counted, _interval(interval)))
    heads = ("", "meaning", "count", "of", "rate", "95 % interval")
    return TextTable("Rates", heads, tuple(rows), words=2)


def _outcomes(report: Report) -> TextTable:
    table = report["two_by_two"]
    if not sum(table.values()):
        return TextTable("Outcomes", (), ())
    due = ("answered_rightly_due", "answered_and_correct", "false_refusals")
    rows = (
        ("answered", *(f"{table[name]:,}" for name in due)),
        (
            "refused",
            f"{table['false_answers']:,}",
            "0",
            f"{table['refused_rightly']:,}",
        ),
    )
    heads = ("should be", "answered", "of these correct", "refused")
    return TextTable("Outcomes", heads, rows)


def _abstention(report: Report) -> TextTable:
    parts = report["abstention"] or {}
    rows = tuple(
        (name, percent(part["value"]), _interval(part["bootstrap_95"]))
        for name, part in parts.items()
    )
    return TextTable("Abstention", ("", "value", "95 % interval"), rows)


def _confusion(report: Report) -> TextTable:
    rows = tuple(
        (
            part["expected"],
            ": ".join(filter(None, (part["outcome"], part["gate"]))),
            part["reason"].replace("_", " "),
            f"{part['count']:,}",
        )
        for part in report["confusion"]
    )
    heads = ("should be", "was", "reason", "count")
    return TextTable("Where and why", heads, rows, words=3)


def _gates(report: Report) -> TextTable:
    rows: list[tuple[str, ...]] = []
    gates = report["ablations"]["gates"]
    # A stored report loses the order of its keys, and an old one may lack a row.
    for name, part in ((name, gates[name]) for name in ABLATIONS if name in gates):
        if part["why_not"]:
            unknown = f"{part['unknown']:,} unknown"
            rows.append((name, unknown, "-", "-", "-", "-"))
            continue
        names = ("accuracy", "false_answers", "false_refusals")
        rates = (percent(part[rate]["rate"]) for rate in names)
        f1 = (part["abstention"] or {}).get("f1")
        rows.append((name, f"{part['answered']['count']:,}", *rates, percent(f1)))
    heads = (
        "gates", "answered", "of these right", "false answers", "false refusals",
        "abstention F1",
    )  # fmt: skip
    return TextTable("Each gate's part", heads, tuple(rows))


def _signals(report: Report) -> TextTable:
    rows = []
    for name, part in report["signals"]["scores"].items():
        areas = (_number(part["auroc"]), _interval_of_numbers(part["auroc_95"]))
        risks = (_number(part["aurc"]), _interval_of_numbers(part["aurc_95"]))
        excess = _number(part["excess_aurc"])
        rows.append((name, f"{part['measured']:,}", *areas, *risks, excess))
    heads = ("signal", "measured", "AUROC", "95 %", "AURC", "95 %", "E-AURC")
    return TextTable("Signals", heads, tuple(rows))


def _choices(report: Report) -> TextTable:
    rows = tuple(
        (
            name,
            *(percent(point["risk"]) for point in part["risk_at_coverage"]),
            *(percent(point["coverage"]) for point in part["coverage_at_risk"]),
        )
        for name, part in report["signals"]["scores"].items()
    )
    heads = (
        "signal",
        *(f"risk at {share:.0%}" for share in COVERAGES),
        *(f"shown at {risk:.0%} risk" for risk in RISKS),
    )
    return TextTable("Risk and coverage", heads, rows)


def _calibration(report: Report) -> TextTable:
    names = ("ece_equal_width", "ece_equal_mass", "brier")
    rows = tuple(
        (name, *(_number(part["calibration"][measure]) for measure in names))
        for name, part in report["signals"]["scores"].items()
        if "calibration" in part
    )
    heads = ("probability", "ECE, equal width", "ECE, equal mass", "Brier")
    return TextTable("Calibration", heads, rows)


def _measures(report: Report) -> TextTable:
    rows = tuple(
        (
            name.replace("_", " "),
            kind,
            f"{part['count']:,}",
            _number(part["mean"]),
            _interval_of_numbers(part["bootstrap_95"]),
        )
        for name, parts in report["measures"].items()
        for kind, part in parts.items()
        if part["count"]
    )
    heads = ("measure", "answers", "count", "mean", "95 % interval")
    return TextTable("Measures", heads, rows, words=2)


def _times(report: Report) -> TextTable:
    rows = [
        (
            name.replace("_", " "),
            f"{part['count']:,}",
            *(f"{part[key]:,.0f} ms" for key in ("median_ms", "p95_ms", "mean_ms")),
            f"{part['total_ms'] / 1000:,.1f} s",
        )
        for name, part in report["times"].items()
        if isinstance(part, dict)
    ]
    share = report["times"]["overhead_share"]
    if share is not None:
        outside = "outside the model, search ahead included, of its time"
        rows.append((outside, "", "", "", "", percent(share)))
    heads = ("time", "count", "median", "95th percentile", "mean", "in all")
    return TextTable("Time", heads, tuple(rows))


def _wrong(report: Report, questions: Mapping[str, str]) -> TextTable:
    wrong = [
        (name, row) for name, row in report.get("results", {}).items() if _is_wrong(row)
    ]
    rows = tuple(
        (
            name,
            *([questions.get(name, "")] if questions else []),
            {True: "answered", False: "refused", None: "either"}[row["should_answer"]],
            "answered" if row["answered"] else "refused",
            " ".join(filter(None, (row["gate"], row["reason"]))).replace("_", " "),
        )
        for name, row in wrong[:WRONG_SHOWN]
    )
    more = f", {WRONG_SHOWN} of {len(wrong):,}" if len(wrong) > WRONG_SHOWN else ""
    question = ("question",) if questions else ()
    heads = ("id", *question, "should be", "was", "where and why")
    return TextTable(f"Wrong{more}", heads, rows, words=5)


def _is_wrong(row: Mapping[str, Any]) -> bool:
    if row["answered"]:
        return row["should_answer"] is False or row["correct"] is not True
    return row["should_answer"] is True


def _wider(
    first: Sequence[float] | None, second: Sequence[float] | None
) -> Sequence[float] | None:
    """Return the interval that covers both, so that clustering never narrows one."""
    if first is None or second is None:
        return first or second
    return min(first[0], second[0]), max(first[1], second[1])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(interval: Sequence[float] | None) -> str:
    return f"{percent(interval[0])} to {percent(interval[1])}" if interval else "-"


def _interval_of_numbers(interval: Sequence[float] | None) -> str:
    return f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else "-"


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def as_markdown(report: Mapping[str, Any], heading: Mapping[str, object]) -> str:
    shown = {**heading, "questions": f"{report['questions']:,}"}
    return markdown_of("Evaluation", shown, tables(report), report["notes"])


def markdown_of(
    title: str,
    heading: Mapping[str, object],
    parts: Iterable[TextTable],
    notes: Sequence[str],
) -> str:
    lines = [f"# {_cell(title)}", ""]
    lines += [f"- {_cell(name)}: {_cell(value)}" for name, value in heading.items()]
    lines += [""]
    for table in parts:
        lines += [f"## {_cell(table.title)}", "", *_lines(table), ""]
    if notes:
        lines += ["## Notes", "", *(f"- {_cell(note)}" for note in notes), ""]
    return "\n".join(lines)


def _lines(table: TextTable) -> list[str]:
    numbers = len(table.columns) - table.words
    rules = ["---"] * table.words + ["---:"] * numbers
    rows = (table.columns, *table.rows)
    cells = [[_cell(cell) for cell in row] for row in rows]
    return ["| " + " | ".join(row) + " |" for row in (cells[0], rules, *cells[1:])]


def _cell(value: object) -> str:
    """Return text that can neither break the table nor become markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(value).split()))


def print_tables(
    parts: Iterable[TextTable], notes: Sequence[str], console: Console
) -> None:
    for table in parts:
        console.print(_as_rich(table))
    for note in notes:
        console.print(Text(note, style="dim"))


def _as_rich(table: TextTable) -> Table:
    shown = Table(title=table.title, title_justify="left", title_style="bold")
    for place, name in enumerate(table.columns):
        shown.add_column(name, justify="left" if place < table.words else "right")
    for row in table.rows:
        # As Text, since a question may contain what rich would read as markup.
        shown.add_row(*(Text(cell) for cell in row))
    return shown
