"""Print what honesty steering does to the truth of a model's choices."""

import argparse
import random
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.exceptions import NescioError
from qa.management.base import positive, require_files, write_figures
from qa.management.progress import Bars

_STRENGTHS = (-1.0, -0.3, 0.0, 0.1, 0.3, 1.0)


class Command(BaseCommand):
    """`manage.py evaluate_steering --data PATH`."""

    help = (
        "Choose TruthfulQA's options (MC1) by likelihood under several strengths of "
        "honesty steering, with the directions in force, and compare each with none in "
        "a paired test. Exit code: 0, or 2 if it can't be measured."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--data", type=Path, required=True, metavar="PATH",
            help="mc_task_random.json, its directory, or one of data sets.",
        )  # fmt: skip
        parser.add_argument(
            "--strengths", type=float, nargs="+", default=_STRENGTHS, metavar="N",
            help="Besides 0 (default: -1 -0.3 0 0.1 0.3 1).",
        )  # fmt: skip
        parser.add_argument("--limit", type=positive, help="Ask a seeded sample.")
        parser.add_argument("--seed", type=int, default=0, help="Of the sample.")
        parser.add_argument(
            "--markdown", type=Path, metavar="PATH", help="Also write the table there."
        )

    def handle(self, **options: Any) -> None:  # noqa: ANN401  # as declared
        # Pulls in torch, which the help does without.
        from qa.evaluation.report.tables import (  # noqa: PLC0415
            markdown_of,
            print_tables,
        )
        from qa.inference.monitored_writer import monitored_writer  # noqa: PLC0415
        from studies.ctrla.steering import chosen_under, steering_table, strengths_of  # noqa: PLC0415
        from studies.l2r.questions import read_truthfulqa  # noqa: PLC0415

        require_files(options["markdown"])
        try:
            data = read_truthfulqa(options["data"], several=False, seed=options["seed"])
            writer = monitored_writer()
            ordered = sorted(data.questions, key=lambda question: question.id)
            count = min(options["limit"] or len(ordered), len(ordered))
            drawn = random.Random(options["seed"]).sample(ordered, count)  # noqa: S311  # no secret
            with Bars(Console(file=self.stderr)) as bars:  # type: ignore[arg-type]  # a text stream but by name
                found = chosen_under(
                    writer.model,
                    writer.directions,
                    drawn,
                    sorted({0.0, *options["strengths"]}),
                    on_progress=partial(bars.at, "questions"),
                )
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error
        table = steering_table(strengths_of(found))
        console = Console(file=self.stdout, highlight=False, soft_wrap=True)  # type: ignore[arg-type]  # the same
        print_tables([table], (), console)
        if path := options["markdown"]:
            heading = {
                "questions": len(drawn),
                "seed": options["seed"],
                "data": data.digest[:12],
                "writer": writer.fingerprint[:12],
            }
            text = markdown_of("Honesty steering", heading, [table], ())
            write_figures(path, text)
