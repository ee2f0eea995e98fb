"""Ask a question from the command line and show how it was decided."""

import argparse
import logging
import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from rest_framework.renderers import JSONRenderer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from accounts.acting import acting_for
from accounts.exceptions import NescioError, UnavailableError
from kb.documents.models import KnowledgeBase
from kb.embedding.embedder import get_embedder
from kb.embedding.services import active_model
from qa.answers.asking import ask
from qa.answers.conversations import check_knowledge_base, conversation_before
from qa.answers.models import Answer, fetch_evidence
from qa.answers.past import ask_as_of
from qa.answers.questions import find_knowledge_base
from qa.answers.serializers import as_json
from qa.answers.sources import configured_verifier
from qa.answers.view import ShownPiece, shown_pieces
from qa.answers.waterfall import in_shadow
from qa.answers.wording import GATES
from qa.management.base import find_asker
from qa.pipeline.gates import Gate, find_row
from qa.policies.services import has_verifier

ANSWERED, REFUSED, BAD_INPUT, UNAVAILABLE = range(4)
_VERDICTS = {True: "pass", False: "stop", None: "recorded"}
_STYLES = {True: "green", False: "red", None: "dim"}
# For a gate that answers, a fail only means that it found no match.
_MATCHES = {True: "yes", False: "no", None: "recorded"}


class Command(BaseCommand):
    help = (
        "Ask a question and print the answer or the refusal, the evidence, and every "
        "gate with its value and threshold. Exit code: 0 answered, 1 refused, 2 the "
        "question, user or knowledge base is not valid, 3 a model or server is down "
        "(the question is saved). With -v 2, log messages are printed too."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("question")
        add(
            "--as", dest="username", default="", metavar="USER",
            help="The user who asks, which decides what is visible (default: the first "
            "superuser).",
        )  # fmt: skip
        add(
            "--knowledge-base", default="", metavar="SLUG",
            help="The knowledge base to ask (default: the oldest).",
        )  # fmt: skip
        add(
            "--follows", type=UUID, default=None, metavar="ANSWER",
            help="The id of an earlier answer to the same user: the question is a "
            "follow-up and is rewritten to stand alone.",
        )  # fmt: skip
        add(
            "--as-of", type=_moment, default=None, metavar="MOMENT",
            help="Decide with the knowledge and policy of this moment, such as "
            "2026-06-01T09:00+02:00; nothing is stored. Texts of that time are "
            "embedded again where their vectors are gone.",
        )  # fmt: skip
        add("--language", default=None, help="Language of the answer: en, de or xx.")
        add("--json", action="store_true", help="Print the answer as REST returns it.")

    def handle(
        self,
        *,
        question: str,
        username: str,
        knowledge_base: str,
        follows: UUID | None,
        language: str | None,
        as_of: datetime | None,
        json: bool,
        verbosity: int,
        **_options: object,
    ) -> None:
        if as_of and follows:
            raise CommandError(
                "A question as of a moment is not stored and can't be a follow-up: "
                "give --as-of or --follows, not both.",
                returncode=BAD_INPUT,
            )
        try:
            asker = find_asker(username)
            with acting_for(asker), _quiet(unless=verbosity > 1):
                before = conversation_before(follows, asker=asker) if follows else None
                if before:
                    check_knowledge_base(before, knowledge_base)
                base = find_knowledge_base(
                    before.knowledge_base if before else knowledge_base
                )
                _load(base)
                answer = (
                    ask_as_of(
                        question,
                        asker=asker,
                        knowledge_base=base,
                        language=language,
                        channel=Answer.Channel.COMMAND,
                        at=as_of,
                        max_embedded=None,
                    )
                    if as_of
                    else ask(
                        question,
                        asker=asker,
                        knowledge_base=base,
                        language=language,
                        channel=Answer.Channel.COMMAND,
                        conversation=before.id if before else None,
                        earlier=before.questions if before else (),
                        asked_back=before.asked_back if before else False,
                    )
                )
        except UnavailableError as error:
            raise CommandError(str(error), returncode=UNAVAILABLE) from error
        except NescioError as error:
            raise CommandError(str(error), returncode=BAD_INPUT) from error
        with acting_for(asker):
            if not as_of:
                fetch_evidence(answer, asker)
            if json:
                shown = JSONRenderer().render(
                    as_json(answer), "application/json; indent=2"
                )
                self.stdout.write(shown.decode())
            else:
                print_answer(answer, asker, Console(file=self.stdout))  # type: ignore[arg-type]  # a text stream in all but name
        if answer.outcome != Answer.Outcome.ANSWERED:
            sys.exit(REFUSED)


def _moment(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        msg = f"{text!r} is not a moment; write one like 2026-06-01T09:00+02:00"
        raise argparse.ArgumentTypeError(msg) from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


@contextmanager
def _quiet(*, unless: bool) -> Iterator[None]:
    """Suppress log messages up to INFO, such as those of models being loaded."""
    before = logging.root.manager.disable
    logging.disable(before if unless else max(before, logging.INFO))
    try:
        yield
    finally:
        logging.disable(before)


def _load(base: KnowledgeBase) -> None:
    """Load the models first, so that no stage's time includes loading them."""
    get_embedder(active_model())
    if has_verifier(base):
        configured_verifier()


def print_answer(answer: Answer, asker: User, console: Console) -> None:
    if answer.typed:
        console.print(Text(f"Asked as: {answer.question}", style="dim"))
    if answer.as_of:
        said = f"As of {answer.as_of.isoformat()}, with today's models; not kept."
        console.print(Text(said, style="yellow"))
    console.print(_headline(answer, asker))
    if answer.pieces:
        console.print(_evidence(shown_pieces(answer)))
    console.print(_gates(answer))
    console.print(Text(_stages(answer.milliseconds), style="dim"))


def _headline(answer: Answer, asker: User) -> Panel:
    is_answered = answer.outcome == Answer.Outcome.ANSWERED
    how = f"answered ({answer.gate or 'from the evidence'})"
    if answer.is_unsourced:
        how = "answered from the model's own knowledge, without a source"
    if not is_answered:
        how = f"refused ({answer.gate}: {answer.shown_reason})"
    return Panel(
        Text(answer.text),
        title=Text(how, style="green" if is_answered else "yellow"),
        subtitle=Text(
            f"asked as {asker.get_username()} · policy {answer.policy} · {answer.pk}",
            style="dim",
        ),
        title_align="left",
        subtitle_align="left",
    )


def _table(title: str, heads: Iterable[str], *, numbers: Container[str]) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    for name in heads:
        table.add_column(name, justify="right" if name in numbers else "left")
    return table


def _evidence(pieces: Iterable[ShownPiece]) -> Table:
    heads = ("#", "entry", "used", "distance", "conf.", "ratio", "text")
    table = _table("Evidence", heads, numbers={"#", "distance", "conf.", "ratio"})
    for piece in pieces:
        row = piece.row
        source = f"  ({piece.document.title})" if piece.document else ""
        table.add_row(
            str(row.rank),
            str(row.entry_id),
            row.get_role_display(),
            f"{row.distance:.3f}",
            f"{row.confidence:.2f}",
            f"{row.ratio:.3f}",
            Text(piece.text).append(source, style="dim"),
        )
    return table


def _gates(answer: Answer) -> Table:
    heads = ("gate", "signal", "value", "threshold", "verdict", "ms")
    table = _table("Gates", heads, numbers={"value", "threshold", "ms"})
    before = ""
    shadow = in_shadow(answer)
    for signal in answer.signals:
        gate, passed = signal["gate"], signal["passed"]
        is_first = gate != before
        before = gate
        spent = answer.milliseconds.get(gate)
        table.add_row(
            gate if is_first else "",
            signal["name"],
            _number(signal["value"]),
            _number(signal["threshold"]),
            _shadowed(signal) if signal["name"] in shadow else _verdict(gate, passed),
            f"{spent:.1f}" if is_first and spent is not None else "",
        )
    return table


def _verdict(gate: str, passed: bool | None) -> Text:
    if GATES[Gate(gate)].answers:
        return Text(_MATCHES[passed], style="green" if passed else "dim")
    return Text(_VERDICTS[passed], style=_STYLES[passed])


def _shadowed(signal: Mapping[str, Any]) -> Text:
    row = find_row(signal["name"])
    would = _VERDICTS[row.meets(signal["value"], signal["threshold"])]
    return Text(f"would {would} (shadow)", style="yellow")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def _stages(milliseconds: Mapping[str, float]) -> str:
    whole = sum(ms for stage, ms in milliseconds.items() if "." not in stage)
    parts = ", ".join(f"{stage} {ms:.1f}" for stage, ms in milliseconds.items())
    return f"{whole:.1f} ms: {parts}"
