"""Propose the known probability from which on a model may answer by itself."""

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.exceptions import NescioError
from qa.calibration.min_known import Proposal, Threshold, propose_min_known
from qa.evaluation.report.tables import TextTable, percent, print_tables
from qa.exceptions import TrainingDataError
from qa.management.arguments import share
from qa.management.progress import Bars

_ROWS = 12


class Command(BaseCommand):
    """`manage.py propose_min_known FILE ... --risk 0.2`."""

    help = (
        "Let the language model answer labelled questions by itself, ask the boundary "
        "probe in force of each, and print which min_known keeps the share of wrong "
        "answers below the risk. Take questions that the probe was not trained on. Exit "
        "code: 0, 1 if no threshold does, 2 if it can't be told."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "files", type=Path, nargs="+", metavar="FILE",
            help='JSON Lines: {"question": "...", "answers": ["..."]}.',
        )  # fmt: skip
        parser.add_argument(
            "--risk", type=share, required=True, metavar="SHARE",
            help="Largest share of the model's own answers that may be wrong.",
        )  # fmt: skip
        parser.add_argument(
            "--delta", type=share, default=0.1, metavar="SHARE",
            help="Probability that the guaranteed one breaks that (default 0.1).",
        )  # fmt: skip

    def handle(self, **options: Any) -> None:  # noqa: ANN401  # as declared
        # Pulls in torch, which the help does without.
        from qa.training.boundary import judged_questions  # noqa: PLC0415

        errors = Console(file=self.stderr)  # type: ignore[arg-type]  # a text stream but by name
        console = Console(file=self.stdout, highlight=False, soft_wrap=True)  # type: ignore[arg-type]  # the same
        try:
            with Bars(errors) as bars:
                judged = judged_questions(options["files"], on_progress=bars.at)
            try:
                proposal = propose_min_known(
                    judged.known_probability,
                    judged.right,
                    risk=options["risk"],
                    delta=options["delta"],
                )
            except ValueError as error:
                raise TrainingDataError(f"{error}.") from error
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error
        console.print(
            f"{len(judged.right):,} questions, {sum(judged.right):,} of them answered "
            "rightly without looking."
        )
        print_tables([_table(proposal)], _notes(proposal, options["risk"]), console)
        console.print(f"calibrated_own_knowledge: {judged.fingerprint}")
        if proposal.guaranteed is None:
            raise SystemExit(1)


def _table(proposal: Proposal) -> TextTable:
    step = max(1, len(proposal.curve) // _ROWS)
    rows = [("", one) for one in proposal.curve[step - 1 :: step]]
    rows += [
        (name, one)
        for name, one in (("seen", proposal.seen), ("guaranteed", proposal.guaranteed))
        if one
    ]
    return TextTable(
        "Answering alone",
        ("", "min_known", "answers alone", "of these wrong", "at most"),
        tuple(_row(name, one) for name, one in rows),
    )


def _row(name: str, one: Threshold) -> tuple[str, ...]:
    # In full: rounded down it would let pass what the bound did not count, and rounded
    # up not the question that it was seen at.
    return (
        name,
        repr(one.min_known),
        percent(one.coverage),
        percent(one.risk),
        percent(one.bound),
    )


def _notes(proposal: Proposal, risk: float) -> list[str]:
    if proposal.guaranteed is None:
        return [
            f"No threshold is sure to keep the risk at {percent(risk)}: let the policy "
            "always retrieve, or bring more questions."
        ]
    return [
        "guaranteed is what to set min_known to; seen holds on these questions alone."
    ]
