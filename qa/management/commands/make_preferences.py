"""`manage.py make_preferences`: find notes that change the model's confidence."""

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from qa.management import base
from qa.management.base import add_questions, get_questions


class Command(base.Command):
    help = (
        "Ask the active boundary probe about each question alone and with each of its "
        "notes, and write the notes that change its confidence as JSON Lines of query, "
        "pos, neg and prompt, the input of `train reranker`. Exit code: 0, or 2 on "
        "failure."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_questions(parser, notes=8)
        parser.add_argument(
            "--output", type=Path, required=True, metavar="FILE", help="Overwritten."
        )
        parser.add_argument(
            "--margin", type=base.share, default=0.005, metavar="SHARE",
            help="Smallest change of confidence that counts (default 0.005).",
        )  # fmt: skip

    def handle(self, **options: Any) -> None:
        # Imported here because it pulls in torch, which --help does not need.
        from probes.reranker.preferences import write_preferences  # noqa: PLC0415
        from qa.training.preferences import make_preferences  # noqa: PLC0415

        try:
            count, made = make_preferences(
                get_questions(options), margin=options["margin"]
            )
            write_preferences(options["output"], made)
        except OSError as error:
            raise CommandError(str(error), returncode=2) from error
        self.stdout.write(
            f"{len(made):,} preferences of {count:,} questions are written to "
            f"{options['output']}; the other questions have no notes that move the "
            "model both ways."
        )
