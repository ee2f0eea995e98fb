"""The outcome of each question under one decider, at any of its thresholds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .asking import NOTHING, Cost, Row
from .curve import retrieves
from .questions import Part, TimedQuestion


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question under one decider.

    Attributes:
        known_probability: In [0, 1]; None where it is unknown.
        alone: Whether the model's own answer is right.
        with_notes: Whether the answer with notes is.
        passes: Whether the hard gate lets the notes pass.
        verbatim: Whether the entry that is answered word for word is right; None where
            none is.
        decided: What deciding took.
        drafted: What going on to the own answer took after that; None where that was not
            measured.
    """

    asked: TimedQuestion
    known_probability: float | None
    alone: bool
    with_notes: bool
    passes: bool
    verbatim: bool | None
    decided: Cost
    drafted: Cost | None


def outcomes_of(
    questions: Sequence[TimedQuestion],
    with_notes: Mapping[str, Row],
    alone: Mapping[str, Row],
    considered: Mapping[str, Row],
) -> list[Outcome]:
    """Join a record's rows by the questions' ids.

    All deciders share one closed-book answer: two drafts of it differ by the rounding of a
    batch, which is no decider's merit.

    Args:
        considered: A decider's; what it has no row for was not tried, and costs nothing.
    """
    found = []
    for one in questions:
        name = one.case.id
        row, helped = considered.get(name, {}), with_notes[name]
        verbatim = helped["verbatim"]
        found.append(
            Outcome(
                asked=one,
                known_probability=row.get("sureness"),
                alone=one.is_right(alone[name]["answer"]),
                with_notes=one.is_right(helped["answer"]),
                passes=bool(helped["passes"]),
                verbatim=None if verbatim is None else one.is_right(verbatim),
                decided=Cost(**row["decided"]) if row else NOTHING,
                drafted=Cost(**row["answered"]) if "answered" in row else None,
            )
        )
    return found


Account = Callable[[Outcome], bool]
"""Whether retrieving comes out right."""


def as_published(row: Outcome) -> bool:
    """Answer with whatever was found, as the papers have it."""
    return row.with_notes


def behind_the_gates(row: Outcome) -> bool:
    """Answer word for word if an entry matches, and refuse if the hard gate does.

    A refusal is right where nobody can answer.
    """
    if row.verbatim is not None:
        return row.verbatim
    if row.passes:
        return row.with_notes
    return row.asked.case.is_answerable is False


def columns(
    rows: Sequence[Outcome], account: Account
) -> tuple[list[float | None], list[bool], list[bool]]:
    """Return the known probability, and what is right alone and by retrieving, as curves take it."""
    return (
        [row.known_probability for row in rows],
        [row.alone for row in rows],
        [account(row) for row in rows],
    )


def rights(
    rows: Sequence[Outcome], sent: Sequence[bool], account: Account
) -> list[bool]:
    """Return which questions come out right where these are sent."""
    return [
        account(row) if is_sent else row.alone
        for row, is_sent in zip(rows, sent, strict=True)
    ]


def of_part(rows: Sequence[Outcome], part: Part) -> list[Outcome]:
    return [row for row in rows if row.asked.part is part]


def sent_by(rows: Sequence[Outcome], threshold: float | None) -> list[bool]:
    """Return which questions a threshold sends."""
    return [retrieves(row.known_probability, threshold) for row in rows]
