"""Train a boundary probe on labelled questions and print what it is worth."""

import argparse
from dataclasses import replace
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.exceptions import NescioError
from qa.evaluation.report.tables import print_tables
from qa.management.probe_arguments import (
    add_fitting,
    add_keeping,
    fitting_of,
    require_kept,
    write_kept,
)
from qa.management.progress import Bars
from qa.management.question_arguments import add_notes, add_questions, questions_of


class Command(BaseCommand):
    """`manage.py train_boundary_probe FILE ...`."""

    help = (
        "Let the language model answer labelled questions by itself and with each of "
        "their notes, fit a probe that tells beforehand whether it is right, print how "
        "well on questions that no fit saw, and keep it as a candidate. Exit code: 0, or "
        "2 if it can't be trained."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_questions(parser)
        add_notes(parser, 3)
        parser.add_argument(
            "--layer", type=int, metavar="BLOCK", help="0-based (default: the middle)."
        )
        parser.add_argument(
            "--network", choices=("mlp", "linear"), default="mlp",
            help="One hidden layer, or none (default: mlp).",
        )  # fmt: skip
        parser.add_argument("--folds", type=int, default=5, help="Default: 5.")
        parser.add_argument("--seed", type=int, default=0, help="Of folds and fits.")
        add_fitting(parser)
        add_keeping(parser)

    def handle(self, **options: Any) -> None:  # noqa: ANN401  # as declared
        # Pulls in torch, which the help does without.
        from probes.abstention import Kind  # noqa: PLC0415
        from qa.training.boundary import (  # noqa: PLC0415  # noqa: PLC0415
            SETTINGS,
            BoundaryRequest,
            BoundaryTraining,
            carry_out,
            probe_table,
        )

        console = Console(file=self.stdout, highlight=False, soft_wrap=True)  # type: ignore[arg-type]  # a text stream but by name
        errors = Console(file=self.stderr)  # type: ignore[arg-type]  # the same
        fitted = replace(
            SETTINGS,
            kind=Kind(options["network"]),
            seed=options["seed"],
            **fitting_of(options),
        )
        require_kept(options)
        try:
            request = BoundaryRequest(
                questions_of(options),
                BoundaryTraining(options["layer"], fitted, options["folds"]),
                promote=options["promote"],
                note=options["note"],
            )
            with Bars(errors) as bars:
                outcome = carry_out(request, on_progress=bars.at)
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error
        metrics, probe = outcome.trained.metrics, outcome.probe
        console.print(
            f"{outcome.prompts:,} prompts, {outcome.right:,} of them answered rightly. "
            f"Measured {metrics['measured']}; in brackets bootstrap 95 % intervals."
        )
        print_tables([probe_table(metrics)], (), console)
        console.print(f"{probe} (number {probe.pk}) is kept as {probe.state}.")
        write_kept(probe.files, metrics, options)
