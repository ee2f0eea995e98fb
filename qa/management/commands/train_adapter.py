"""`manage.py train_adapter`: teach a language model to answer from notes or write nothing."""

import argparse
import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.exceptions import NescioError
from qa.management.progress import Bars


class Command(BaseCommand):
    """`manage.py train_adapter --data PATH --output DIR`."""

    help = (
        "Fit a low-rank adapter to the language model on questions like SQuAD 2.0's, "
        "with the notes that the retriever finds for them. NESCIO_LANGUAGE_ADAPTER "
        "names the directory afterwards. Measure it on articles that it never saw: "
        "evaluate squad2 --exclude-articles."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, required=True, metavar="PATH")
        parser.add_argument("--output", type=Path, required=True, metavar="DIR")
        parser.add_argument(
            "--model", default="", metavar="NAME", help="Not the one in the settings."
        )
        parser.add_argument(
            "--articles", nargs="+", default=(), help="Learn from these alone."
        )
        parser.add_argument(
            "--exclude-articles", nargs="+", default=(), help="From all but these."
        )
        parser.add_argument("--rank", type=int, default=16)
        parser.add_argument("--epochs", type=int, default=1)
        parser.add_argument("--batch", type=int, default=8)
        parser.add_argument("--learning-rate", type=float, default=5e-4)
        parser.add_argument(
            "--answerable",
            type=float,
            default=0.5,
            help="Share of the examples that have an answer, more than 0, less than 1.",
        )
        parser.add_argument("--limit", type=int, metavar="N", help="N examples.")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument(
            "--threads", type=int, default=os.cpu_count() or 1, help="All by default."
        )

    def handle(self, **options: Any) -> None:  # noqa: ANN401  # as declared
        # torch and peft take seconds to import: `help` needs neither.
        from django.conf import settings  # noqa: PLC0415

        from probes.adapter.fitting import AdapterSettings  # noqa: PLC0415
        from qa.training.adapter import AdapterTraining, train_adapter  # noqa: PLC0415

        if not 0 < options["answerable"] < 1:
            raise CommandError(
                f"--answerable {options['answerable']} is not between 0 and 1.",
                returncode=2,
            )
        training = AdapterTraining(
            data=options["data"],
            articles=tuple(options["articles"]),
            exclude_articles=tuple(options["exclude_articles"]),
            answerable=options["answerable"],
            limit=options["limit"],
            threads=options["threads"],
            settings=AdapterSettings(
                rank=options["rank"],
                scale=2.0 * options["rank"],
                learning_rate=options["learning_rate"],
                batch=options["batch"],
                epochs=options["epochs"],
                seed=options["seed"],
            ),
        )
        console = Console(file=self.stderr)  # type: ignore[arg-type]  # a text stream but by name
        try:
            with Bars(console) as bars:
                card = train_adapter(
                    options["model"] or settings.LANGUAGE_MODEL,
                    training,
                    options["output"],
                    on_progress=bars.at,
                )
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error
        figures = ", ".join(f"{name} {value:g}" for name, value in card.metrics.items())
        self.stdout.write(
            f"{options['output']}: {figures}; {len(card.groups)} articles, weights "
            f"{card.weights_sha256[:12]}."
        )
