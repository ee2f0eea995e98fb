"""Print what the language model's own activations tell of its answers."""

import argparse
from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from rich.console import Console

from accounts.exceptions import NescioError
from qa.evaluation.report.tables import markdown_of, print_tables
from qa.management.base import (
    require_directories,
    require_files,
    write_figures,
    writing,
)
from qa.management.fitting_arguments import add_probe_fitting, probe_fitting
from qa.management.progress import Bars
from studies.abstention.scores import PARTS


class Command(BaseCommand):
    """`manage.py report_abstention --runs ID...`."""

    help = (
        "Print how well the language model's activations, and every other score, tell "
        "right answers from wrong ones: out of fold by article, with bootstrap 95 % "
        "intervals. Takes finished evaluation runs in shadow. What is read from the "
        "model is kept, so that a broken-off report goes on from there. Exit code: 0, or "
        "2 if it can't be made."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--runs", nargs="+", type=int, required=True, metavar="ID",
            help="Finished evaluation runs of the running language model, in shadow.",
        )  # fmt: skip
        parser.add_argument(
            "--folds", type=int, default=5, help="Of the cross-validation, at least 3."
        )
        parser.add_argument("--seed", type=int, default=0, help="Of all that is drawn.")
        parser.add_argument(
            "--without", nargs="+", choices=PARTS, default=(), metavar="PART",
            help=f"Parts to leave out, for they take long: {', '.join(PARTS)}.",
        )  # fmt: skip
        add_probe_fitting(parser)
        parser.add_argument(
            "--json", type=Path, metavar="PATH", help="Also write the figures there."
        )
        parser.add_argument(
            "--markdown", type=Path, metavar="PATH", help="Also write them as Markdown."
        )
        parser.add_argument(
            "--plots", type=Path, metavar="DIR",
            help="Also draw risk against coverage there, as SVG and PNG.",
        )  # fmt: skip

    def handle(
        self,
        *,
        runs: Sequence[int],
        folds: int,
        seed: int,
        **options: Any,  # noqa: ANN401  # as declared
    ) -> None:
        # torch takes seconds, which `--help` need not pay for.
        from studies.abstention import report  # noqa: PLC0415

        console = Console(file=self.stdout)  # type: ignore[arg-type]  # a text stream but by name
        errors = Console(file=self.stderr)  # type: ignore[arg-type]  # the same
        require_files(options["json"], options["markdown"])
        require_directories(options["plots"])
        try:
            with Bars(errors) as bars:
                made = report.abstention_report(
                    runs,
                    folds=folds,
                    seed=seed,
                    without=options["without"],
                    fitting=probe_fitting(options),
                    directory=settings.PLACES.activations,
                    on_progress=bars.at,
                )
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error
        figures, notes = made.figures, made.figures["notes"]
        tables = list(report.tables(figures))
        print_tables(tables, notes, console)
        date = {"date": f"{timezone.localdate():%Y-%m-%d}"}
        if path := options["json"]:
            write_figures(
                path, dumps({**date, **figures}, indent=2, ensure_ascii=False)
            )
        if path := options["markdown"]:
            heading = date | {name: figures[name] for name in _HEADING}
            write_figures(path, markdown_of("Abstention", heading, tables, notes))
        if directory := options["plots"]:
            with writing(directory):
                made.write_plots(directory)


_HEADING = ("runs", "language_model", "answers", "articles", "right", "folds", "seed")
