"""Fine-tune a reranker on preferences and print how it ranks held-out ones."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.exceptions import NescioError
from qa.management.progress import Bars
from qa.management.reranker_arguments import add_fitting, fitting_of


class Command(BaseCommand):
    """`manage.py train_reranker FILE ... --output DIR`."""

    help = (
        "Fine-tune a cross-encoder on what make_preferences wrote, with InfoNCE, stopped "
        "by the ranking of held-out questions, and write its files: what NESCIO_RERANKER "
        "names. Exit code: 0, or 2 if it can't be fitted."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "files", type=Path, nargs="+", metavar="FILE", help="Preferences."
        )
        parser.add_argument(
            "--held-out", type=Path, nargs="+", default=[], metavar="FILE",
            help="Preferences that stop the fit (default: those of every eighth question).",
        )  # fmt: skip
        parser.add_argument(
            "--output", type=Path, required=True, metavar="DIR", help="For its files."
        )
        parser.add_argument("--seed", type=int, default=0, help="Of all that is drawn.")
        add_fitting(parser)

    def handle(self, **options: Any) -> None:  # noqa: ANN401  # as declared
        # Pulls in torch, which the help does without.
        from probes.reranker.fitting import RerankerSettings  # noqa: PLC0415
        from probes.reranker.preferences import read_preferences  # noqa: PLC0415
        from qa.training.preferences import train_reranker  # noqa: PLC0415

        errors = Console(file=self.stderr)  # type: ignore[arg-type]  # a text stream but by name
        try:
            with Bars(errors) as bars:
                card = train_reranker(
                    read_preferences(*options["files"]),
                    read_preferences(*options["held_out"]),
                    options["output"],
                    base=options["base"],
                    fitting=replace(RerankerSettings(), **fitting_of(options)),
                    on_step=lambda step: bars.at("Fitting", step.number, step.total),
                )
        except (NescioError, OSError) as error:
            raise CommandError(str(error), returncode=2) from error
        metrics = card.metrics
        self.stdout.write(
            f"Fitted on {card.sizes['preferences']:,} preferences. MRR@10 on "
            f"{card.sizes['held_out']:,} held-out ones, which stopped it: "
            f"{metrics['before']:.3f} before, {metrics['mrr@10']:.3f} after. Written to "
            f"{options['output']}; set NESCIO_RERANKER to it."
        )
