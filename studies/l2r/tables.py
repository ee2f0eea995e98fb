"""Learn to Refuse's tables and figures from runs in shadow, next to the paper's."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from qa.evaluation.judging import Judged
from qa.evaluation.report.tables import TextTable, percent
from qa.pipeline.policy import Policy
from studies.figures import bounds
from studies.study import Claim

from .knowledge import Confidence
from .tallies import (
    COMMONSENSEQA,
    EUCLIDEAN_ALPHA,
    L2R,
    MC1,
    MC2,
    MEDQA,
    MEDQA_CORPUS,
    NO_GATE,
    NO_HARD,
    NO_SOFT,
    REFUSALS_RIGHT,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    WITHOUT_STEPS,
    Tally,
    alpha_sweep,
    gained,
    plain_tally,
    tally,
    ungated_tally,
)

RATIOS: Final = (1.0, 0.75, 0.5, 0.25, 0.0)
_ALPHAS: Final = tuple(step / 20 for step in range(1, 29))  # Euclidean, .05 to 1.4
_GATES: Final[Mapping[str, Policy]] = {
    "L2R": L2R,
    "without soft refusal": NO_SOFT,
    "without hard refusal": NO_HARD,
    "without either": NO_GATE,
}
# The paper's figures for settings with knowledge that its model wrote.
_PUBLISHED: Final = {
    **TABLE_3,
    "L2R": {**TABLE_3["L2R"], **TABLE_2["L2R, gpt-3.5-turbo"]},
}
_NO_STEPS: Final = "a model that scores options uses no steps"

Runs = Mapping[tuple[str, float | None], Sequence[Judged]]
"""Rows by suite name and share of gold knowledge, which is None for other knowledge.

The suite name of a run without steps ends in `WITHOUT_STEPS`.
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table: a setting with our figures and the paper's, if any.

    Attributes:
        published: The paper's (questions answered, accuracy in per cent).
        remark: Shown beside the figures, or instead of them.
    """

    label: str
    suite: str
    ours: Tally | None
    published: tuple[int, float] | None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A reproduced table or figure of the paper."""

    name: str
    title: str
    lines: tuple[Line, ...]


def table_1(runs: Runs) -> Table:
    """Return the overall comparison on TruthfulQA with all gold knowledge."""
    return Table(
        "table-1",
        "TruthfulQA, overall. Our knowledge base contains the gold answers, the "
        "paper's was written by its model: compare the plain lines with each other, "
        "and L2R with Table 4.",
        (*_overall(runs, (MC1, MC2)), *_published(TABLE_1, (MC1, MC2))),
    )


def table_2(runs: Runs) -> Table:
    """Return the other data sets, closed-book or with the knowledge given."""
    names = (COMMONSENSEQA, MEDQA, MEDQA_CORPUS)
    return Table(
        "table-2",
        "CommonsenseQA and MedQA. Without a knowledge base every question is refused; "
        "the paper's knowledge base was written by its model.",
        (*_overall(runs, names), *_published(TABLE_2, names)),
    )


def table_3(runs: Runs) -> Table:
    """Return the ablation of each gate, replayed on the same signals."""
    lines = []
    for suite in (MC1, MC2):
        rows = _rows(runs, suite)
        if not rows:
            continue
        for label, chosen in _GATES.items():
            published = TABLE_3.get(label, {}).get(suite)
            lines.append(Line(label, suite, tally(rows, chosen), published))
        bare = runs.get((f"{suite} {WITHOUT_STEPS}", 1.0))
        lines.append(
            Line(
                WITHOUT_STEPS,
                suite,
                tally(bare, L2R) if bare else None,
                TABLE_3[WITHOUT_STEPS][suite],
                "" if bare else _NO_STEPS,
            )
        )
    return Table("table-3", "Ablation, with all gold knowledge.", tuple(lines))


def enriched_key(suite: str, confidence: Confidence) -> str:
    """Return the name in `Runs` of a run on enriched knowledge."""
    return f"{suite}, {confidence.value} confidence"


def enriched_table(runs: Runs) -> Table:
    """Return the gates' ablation on knowledge that the model wrote, as in the paper."""
    lines = []
    for confidence in Confidence:
        for suite in (MC1, MC2, COMMONSENSEQA, MEDQA):
            rows = runs.get((enriched_key(suite, confidence), None))
            for label, chosen in _GATES.items() if rows else ():
                is_papers = confidence is Confidence.STATED
                published = _PUBLISHED.get(label, {}).get(suite) if is_papers else None
                setting = f"{label}, {confidence.value} confidence"
                lines.append(Line(setting, suite, tally(rows or (), chosen), published))
    return Table(
        "tables-1-to-3-enriched",
        "With knowledge that the model wrote from the questions alone, which is the "
        "paper's set-up: stated confidence is what the model says, checked confidence "
        "takes its own samples and likelihood into account.",
        tuple(lines),
    )


def table_4(runs: Runs) -> Table:
    """Return L2R and no refusal, by the share of gold knowledge."""
    lines = []
    for suite in (MC1, MC2):
        for ratio in sorted(RATIOS):
            rows = runs.get((suite, ratio))
            if not rows:
                continue
            ours, ungated = tally(rows, L2R), ungated_tally(rows)
            paper = TABLE_4[ratio] if suite == MC1 else (None, None)
            remark = _refusals(ours, is_all=suite == MC1 and ratio == 1.0)
            lines += [
                Line(f"{ratio:g} L2R", suite, ours, paper[0], remark),
                Line(f"{ratio:g} no refusal", suite, ungated, paper[1]),
            ]
    return Table("table-4", "By the share of gold knowledge.", tuple(lines))


def claims_of(runs: Runs) -> Iterator[Claim]:
    """Yield what refusal, and each of its gates, gains in accuracy on the answered."""
    for (suite, ratio), rows in runs.items():
        if not rows or suite.endswith(WITHOUT_STEPS):
            continue
        known = "" if ratio is None else f", {ratio:.0%} of the knowledge"
        gates = _GATES if ratio in (None, 1.0) else {"L2R": L2R}
        for label, chosen in gates.items():
            if label == "without either":
                continue
            found, answered = gained(rows, chosen), tally(rows, chosen).answered
            name = f"Learn to Refuse: {label}, {suite}{known}"
            yield Claim(
                f"{name}, answered against all",
                _paper(suite, ratio, label),
                found.value,
                found.interval,
                len(rows),
                f"{answered:,} of {len(rows):,} are answered.",
            )


def _paper(suite: str, ratio: float | None, label: str) -> str:
    if suite.startswith((COMMONSENSEQA, MEDQA)):
        return "Table 2"
    if label != "L2R":
        return "Table 3"
    return "Table 1" if ratio is None else "Table 4"


def figure_5(runs: Runs) -> Table:
    """Return answers and accuracy against alpha, hard refusal alone."""
    return _figure(
        runs, "figure-5", "Answers and accuracy against alpha.", recall=False
    )


def figure_6(runs: Runs) -> Table:
    """Return precision and recall against alpha, hard refusal alone."""
    return _figure(runs, "figure-6", "Precision and recall against alpha.", recall=True)


TABLES: Final = {1: table_1, 2: table_2, 3: table_3, 4: table_4}
FIGURES: Final = {5: figure_5, 6: figure_6}


def as_json(tables: Sequence[Table]) -> dict[str, Any]:
    """Return the tables as JSON values, by name."""
    return {table.name: asdict(table) for table in tables}


def text_table(table: Table) -> TextTable:
    return TextTable(
        f"{table.name.replace('-', ' ').capitalize()}: {table.title}",
        ("suite", "setting", "answered", "accuracy", "95 %", "paper", ""),
        tuple(map(_cells, table.lines))
        or (("no run of these suites", "", "", "", "", "", ""),),
        words=2,
    )


def _overall(runs: Runs, suites: Sequence[str]) -> list[Line]:
    lines = []
    for suite in suites:
        rows = _rows(runs, suite)
        if not rows:
            continue
        lines += [
            Line("plain", suite, plain_tally(rows), None),
            Line("knowledge, no refusal", suite, ungated_tally(rows), None),
            Line("knowledge, soft refusal", suite, tally(rows, NO_HARD), None),
            Line("L2R", suite, tally(rows, L2R), None),
        ]
    return lines


def _published(
    table: Mapping[str, Mapping[str, tuple[int, float]]], suites: Sequence[str]
) -> list[Line]:
    return [
        Line(f"paper: {label}", suite, None, figures[suite])
        for suite in suites
        for label, figures in table.items()
    ]


def _rows(runs: Runs, suite: str) -> Sequence[Judged]:
    """Return a suite's rows with all gold knowledge, or with the knowledge given."""
    return runs.get((suite, 1.0)) or runs.get((suite, None)) or ()


def _refusals(ours: Tally, *, is_all: bool) -> str:
    if ours.refusals_right is None:
        return ""
    paper = f", paper {REFUSALS_RIGHT} %" if is_all else ""
    share = f"{ours.refusals_right:.1%} of {ours.refused_drafts}"
    return f"refusals whose draft is wrong: {share}{paper}"


def _figure(runs: Runs, name: str, title: str, *, recall: bool) -> Table:
    lines = []
    for suite in (MC1, MC2):
        rows = _rows(runs, suite)
        if not rows:
            continue
        alphas = sorted({*_ALPHAS, EUCLIDEAN_ALPHA})
        for alpha, made in alpha_sweep(rows, alphas, soft=False):
            remark = f"{made.asked - made.answered} refused"
            if recall:
                right = (made.accuracy or 0.0) * made.answered
                remark = f"recall {right / made.asked:.3f}"
            label = f"alpha {alpha:.3f}, squared {alpha * alpha:.3f}"
            lines.append(Line(label, suite, made, None, remark))
    return Table(name, title, tuple(lines))


def _cells(line: Line) -> tuple[str, ...]:
    ours, paper = line.ours, line.published
    return (
        line.suite,
        line.label,
        f"{ours.answered} of {ours.asked}" if ours else "",
        "" if ours is None or ours.accuracy is None else percent(ours.accuracy),
        bounds(ours.interval) if ours and ours.interval else "",
        f"{paper[0]} at {paper[1]} %" if paper else "",
        line.remark,
    )
