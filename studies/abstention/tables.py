"""The abstention study's figures as text tables, for the terminal and for Markdown."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from qa.evaluation.report.tables import TextTable, percent
from studies.figures import number, percent_with_interval, points, table, with_interval
from studies.study import Claim

from .scores import (
    JOINT,
    LINEAR,
    LOG_PROBABILITY,
    LSTM,
    LSTM_ALONE,
    LSTM_ALONE_PLAIN,
    TITLES,
)

Report = Mapping[str, Any]
_PARTS: Final = {"block": "block's output", "ffn": "inside feed-forward"}
_MASKING: Final = {
    "precision": "precision",
    "recall": "recall",
    "rouge_displayed": "ROUGE-L displayed",
    "rouge_masked": "ROUGE-L masked",
    "masked": "masked",
    "masked_right": "right among masked",
}
_NUMBERS: Final = ("rouge_displayed", "rouge_masked")
_EARLY: Final = {
    "right": "fitted to right answers, predicts right answers",
    "right_at_two_thirds": "the same, read at two thirds of the depth",
    "answerable_by_right": "fitted to right answers, predicts answerable questions",
    "answerable": "fitted to answerable questions, predicts answerable questions",
}
_REACHED: Final = {True: "reached", False: "missed", None: "unknown"}


def tables(report: Report) -> Iterator[TextTable]:
    """Yield every table that has rows.

    Args:
        report: As `build_report` returns it.
    """
    parts = (
        _areas(report),
        _differences(report),
        *(_thresholds(report, name) for name in (LSTM, JOINT)),
        _coverage(report),
        _against_distance(report),
        _early(report),
        _variants(report),
        _learning(report),
        _goals(report),
    )
    yield from (part for part in parts if part.rows)


def _areas(report: Report) -> TextTable:
    oracle = {"name": "oracle", "aurc": report["areas"]["oracle_aurc"]}
    scores = report["areas"]["scores"].items()
    rows = [{"name": TITLES[name], **part} for name, part in scores]
    return table(
        "Right against wrong",
        [*rows, oracle],
        {
            "score": lambda row: row["name"],
            "AUROC (95 %)": partial(_area, "auroc"),
            "AURC (95 %)": partial(_area, "aurc"),
            "ECE": lambda row: number(row.get("ece")),
            "Brier": lambda row: number(row.get("brier")),
        },
    )


def _differences(report: Report) -> TextTable:
    return table(
        "Differences",
        report["differences"].items(),
        {
            "on the same answers": lambda row: " minus ".join(
                TITLES[one] for one in row[0].split(" against ")
            ),
            "AUROC (95 %)": lambda row: _difference(row[1]["auroc"]),
            "AURC (95 %)": lambda row: _difference(row[1]["aurc"]),
        },
    )


def _thresholds(report: Report, name: str) -> TextTable:
    return table(
        f"Thresholds: {TITLES[name]}",
        report["thresholds"][name],
        {"threshold": lambda row: f"{row['threshold']:.1f}", **_MASKING_CELLS},
        words=0,
    )


def _coverage(report: Report) -> TextTable:
    found = report["coverage"]
    first = next(iter(found.values()))
    rows = tuple(
        (
            TITLES[name],
            *(percent(point["value"]) for point in part["risk_at_coverage"]),
            _share(part["coverage_at_risk"]),
        )
        for name, part in found.items()
    )
    heads = (
        "score",
        *(f"risk at {p['coverage']:.0%}" for p in first["risk_at_coverage"]),
        f"shown at {first['coverage_at_risk']['risk']:.0%} risk (95 %)",
    )
    return TextTable("Risk and coverage", heads, rows)


def _against_distance(report: Report) -> TextTable:
    return table(
        "Risk of all gates against distance alone",
        report["against_distance"],
        {
            "coverage": lambda point: percent(point["coverage"]),
            "distance alone": lambda point: percent(point["first"]),
            "all gates": lambda point: percent(point["second"]),
            "difference in points (95 %)": lambda point: points(
                point["difference"], point["difference_95"]
            ),
        },
        words=0,
    )


def _early(report: Report) -> TextTable:
    return table(
        "Before the answer",
        report["early"].items(),
        {
            "early probe": lambda row: _EARLY[row[0]],
            "AUROC (95 %)": lambda row: _area("auroc", row[1]),
        },
    )


def _variants(report: Report) -> TextTable:
    return table(
        f"Where the LSTM reads ({report['blocks']} blocks, from 0 on); threshold 0.5",
        report.get("variants", ()),
        {
            "block": lambda part: f"{part['layer']}, {_PARTS[part['part']]}",
            "pieces of evidence": lambda part: str(part["pieces"] or "all"),
            "AUROC (95 %)": partial(_area, "auroc"),
            **_MASKING_CELLS,
        },
    )


def _learning(report: Report) -> TextTable:
    found = report.get("learning", ())
    names = tuple(found[0]["scores"]) if found else ()
    rows = tuple(
        (
            f"{part['answers']:,}",
            *(_area("auroc", part["scores"][name]) for name in names),
        )
        for part in found
    )
    heads = ("labelled answers", *(f"{TITLES[name]} (95 %)" for name in names))
    return TextTable("What more labelled answers add: AUROC", heads, rows, words=0)


def _goals(report: Report) -> TextTable:
    return table(
        "Goals",
        report["goals"],
        {
            "goal": lambda goal: goal["what"],
            "reached": lambda goal: number(goal["value"], sign="+"),
            "at least": lambda goal: number(goal["least"], sign="+"),
            "": lambda goal: _REACHED[goal["is_met"]],
        },
    )


def _area(name: str, part: Report) -> str:
    return with_interval(part.get(name), part.get(f"{name}_95"))


def _difference(part: Report) -> str:
    return with_interval(part["difference"], part["difference_95"], sign="+")


def _share(part: Report) -> str:
    return percent_with_interval(part["value"], part["bootstrap_95"])


def _masking(name: str, row: Report) -> str:
    part = row[name]
    if name in _NUMBERS:
        return with_interval(part["value"], part["bootstrap_95"])
    return _share(part)


_MASKING_CELLS: Final[Mapping[str, Callable[[Report], str]]] = {
    f"{head} (95 %)": partial(_masking, name) for name, head in _MASKING.items()
}


# The claims of the paper.


def claims_of(report: Report) -> Iterator[Claim]:
    """Yield what the paper's network, its parts and joining all signals gain."""
    found = report["differences"]
    for second, first, paper in (
        (LSTM_ALONE, LOG_PROBABILITY, "Tables 1 and 2"),
        (LSTM, LOG_PROBABILITY, "Tables 1 and 2"),
        (LSTM, LINEAR, "Table 1"),
        (LSTM_ALONE, LSTM_ALONE_PLAIN, "equation 4"),
    ):
        part = found.get(f"{second} against {first}")
        if part:
            yield _claim(
                f"{TITLES[second]} against {TITLES[first]}", paper, part, report
            )
    for name, part in found.items():
        if name.startswith(JOINT):
            _, _, first = name.partition(" against ")
            title = f"all signals joined against {TITLES[first]}, the best single one"
            yield _claim(title, "", part, report)


def _claim(name: str, paper: str, part: Report, report: Report) -> Claim:
    areas = report["areas"]["scores"]
    linear = areas.get(LINEAR, {}).get("auroc")
    why = "" if linear is None else f"The linear probe alone has {linear:.3f}."
    return Claim(
        f"Response abstinence: {name}",
        paper,
        part["auroc"]["difference"],
        part["auroc"]["difference_95"],
        report["answers"],
        why,
        unit="AUROC",
    )
