"""What `up` prints: outcomes of questions, and how to go on."""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from nescio.up.address import Address
from nescio.up.credentials import Credentials
from nescio.up.questions import Asked
from qa.evaluation.cases import Case

_MANY_PIECES = 4


def outcome(number: int, asked: Asked) -> RenderableType:
    """Return one question with its outcome, gate, reason, text and evidence."""
    answer = asked.answer
    answered = bool(answer["answered"])
    head = Text.assemble((f"{number:>3}. ", "dim"), (asked.expected.question, "bold"))
    if asked.expected.asker != "agent":
        head.append(f"  (asked by: {asked.expected.asker})", "dim")
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
    """Return one line over all questions."""
    answered = sum(bool(asked.answer["answered"]) for asked in all_asked)
    expected = sum(asked.is_as_expected for asked in all_asked)
    return Text(
        f"{len(all_asked)} questions: {answered} answered, "
        f"{len(all_asked) - answered} refused; {expected} as expected.",
        "bold",
    )


def welcome(
    console: Console, address: Address, credentials: Credentials, up_file: str
) -> None:
    """Print where the system is, how to sign in, and a line that works when pasted."""
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
    console.print("Ask from a terminal:")
    # Not wrapped: a line that is broken in two does not work when pasted.
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
    # A refusal's evidence is among its near misses, or too far to be worth a line.
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
    source = " › ".join(  # noqa: RUF001  # the sign that leads from document to section
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
