"""Decide a stored answer again, with the knowledge of its time and of today."""

import argparse
from json import dumps
from uuid import UUID

from django.core.management.base import CommandError
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from accounts.exceptions import UnavailableError
from qa.answers.replaying import Decided, Replay, as_dict, find_answer, replay
from qa.management import base

_FIELDS = ("outcome", "gate", "reason", "shown_reason", "text")


class Command(base.Command):
    help = (
        "Decide a stored answer again, with the knowledge and policy of its time and "
        "of today, and print the differences and what was changed in between. Nothing "
        "is stored. It reads all the evidence of the answer, whatever its audience. "
        "Exit code: 0 the decision as of then equals the stored one, 1 it does not, 2 "
        "there is no such answer or its words were erased, 3 a model is down."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("answer", type=UUID, metavar="ANSWER", help="Its id.")
        parser.add_argument("--json", action="store_true", help="Print it as JSON.")

    def handle(self, *, answer: UUID, json: bool, **_options: object) -> None:
        try:
            found = replay(find_answer(answer))
        except UnavailableError as error:
            raise CommandError(str(error), returncode=3) from error
        if json:
            self.stdout.write(dumps(as_dict(found), indent=2, ensure_ascii=False))
        else:
            _show(found, self.console())
        if not found.is_equal:
            raise CommandError(
                f"The decision as of then differs from the stored one in: "
                f"{', '.join(found.stored.differing(found.then))}.",
                returncode=1,
            )


def _show(found: Replay, console: Console) -> None:
    answer = found.answer
    console.print(Text(answer.question, style="bold"))
    console.print(Text(f"as of {found.at.isoformat()} · policy {answer.policy}"))
    table = Table(box=SIMPLE_HEAD)
    for head in ("", "stored", "decided again as of then", "decided today"):
        table.add_column(head)
    for name in _FIELDS:
        values = (getattr(each, name) for each in (found.stored, found.then, found.now))
        table.add_row(name.replace("_", " "), *map(Text, values))
    table.add_row("evidence", *map(_evidence, (found.stored, found.then, found.now)))
    console.print(table)
    for key, said in found.entries.items():
        console.print(Text(f"entry {key}: {said}"))
    same = "the same" if found.is_equal else "NOT the same"
    console.print(f"The decision as of then is {same} as the stored one.")
    for limit in found.limits:
        console.print(Text(f"Not as it was: {limit}", style="yellow"))
    differing = ", ".join(found.stored.differing(found.now)).replace("_", " ")
    console.print(f"Today differs: {differing or 'nothing'}.")
    for each in found.changed:
        change = f"{each.what} {each.name}: {each.then} -> {each.now}"
        console.print(Text(f"  {change}"))


def _evidence(decided: Decided) -> Text:
    pieces = (
        f"entry {p.entry} (revision id {p.revision}, {p.role})"
        for p in decided.evidence
    )
    return Text("\n".join(pieces))
