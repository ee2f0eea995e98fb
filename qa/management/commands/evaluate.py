"""Ask labelled questions and print how often the answers and refusals are right."""

import argparse
from collections.abc import Iterator, Sequence
from json import dumps
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.progress import TimeRemainingColumn as Remaining

from accounts.exceptions import NescioError
from qa.evaluation.report.cases import RATES, as_json, metrics_of, print_report
from qa.evaluation.results import Result, evaluate
from qa.evaluation.suites import SUITES, open_suite


class Command(BaseCommand):
    """`manage.py evaluate SUITE`."""

    help = (
        "Ask the labelled questions of a suite, as the users that they name, and print "
        "false answers, false refusals and every wrong result. Exit code: 0, or 1 with "
        "--fail-over if a rate is above it, 2 if the suite can't be run."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the suite and what to do with the result."""
        parser.add_argument("suite", choices=sorted(SUITES))
        parser.add_argument(
            "--json", type=Path, metavar="PATH", help="Also write the report there."
        )
        parser.add_argument(
            "--limit", type=_positive, metavar="N", help="Ask only the first N."
        )
        parser.add_argument(
            "--fail-over",
            type=_share,
            metavar="RATE",
            help="Exit with 1 if more than this share (0 to 1) of the questions to be "
            "refused was answered, of those to be answered refused, or of the shown "
            "answers wrong.",
        )

    def handle(
        self,
        *,
        suite: str,
        json: Path | None,
        limit: int | None,
        fail_over: float | None,
        **_options: object,
    ) -> None:
        """Run the suite, print, write and judge it."""
        console = Console(file=self.stdout)  # type: ignore[arg-type]  # a text stream but by name
        try:
            chosen = open_suite(suite)
            cases = chosen.cases[:limit]
            asked = evaluate(cases, ask=chosen.ask, key_of=chosen.key_of)
            results = tuple(_shown(asked, len(cases)))
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error
        print_report(results, console)
        if json:
            report = dumps(as_json(suite, results), indent=2, ensure_ascii=False)
            json.write_text(f"{report}\n", encoding="utf-8")
        if fail_over is not None:
            _judge(results, fail_over)


def _shown(results: Iterator[Result], total: int) -> Iterator[Result]:
    """Pass the results on and show progress on standard error."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Remaining(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("Asking", total=total)
        for result in results:
            progress.update(task, advance=1, description=result.case.id)
            yield result


def _judge(results: Sequence[Result], limit: float) -> None:
    metrics = metrics_of(results)
    over = [
        f"{name} {getattr(metrics, field).value:.3f}"
        for name, field, _ in RATES[:3]
        if (getattr(metrics, field).value or 0.0) > limit
    ]
    if over:
        msg = f"Above --fail-over {limit}: {', '.join(over)}."
        raise CommandError(msg, returncode=1)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        msg = f"{text} is not a positive number"
        raise argparse.ArgumentTypeError(msg)
    return number


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        msg = f"{text} is not between 0 and 1"
        raise argparse.ArgumentTypeError(msg)
    return share
