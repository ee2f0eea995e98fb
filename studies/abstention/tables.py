"""The figures of abstention as tables of text, for the terminal and for Markdown."""

from collections.abc import Iterator, Mapping
from typing import Any

from qa.evaluation.report.tables import TextTable, percent
from studies.figures import number, percent_with_interval, points, with_interval

from .scores import JOINT, LSTM, TITLES

Report = Mapping[str, Any]
_PARTS = {"block": "block's output", "ffn": "inside feed-forward"}
_MASKING = {
    "precision": "precision",
    "recall": "recall",
    "rouge_displayed": "ROUGE-L displayed",
    "rouge_masked": "ROUGE-L masked",
    "masked": "masked",
    "masked_right": "of the masked right",
}
_NUMBERS = ("rouge_displayed", "rouge_masked")


def tables(report: Report) -> Iterator[TextTable]:
    """Yield every table that has something to show.

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
    rows = [
        (
            TITLES[name],
            with_interval(part["auroc"], part["auroc_95"]),
            with_interval(part["aurc"], part["aurc_95"]),
            number(part.get("ece")),
            number(part.get("brier")),
        )
        for name, part in report["areas"]["scores"].items()
    ]
    rows.append(("oracle", "-", number(report["areas"]["oracle_aurc"]), "-", "-"))
    heads = ("score", "AUROC (95 %)", "AURC (95 %)", "ECE", "Brier")
    return TextTable("Right against wrong", heads, tuple(rows))


def _differences(report: Report) -> TextTable:
    rows = tuple(
        (
            " minus ".join(TITLES[one] for one in name.split(" against ")),
            *(
                with_interval(
                    part[area]["difference"], part[area]["difference_95"], sign="+"
                )
                for area in ("auroc", "aurc")
            ),
        )
        for name, part in report["differences"].items()
    )
    heads = ("on the same answers", "AUROC (95 %)", "AURC (95 %)")
    return TextTable("Differences", heads, rows)


def _thresholds(report: Report, name: str) -> TextTable:
    rows = tuple(
        (f"{row['threshold']:.1f}", *_masking(row))
        for row in report["thresholds"][name]
    )
    heads = ("threshold", *(f"{head} (95 %)" for head in _MASKING.values()))
    return TextTable(f"Thresholds: {TITLES[name]}", heads, rows, words=0)


def _coverage(report: Report) -> TextTable:
    found = report["coverage"]
    first = next(iter(found.values()))
    rows = tuple(
        (
            TITLES[name],
            *(percent(point["value"]) for point in part["risk_at_coverage"]),
            _shares(part["coverage_at_risk"]),
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
    rows = tuple(
        (
            percent(point["coverage"]),
            percent(point["first"]),
            percent(point["second"]),
            points(point["difference"], point["difference_95"]),
        )
        for point in report["against_distance"]
    )
    heads = ("coverage", "distance alone", "all gates", "difference in points (95 %)")
    return TextTable("Risk of all gates against distance alone", heads, rows, words=0)


def _early(report: Report) -> TextTable:
    titles = {
        "right": "fitted to right answers, tells right from wrong",
        "right_at_two_thirds": "the same, read at two thirds of the depth",
        "answerable_by_right": "fitted to right answers, tells questions with an answer",
        "answerable": "fitted to questions with an answer, tells these",
    }
    rows = tuple(
        (titles[name], with_interval(part["auroc"], part["auroc_95"]))
        for name, part in report["early"].items()
    )
    return TextTable("Before the answer", ("early probe", "AUROC (95 %)"), rows)


def _variants(report: Report) -> TextTable:
    rows = tuple(
        (
            f"{part['layer']}, {_PARTS[part['part']]}",
            str(part["pieces"] or "all"),
            with_interval(part["auroc"], part["auroc_95"]),
            *_masking(part),
        )
        for part in report.get("variants", ())
    )
    heads = (
        "block",
        "pieces of evidence",
        "AUROC (95 %)",
        *(f"{head} (95 %)" for head in _MASKING.values()),
    )
    title = (
        f"Where the LSTM reads, of {report['blocks']} blocks from 0 on; threshold 0.5"
    )
    return TextTable(title, heads, rows)


def _learning(report: Report) -> TextTable:
    found = report.get("learning", ())
    names = tuple(found[0]["scores"]) if found else ()
    rows = tuple(
        (
            f"{part['answers']:,}",
            *(
                with_interval(
                    part["scores"][name]["auroc"], part["scores"][name]["auroc_95"]
                )
                for name in names
            ),
        )
        for part in found
    )
    heads = ("labelled answers", *(f"{TITLES[name]} (95 %)" for name in names))
    return TextTable("What more labelled answers add: AUROC", heads, rows, words=0)


def _goals(report: Report) -> TextTable:
    words = {True: "reached", False: "missed", None: "unknown"}
    rows = tuple(
        (
            goal["what"],
            number(goal["value"], sign="+"),
            number(goal["least"], sign="+"),
            words[goal["is_met"]],
        )
        for goal in report["goals"]
    )
    return TextTable("Goals", ("goal", "reached", "at least", ""), rows)


def _masking(row: Report) -> Iterator[str]:
    for name in _MASKING:
        part = row[name]
        if name in _NUMBERS:
            yield with_interval(part["value"], part["bootstrap_95"])
        else:
            yield _shares(part)


def _shares(part: Report) -> str:
    return percent_with_interval(part["value"], part["bootstrap_95"])
