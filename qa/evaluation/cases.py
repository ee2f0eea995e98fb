"""Labelled questions and answers: read from JSON Lines, and sampled with a seed."""

import hashlib
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from qa.exceptions import EvaluationDataError
from qa.pipeline.gates import Gate, Reason


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """One question with its measured signals and its labels.

    A group, such as an article, is never split. `is_answerable` is None if only the
    draft is judged, `is_correct` is None if no draft was written.
    """

    id: str
    group: str
    signals: Mapping[str, float | None]
    is_answerable: bool | None
    is_correct: bool | None

    @property
    def is_wrong_if_shown(self) -> bool:
        return self.is_answerable is False or self.is_correct is not True


Row = TypeVar("Row")

MAX_NAME = 200  # characters of an id, a group or a key
GROUPS_JOIN = "+"  # joins an asker's groups in files, unless a name contains it
ANSWERED = "answered"
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Case:
    """One question and its expected outcome.

    `id` is unique in its suite; `group`, such as an article, is never split. None and
    empty values expect nothing. An answer must cite one of `evidence`, contain one of
    `answer_contains`, and match one of `references`. `asker` names the groups of the
    asker (in the demonstration, one of its users); empty for the evaluation's own user.
    """

    id: str
    question: str
    is_answerable: bool | None
    gate: Gate | None = None
    reason: Reason | None = None
    evidence: tuple[str, ...] = ()
    answer_contains: tuple[str, ...] = ()
    asker: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    group: str = ""


def read_cases(file: Path) -> tuple[Case, ...]:
    """Read all cases of a file.

    Raises:
        EvaluationDataError: A line is not a case, or an id occurs twice.
    """
    cases: dict[str, Case] = {}
    for number, case in read_lines(file, _case):
        if case.id in cases:
            raise EvaluationDataError(
                f"{file.name}, line {number}: the id {case.id!r} occurs twice."
            )
        cases[case.id] = case
    return tuple(cases.values())


def read_lines(
    file: Path, read: Callable[[Mapping[str, object]], Row]
) -> Iterator[tuple[int, Row]]:
    """Yield the line number and the value of `read` for each JSON Lines row."""
    with file.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                made = read(json.loads(line))
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise EvaluationDataError(
                    f"{file.name}, line {number}: {error!r} in {line.strip()[:120]!r}."
                ) from error
            yield number, made


def as_row(case: Case) -> dict[str, object]:
    """Return a case as a row of a file of cases, without empty expectations."""
    expected = ANSWERED if case.is_answerable else REFUSED
    row: dict[str, object] = {"id": case.id, "question": case.question, "expect": expected}  # fmt: skip
    claims = {
        "evidence": list(case.evidence),
        "answer_contains": list(case.answer_contains),
        "references": list(case.references),
        "gate": case.gate.value if case.gate else "",
        "reason": case.reason.value if case.reason else "",
        "as": _asker_as_json(case.asker),
        "group": case.group,
    }
    return row | {name: claim for name, claim in claims.items() if claim}


def _case(row: Mapping[str, object]) -> Case:
    expected = row["expect"]
    if expected not in (ANSWERED, REFUSED):
        raise ValueError(
            f'expect must be "{ANSWERED}" or "{REFUSED}", not {expected!r}'
        )
    return Case(
        id=as_text(row["id"], "id"),
        question=as_text(row["question"]),
        is_answerable=expected == ANSWERED,
        gate=Gate(as_text(row["gate"])) if row.get("gate") else None,
        reason=Reason(as_text(row["reason"])) if row.get("reason") else None,
        evidence=as_texts(row.get("evidence", [])),
        answer_contains=as_texts(row.get("answer_contains", [])),
        asker=_asker(row["as"]) if row.get("as") else (),
        references=as_texts(row.get("references", [])),
        group=as_text(row["group"], "group") if row.get("group") else "",
    )


def _asker_as_json(names: Sequence[str]) -> str | list[str]:
    if any(GROUPS_JOIN in name for name in names):
        return list(names)
    return GROUPS_JOIN.join(names)


def _asker(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return as_texts(value)
    return tuple(as_text(value).split(GROUPS_JOIN))


def as_text(value: object, name: str = "") -> str:
    """Return a non-blank text; with `name`, also check that it fits a column of names.

    Raises:
        ValueError: It is not such a text.
    """
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{value!r} is not a text")
    if name and len(value) > MAX_NAME:
        raise ValueError(
            f"{name} has {len(value):,} characters and may have {MAX_NAME}; shorten it"
        )
    if name and not value.isprintable():
        raise ValueError(
            f"{name} contains characters that can't be printed; remove them"
        )
    return value


def as_texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list of texts")
    return tuple(as_text(item) for item in value)


def question_id(text: str) -> str:
    return hashlib.sha256(plain_question(text).encode()).hexdigest()[:16]


def plain_question(text: str) -> str:
    return " ".join(text.split()).casefold()


def in_seeded_order(cases: Iterable[Case], seed: int) -> list[Case]:
    return sorted(cases, key=lambda case: _place(case.id, seed))


def sample(cases: Sequence[Case], limit: int | None, *, seed: int) -> tuple[Case, ...]:
    """Return `limit` cases in a seeded order, or all of them if it is None.

    The sample is stratified by answerability and, within that, by group; cases without
    a group form one stratum.
    """
    ordered = in_seeded_order(cases, seed)
    if limit is None or limit >= len(ordered):
        return tuple(ordered)
    chosen: set[str] = set()
    kinds = _strata(ordered, lambda case: case.is_answerable)
    for kind, places in _places(kinds, limit).items():
        groups = _strata(kinds[kind], lambda case: case.group)
        for group, count in _places(groups, places).items():
            chosen |= {case.id for case in groups[group][:count]}
    return tuple(case for case in ordered if case.id in chosen)


def _strata(
    cases: Iterable[Case], stratum: Callable[[Case], Hashable]
) -> dict[Hashable, list[Case]]:
    strata: dict[Hashable, list[Case]] = {}
    for case in cases:
        strata.setdefault(stratum(case), []).append(case)
    return strata


def _places(
    strata: Mapping[Hashable, Sequence[Case]], limit: int
) -> dict[Hashable, int]:
    """Distribute `limit` places by largest remainder; ties go to the first stratum."""
    total = sum(map(len, strata.values()))
    shares = {key: limit * len(rows) / total for key, rows in strata.items()}
    places = {key: int(share) for key, share in shares.items()}
    by_remainder = sorted(shares, key=lambda key: places[key] - shares[key])
    for key in by_remainder[: limit - sum(places.values())]:
        places[key] += 1
    return places


def _place(case_id: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}:{case_id}".encode()).digest()
