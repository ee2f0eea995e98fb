"""Train a probe on labelled answers and print what it is worth."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.table import Table

from accounts.exceptions import NescioError
from qa.management.probe_arguments import (
    add_fitting,
    add_keeping,
    fitting_of,
    require_kept,
    write_kept,
)
from qa.management.progress import Bars


class Command(BaseCommand):
    """`manage.py train_probe --kind abstention --runs ID ...`."""

    help = (
        "Fit a probe on labelled answers, print how well it tells right answers from "
        "wrong ones on answers that no fit saw, and keep it as a candidate. What was "
        "read of the answers is kept: a run that is broken off goes on from there. Exit "
        "code: 0, or 2 if it can't be trained."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--kind",
            choices=("abstention", "early", "joint"),
            default="abstention",
            help="What it reads: the answer's own tokens, the prompt's last one, or all "
            "signals together (default: abstention).",
        )
        parser.add_argument(
            "--runs", type=int, nargs="+", default=[], metavar="ID",
            help="Finished evaluations whose answers are taken.",
        )  # fmt: skip
        parser.add_argument(
            "--data", type=Path, metavar="FILE", help="A JSON Lines file of answers."
        )
        parser.add_argument(
            "--reviews",
            action="store_true",
            help="Take what experts said of live answers, but for the golden ones.",
        )
        parser.add_argument(
            "--any-model",
            action="store_true",
            help="Take runs that another language model answered, too.",
        )
        parser.add_argument(
            "--layer",
            type=int,
            metavar="BLOCK",
            help="0-based (default: at two thirds).",
        )
        parser.add_argument(
            "--part",
            choices=("block", "ffn"),
            default="block",
            help="The block's output, or what its feed-forward part holds inside.",
        )
        parser.add_argument(
            "--network",
            choices=("lstm", "linear", "mlp"),
            help="Default: lstm for abstention, linear for early.",
        )
        parser.add_argument("--folds", type=int, default=5, help="Default: 5.")
        parser.add_argument("--seed", type=int, default=0, help="Of folds and fits.")
        add_fitting(parser)
        add_keeping(parser)

    def handle(self, **options: Any) -> None:  # noqa: ANN401  # as declared
        # Pulls in torch, which the help does without.
        from qa.training.held_out import rows_of  # noqa: PLC0415
        from qa.training.request import carry_out, request_of  # noqa: PLC0415

        console = Console(file=self.stdout, highlight=False, soft_wrap=True)  # type: ignore[arg-type]  # a text stream but by name
        errors = Console(file=self.stderr)  # type: ignore[arg-type]  # the same
        require_kept(options)
        try:
            asked = request_of({k: v for k, v in options.items() if v is not None})
            fitted = replace(asked.settings, **fitting_of(options))
            asked = replace(asked, data=options["data"], settings=fitted)
            with Bars(errors) as bars:
                outcome = carry_out(asked, on_progress=bars.at)
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error
        metrics, probe = outcome.trained.metrics, outcome.probe
        console.print(
            f"{outcome.drafts:,} answers, {outcome.right:,} of them right. Measured "
            f"{metrics['measured']}; in brackets bootstrap 95 % intervals."
        )
        for count, why in (
            (outcome.trained.too_long, "do not fit the model's context"),
            (outcome.known, "are about what the model's adapter was fitted on"),
        ):
            if count:
                console.print(f"{count:,} answers {why} and were left out.")
        table = Table("", "AUROC", "AURC", "Brier", "ECE", box=None, pad_edge=False)
        for row in rows_of(str(probe), metrics):
            table.add_row(*row)
        console.print(table)
        console.print(f"{probe} (number {probe.pk}) is kept as {probe.state}.")
        write_kept(probe.files, metrics, options)
