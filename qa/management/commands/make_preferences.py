"""Write which notes make the language model surer, and which less."""

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.exceptions import NescioError
from qa.management.arguments import share
from qa.management.question_arguments import add_notes, add_questions, questions_of


class Command(BaseCommand):
    """`manage.py make_preferences FILE ... --output preferences.jsonl`."""

    help = (
        "Ask the boundary probe in force of each question alone and with each of its "
        "notes, and write those that move it as JSON Lines of query, pos, neg and "
        "prompt: what train_reranker is fitted on. Exit code: 0, or 2 if it can't be done."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_questions(parser)
        add_notes(parser, 8)
        parser.add_argument(
            "--output", type=Path, required=True, metavar="FILE", help="Written anew."
        )
        parser.add_argument(
            "--margin", type=share, default=0.005, metavar="SHARE",
            help="How far a note has to move the confidence (default 0.005).",
        )  # fmt: skip

    def handle(self, **options: Any) -> None:  # noqa: ANN401  # as declared
        # Pulls in torch, which the help does without.
        from probes.reranker.preferences import write_preferences  # noqa: PLC0415
        from qa.training.preferences import make_preferences  # noqa: PLC0415

        try:
            asked, made = make_preferences(
                questions_of(options), margin=options["margin"]
            )
            write_preferences(options["output"], made)
        except (NescioError, OSError) as error:
            raise CommandError(str(error), returncode=2) from error
        self.stdout.write(
            f"{len(made):,} preferences of {asked:,} questions are written to "
            f"{options['output']}; of the others no note moves the model both ways."
        )
