"""Labelled questions: what should become of them, read from JSON Lines."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from qa.exceptions import EvaluationDataError
from qa.pipeline.types import Gate, Reason

ANSWERED = "answered"
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Case:
    """One question and what should become of it.

    Attributes:
        id: Unique in its suite; results are joined by it, never by position.
        is_answerable: Whether it should be answered.
        gate: Where it should be decided; None says nothing about that, but that an
            answer should come from the language model.
        reason: Why it should be refused; None says nothing about that.
        evidence: Keys of the entries of which one must be cited; empty for no claim.
        answer_contains: The answer must hold one of these; empty for no claim.
        asker: Who asks, by the suite's own names.
    """

    id: str
    question: str
    is_answerable: bool
    gate: Gate | None
    reason: Reason | None
    evidence: tuple[str, ...]
    answer_contains: tuple[str, ...]
    asker: str


def read_cases(file: Path) -> tuple[Case, ...]:
    """Read every line of `file`.

    Raises:
        EvaluationDataError: A line is no case, or an id stands twice; names the line.
    """
    cases: dict[str, Case] = {}
    for number, line in _lines(file):
        try:
            case = _case(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{file.name}, line {number}: {error!r} in {line[:120]!r}."
            raise EvaluationDataError(msg) from error
        if case.id in cases:
            msg = f"{file.name}, line {number}: the id {case.id!r} stands twice."
            raise EvaluationDataError(msg)
        cases[case.id] = case
    return tuple(cases.values())


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    with file.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield number, line.strip()


def _case(row: Mapping[str, object]) -> Case:
    expected = row["expect"]
    if expected not in (ANSWERED, REFUSED):
        msg = f'expect must be "{ANSWERED}" or "{REFUSED}", not {expected!r}'
        raise ValueError(msg)
    return Case(
        id=_text(row["id"]),
        question=_text(row["question"]),
        is_answerable=expected == ANSWERED,
        gate=Gate(_text(row["gate"])) if row.get("gate") else None,
        reason=Reason(_text(row["reason"])) if row.get("reason") else None,
        evidence=_texts(row.get("evidence", [])),
        answer_contains=_texts(row.get("answer_contains", [])),
        asker=_text(row["as"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        msg = f"{value!r} is no text"
        raise ValueError(msg)
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        msg = f"{value!r} is no list of texts"
        raise TypeError(msg)
    return tuple(_text(item) for item in value)
