"""Compare two evaluation runs on the questions that both asked."""

import argparse
from json import dumps, loads
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from rich.console import Console

from accounts.ids import number_in
from qa.evaluation.judging import Judged
from qa.evaluation.models import EvaluationRun
from qa.evaluation.report.build import judged_from
from qa.evaluation.report.comparison import compare, worse
from qa.evaluation.report.tables import TextTable, print_tables
from qa.evaluation.runs import judged_of
from qa.exceptions import EvaluationDataError
from qa.management import base


class Command(base.Command):
    help = (
        "Compare two evaluation runs question by question: how often only one of them "
        "is right, and by how much their figures differ, with 95 % intervals. Exit "
        "code: 0, 1 with --fail-if-worse if the second is significantly worse in some "
        "figure, 2 if they can't be compared."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        which = "the number of a stored run, or a report that `evaluate --json` wrote"
        parser.add_argument("first", metavar="FIRST", help=f"The older run: {which}.")
        parser.add_argument("second", metavar="SECOND", help=f"The newer run: {which}.")
        parser.add_argument(
            "--json", type=Path, metavar="PATH", help="Also write the comparison there."
        )
        parser.add_argument(
            "--fail-if-worse",
            action="store_true",
            help="Exit with 1 if the second run is worse in a figure and the "
            "interval of the difference excludes 0.",
        )

    def handle(
        self,
        *,
        first: str,
        second: str,
        json: Path | None,
        fail_if_worse: bool,
        **_options: object,
    ) -> None:
        comparison = compare(_rows(first), _rows(second))
        _show(comparison, self.console(wrap=True))
        if json:
            base.write_figures(json, dumps(comparison, indent=2, ensure_ascii=False))
        names = worse(comparison)
        if fail_if_worse and names:
            msg = f"The second run is worse in: {', '.join(names)}."
            raise CommandError(msg, returncode=1)


def _rows(named: str) -> list[Judged]:
    if (number := number_in(named)) is not None:
        run = EvaluationRun.objects.filter(pk=number).first()
        if run is None:
            raise EvaluationDataError(f"There is no evaluation run {named}.")
        return judged_of(run)
    try:
        report = loads(Path(named).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EvaluationDataError(f"{named} is not a report: {error}") from error
    if not isinstance(report, dict):
        raise EvaluationDataError(f"{named} is not a report: it is not a JSON object.")
    return judged_from(report)


def _show(comparison: dict[str, Any], console: Console) -> None:
    counts = comparison["right_or_wrong"]
    console.print(
        f"{comparison['questions']:,} questions in both runs; "
        f"{comparison['only_in_first']:,} in the first alone, "
        f"{comparison['only_in_second']:,} in the second alone, left out."
    )
    console.print(
        f"Right in both {counts['both']:,}, in the first alone {counts['only_first']:,}, "
        f"in the second alone {counts['only_second']:,}, in neither "
        f"{counts['neither']:,}; McNemar's exact p = {counts['p_value']:.3g}."
    )
    rows = tuple(
        (
            name.replace("_", " "),
            _number(part["first"]),
            _number(part["second"]),
            _number(part["difference"], sign="+"),
            " to ".join(
                _number(end, sign="+") for end in part["bootstrap_95"] or [None]
            ),
            "worse" if part["is_worse"] else "",
        )
        for name, part in comparison["differences"].items()
    )
    heads = ("", "first", "second", "difference", "95 % interval", "")
    print_tables([TextTable("Second minus first", heads, rows)], (), console)


def _number(value: float | None, *, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign}.3f}"
