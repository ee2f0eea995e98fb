"""Fit directions of honesty and confidence and print what they tell."""

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.table import Table

from accounts.exceptions import NescioError
from probes.models import Probe
from probes.services import promote, register
from qa.management.arguments import positive
from qa.management.figures_file import require_directories, writing
from qa.management.progress import Bars


class Command(BaseCommand):
    """`manage.py train_directions FILE ...`."""

    help = (
        "Fit along what honesty and confidence run in each block of the configured "
        "language model as it came, print the share of held-out pairs that each block "
        "tells apart, and keep the directions as a candidate. Exit code: 0, or 2 if "
        "they can't be fitted."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "true", type=Path, nargs="+", metavar="FILE",
            help="CSV with the columns statement and label; those labelled 1 are read.",
        )  # fmt: skip
        parser.add_argument(
            "--sounding", type=Path, metavar="FILE",
            help="JSON Lines with confident and unconfident, instead of our own.",
        )  # fmt: skip
        parser.add_argument(
            "--method",
            choices=("mean", "principal"),
            default="mean",
            help="Mean difference, or the principal component of both signs.",
        )
        parser.add_argument(
            "--pairs", type=positive, default=512, help="Of each trait (default: 512)."
        )
        parser.add_argument(
            "--seed", type=int, default=0, help="Of what is held out, and of the pairs."
        )
        parser.add_argument("--note", default="", help="Kept with the directions.")
        parser.add_argument(
            "--promote", action="store_true", help="Put them in force at once."
        )
        parser.add_argument(
            "--output", type=Path, metavar="DIR", help="Also write their files there."
        )

    def handle(self, **options: Any) -> None:  # noqa: ANN401  # as declared
        # Pulls in torch, which the help does without.
        from probes.directions import OWN_STATEMENTS, DirectionSettings, Method  # noqa: PLC0415
        from qa.inference.closed_book_models import own_form  # noqa: PLC0415
        from qa.training.directions import read_statements, train_directions  # noqa: PLC0415

        console = Console(file=self.stdout, highlight=False, soft_wrap=True)  # type: ignore[arg-type]  # a text stream but by name
        require_directories(options["output"])
        try:
            statements = read_statements(
                options["true"], options["sounding"] or OWN_STATEMENTS
            )
            with Bars(Console(file=self.stderr)) as bars:  # type: ignore[arg-type]  # the same
                trained = train_directions(
                    own_form().model,
                    statements,
                    DirectionSettings(
                        pairs=options["pairs"],
                        method=Method(options["method"]),
                        seed=options["seed"],
                    ),
                    on_progress=bars.at,
                )
            probe = register(trained.files, note=options["note"])
            if options["promote"] and probe.state != Probe.State.ACTIVE:
                probe = promote(probe.pk, Probe.State.ACTIVE, by=None)
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error
        directions = trained.directions
        table = Table("block", "honesty", "confidence", "used for", box=None)
        for layer in range(directions.blocks):
            table.add_row(
                str(layer),
                f"{directions.honesty.accuracies[layer]:.3f}",
                f"{directions.confidence.accuracies[layer]:.3f}",
                ", ".join(
                    use
                    for use, layers in (
                        ("steering", directions.steered),
                        ("monitoring", directions.monitored),
                    )
                    if layer in layers
                ),
            )
        console.print("Share of held-out pairs whose positive text lies further along:")
        console.print(table)
        if trained.sounding is not None:
            console.print(
                "AUROC of telling confident-sounding statements from others, without "
                f"an instruction: {trained.sounding:.3f}"
            )
        console.print(f"{probe} (number {probe.pk}) is kept as {probe.state}.")
        if directory := options["output"]:
            with writing(directory):
                trained.files.write(directory)
