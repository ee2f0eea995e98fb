"""The demonstration questions: choosing them, asking over HTTP, printing outcomes."""

import http.client
import json
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.http.request import validate_host
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from accounts.models import ApiToken
from accounts.services import create_token
from nescio.up import UpError
from nescio.up.place import Address
from nescio.up.preparation import Credentials
from qa.evaluation.cases import Case
from qa.evaluation.suites.own import ensure_demonstration_users
from qa.pipeline.gates import Reason

_ASK_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Asked:
    """A demonstration question with its answer and the time that it took."""

    expected: Case
    answer: Mapping[str, object]
    seconds: float

    @property
    def is_as_expected(self) -> bool:
        wanted, got = self.expected, self.answer
        if bool(got["answered"]) != wanted.is_answerable:
            return False
        if wanted.gate and got["gate"] != wanted.gate:
            return False
        # A policy may hide that there is knowledge which the asker may not see.
        is_hidden = wanted.reason == Reason.NOT_ENTITLED
        if wanted.reason and not is_hidden and got["reason"] != wanted.reason:
            return False
        text = str(got["text"]).lower()
        alternatives = wanted.answer_contains
        return not alternatives or any(part.lower() in text for part in alternatives)


def choose(cases: Sequence[Case], count: int) -> tuple[Case, ...]:
    """Return `count` questions with all kinds of outcomes, in their original order.

    It takes one for each gate first, then one for each other reason or asker, then
    repeats.
    """
    of_kind: Counter[tuple[object, ...]] = Counter()
    kinds_of_gate: Counter[tuple[object, ...]] = Counter()
    ranked = []
    for position, case in enumerate(cases):
        gate = (case.is_answerable, case.gate)
        kind = (*gate, case.reason, case.asker)
        of_kind[kind] += 1
        if of_kind[kind] == 1:
            kinds_of_gate[gate] += 1
        ranked.append((of_kind[kind], kinds_of_gate[gate], position))
    chosen = sorted(position for _, _, position in sorted(ranked)[:count])
    return tuple(cases[position] for position in chosen)


def ask(address: Address, token: str, case: Case) -> Asked:
    connection = http.client.HTTPConnection(
        address.reachable_host, address.port, timeout=_ASK_SECONDS
    )
    began = time.perf_counter()
    try:
        connection.request(
            "POST",
            "/api/v1/ask",
            body=json.dumps({"question": case.question}),
            headers={
                **_own_headers(address),
                "Authorization": f"Token {token}",
                "Content-Type": "application/json",
                "Accept": "application/json",
            },
        )
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise UpError(
            f"{address.url} did not answer {case.question!r}: {error}"
        ) from error
    finally:
        connection.close()
    seconds = time.perf_counter() - began
    if response.status != http.client.OK:
        shown = body.decode(errors="replace")[:500]
        raise UpError(
            f"{address.url} answered {case.question!r} with HTTP {response.status}: {shown}"
        )
    return Asked(case, json.loads(body), seconds)


def health(address: Address) -> tuple[bool, Mapping[str, object]]:
    connection = http.client.HTTPConnection(
        address.reachable_host, address.port, timeout=30
    )
    try:
        connection.request("GET", "/healthz", headers=_own_headers(address))
        response = connection.getresponse()
        return response.status == http.client.OK, json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError):
        return False, {}
    finally:
        connection.close()


def _own_headers(address: Address) -> Mapping[str, str]:
    """Return headers with which a local request is accepted like one from our proxy."""
    host = address.reachable_host
    if not validate_host(host, settings.ALLOWED_HOSTS):
        host = settings.ALLOWED_HOSTS[0].lstrip(".")
    return {"Host": host, "X-Forwarded-Proto": "https"}


# The users who ask the demonstration questions: three with different audiences.


_TOKEN_LIFE = timedelta(hours=1)


@contextmanager
def demonstration_tokens() -> Iterator[Mapping[str, str]]:
    issued = {
        name: create_token(user=user, name="demonstration", expires_in=_TOKEN_LIFE)
        for name, user in ensure_demonstration_users().items()
    }
    try:
        yield {name: token.secret for name, token in issued.items()}
    finally:
        ApiToken.objects.filter(
            pk__in=[token.row.pk for token in issued.values()]
        ).delete()


# The output of `up`: outcomes of questions, and how to continue.


_MANY_PIECES = 4


def outcome(number: int, asked: Asked) -> RenderableType:
    answer = asked.answer
    answered = bool(answer["answered"])
    head = Text.assemble((f"{number:>3}. ", "dim"), (asked.expected.question, "bold"))
    (asker,) = asked.expected.asker
    if asker != "agent":
        head.append(f"  (asked by: {asker})", "dim")
    decision = Text.assemble(
        ("answered", "bold green") if answered else ("refused", "bold yellow"),
        ("  gate ", "dim"),
        str(answer["gate"] or "none"),
        ("  reason ", "dim"),
        str(answer["reason"] or "none"),
        (f"  {asked.seconds * 1000:.0f} ms", "dim"),
    )
    if not asked.is_as_expected:
        decision.append(f"  expected: {_expectation(asked.expected)}", "red")
    lines: list[RenderableType] = [decision, Text(str(answer["text"]))]
    lines += list(_evidence(answer))
    return Group(head, Padding(Group(*lines), (0, 0, 1, 5)))


def summary(all_asked: Sequence[Asked]) -> RenderableType:
    answered = sum(bool(asked.answer["answered"]) for asked in all_asked)
    expected = sum(asked.is_as_expected for asked in all_asked)
    return Text(
        f"{len(all_asked)} questions: {answered} answered, "
        f"{len(all_asked) - answered} refused; {expected} as expected.",
        "bold",
    )


def welcome(
    console: Console,
    address: Address,
    credentials: Credentials,
    up_file: str,
    *,
    has_demonstration: bool,
) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    table.add_row("Ask page", f"{address.url}/")
    table.add_row("Admin", f"{address.url}/admin/")
    table.add_row("REST", f"{address.url}/api/v1/docs")
    table.add_row("User", credentials.username)
    table.add_row(
        "Password",
        credentials.admin_password
        or f"unchanged (set by you; .venv/bin/python manage.py changepassword {credentials.username})",
    )
    table.add_row("API token", str(credentials.token))
    table.add_row("For scripts", up_file)
    console.print(Panel(table, title="Nescio is up", title_align="left"))
    if not has_demonstration:
        console.print(f"Begin with a knowledge base: {address.url}/admin/")
        return
    console.print("Ask from a terminal:")
    # Not wrapped: a broken line does not work when pasted.
    console.print(curl_line(address, credentials), soft_wrap=True, highlight=False)


def curl_line(address: Address, credentials: Credentials) -> str:
    arguments = [
        "curl", "-sS", f"{address.url}/api/v1/ask",
        "-H", f"Authorization: Token {credentials.token}",
        "-H", "Content-Type: application/json",
        "-d", '{"question": "How do I block a lost card?"}',
    ]  # fmt: skip
    return shlex.join(arguments)


def _expectation(case: Case) -> str:
    outcome = "answered" if case.is_answerable else "refused"
    text = " / ".join(part for part in (outcome, case.gate, case.reason) if part)
    if case.answer_contains:
        text += " with " + " or ".join(map(repr, case.answer_contains))
    return text


def _evidence(answer: Mapping[str, object]) -> Iterator[RenderableType]:
    # A refusal's evidence is among its near misses, or too distant to be shown.
    title, name = "near miss", "near_misses"
    if answer["answered"]:
        title = name = "evidence"
    pieces = answer[name]
    if isinstance(pieces, list):
        for piece in pieces[:_MANY_PIECES]:
            yield _piece(title, piece)


def _piece(title: str, piece: Mapping[str, object]) -> RenderableType:
    marks = ["verified"] if piece["verified"] else ["not verified"]
    if piece.get("cited"):
        marks.append("cited")
    source = " › ".join(  # noqa: RUF001  # the separator of document and section
        str(part)
        for part in dict.fromkeys((piece["document"], piece["section"]))
        if part
    )
    return Text.assemble(
        (f"{title} [{piece['entry']}] ", "dim"),
        (
            f"distance {_number(piece['distance'])} confidence "
            f"{_number(piece['confidence'])} {', '.join(marks)}  {source}\n",
            "cyan",
        ),
        (f"    {piece.get('quote') or piece['text']}", "dim"),
    )


def _number(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, (int, float)) else str(value)
