"""Propose the least confidence of a monitored word, from labelled questions."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.exceptions import NescioError
from qa.exceptions import EvaluationDataError
from qa.management.arguments import positive
from qa.management.progress import Bars


class Command(BaseCommand):
    """`manage.py calibrate_monitor FILE ...`."""

    help = (
        "Answer labelled questions closed-book, watched by the directions in force, and "
        "propose min_token_confidence: the threshold that tells right answers from "
        "wrong ones best, chosen on one half of the questions and measured on the other. "
        "Exit code: 0, or 2 if it can't be done."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "files", type=Path, nargs="+", metavar="FILE",
            help="JSON Lines with question and answers.",
        )  # fmt: skip
        parser.add_argument(
            "--steering", type=float, default=0.0, metavar="N",
            help="As the policy's (default: 0).",
        )  # fmt: skip
        parser.add_argument("--limit", type=positive, help="Ask a seeded sample.")
        parser.add_argument("--seed", type=int, default=0, help="Of sample and halves.")

    def handle(self, **options: Any) -> None:  # noqa: ANN401  # as declared
        # Pulls in torch, which the help does without.
        from qa.calibration.min_token_confidence import (  # noqa: PLC0415
            self_knowledge_row,
            self_knowledge_table,
            watch,
        )
        from qa.evaluation.cases import (  # noqa: PLC0415
            Case,
            in_seeded_order,
            question_id,
        )
        from qa.evaluation.report.tables import print_tables  # noqa: PLC0415
        from qa.inference.monitored_writer import monitored_writer  # noqa: PLC0415
        from qa.training.labelled_questions import questions_of_file  # noqa: PLC0415

        try:
            asked = [
                row for file in options["files"] for row in questions_of_file(file)
            ]
            found = {
                question_id(row.question): Case(
                    question_id(row.question),
                    row.question,
                    is_answerable=True,
                    references=row.references,
                )
                for row in asked
            }
            ordered = in_seeded_order(found.values(), options["seed"])
            cases = ordered[: options["limit"]]
            writer = monitored_writer()
            with Bars(Console(file=self.stderr)) as bars:  # type: ignore[arg-type]  # a text stream but by name
                watched = watch(
                    writer,
                    cases,
                    steering=options["steering"],
                    by_answer=True,
                    on_progress=partial(bars.at, "questions"),
                )
            half = len(watched) // 2
            if not all(
                0 < sum(w.is_positive for w in part) < len(part)
                for part in (watched[:half], watched[half:])
            ):
                msg = (
                    f"Of {len(watched)} questions {sum(w.is_positive for w in watched)} were "
                    "answered rightly: each half needs right and wrong answers. Give more."
                )
                raise EvaluationDataError(msg)
            row = self_knowledge_row(
                options["steering"], watched[:half], watched[half:]
            )
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error
        console = Console(file=self.stdout, highlight=False, soft_wrap=True)  # type: ignore[arg-type]  # the same
        print_tables(
            [self_knowledge_table([row], ("right answers", "wrong ones"))], (), console
        )
        console.print(
            f"Chosen on {half} questions and measured on {len(watched) - half} others. "
            f"Proposed: min_token_confidence {row[1]:.2f} with steering "
            f"{options['steering']:g}, for the writer {writer.fingerprint[:12]} alone."
        )
