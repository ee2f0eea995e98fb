"""Print whether the monitor tells answerable questions from unanswerable ones."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.exceptions import NescioError
from qa.management.base import positive, require_files, write_figures
from qa.management.progress import Bars


class Command(BaseCommand):
    """`manage.py evaluate_self_knowledge --data PATH`."""

    help = (
        "Answer as many answerable as unanswerable questions of SelfAware closed-book, "
        "watched by the directions in force, and print how many of each the monitor "
        "tells, by a threshold that is chosen on as many other questions. Exit code: 0, "
        "or 2 if it can't be measured."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--data", type=Path, required=True, metavar="PATH",
            help="SelfAware.json, its directory, or one of data sets.",
        )  # fmt: skip
        parser.add_argument(
            "--questions", type=positive, default=50, help="Of each kind (default: 50)."
        )
        parser.add_argument(
            "--steering", type=float, nargs="+", default=[0.0, 0.3], metavar="N",
            help="Strengths of honesty steering (default: 0 0.3).",
        )  # fmt: skip
        parser.add_argument("--seed", type=int, default=0, help="Of the sample.")
        parser.add_argument(
            "--markdown", type=Path, metavar="PATH", help="Also write the table there."
        )

    def handle(self, **options: Any) -> None:  # noqa: ANN401  # as declared
        # Pulls in torch, which the help does without.
        from qa.calibration.min_token_confidence import (  # noqa: PLC0415
            parted,
            self_knowledge_row,
            self_knowledge_table,
            watch,
        )
        from qa.evaluation.report.tables import (  # noqa: PLC0415
            markdown_of,
            print_tables,
        )
        from qa.evaluation.suites.selfaware import read_selfaware  # noqa: PLC0415
        from qa.inference.monitored_writer import monitored_writer  # noqa: PLC0415

        require_files(options["markdown"])
        try:
            _, cases = read_selfaware(options["data"])
            count = options["questions"]
            chosen_by, tested = parted(cases, count, seed=options["seed"])
            writer = monitored_writer()
            rows = []
            with Bars(Console(file=self.stderr)) as bars:  # type: ignore[arg-type]  # a text stream but by name
                for steering in options["steering"]:
                    watched = [
                        watch(
                            writer,
                            some,
                            steering=steering,
                            by_answer=False,
                            on_progress=partial(bars.at, what),
                        )
                        for what, some in (
                            (f"to choose by, steering {steering:g}", chosen_by),
                            (f"to test on, steering {steering:g}", tested),
                        )
                    ]
                    rows.append(self_knowledge_row(steering, *watched))
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error
        table = self_knowledge_table(rows, ("answerable", "unanswerable"))
        console = Console(file=self.stdout, highlight=False, soft_wrap=True)  # type: ignore[arg-type]  # the same
        print_tables([table], (), console)
        if path := options["markdown"]:
            heading = {
                "questions": f"{count} of each kind, the threshold by {count} others",
                "seed": options["seed"],
                "writer": writer.fingerprint[:12],
            }
            text = markdown_of("Self-knowledge", heading, [table], ())
            write_figures(path, text)
