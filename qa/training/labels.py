"""Labelled drafts: what probes are fitted on, whatever they were gathered from.

A source is a function that returns drafts; finished evaluation runs and files are two,
and what reviewers say of live answers can be one more.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kb.types import Evidence
from qa.evaluation.cases import LabelledAnswer
from qa.exceptions import TrainingDataError
from qa.pipeline.language_model import Prompt


@dataclass(frozen=True, slots=True)
class LabelledDraft(LabelledAnswer):
    """What a language model read and wrote, and whether that is right.

    Attributes:
        prompt: The question and its evidence, as they were read.
        answer: The words that answer: the short answer, or else the whole one.
    """

    prompt: Prompt
    answer: str

    @property
    def is_right(self) -> bool:
        """Whether showing it shows something right."""
        return not self.is_wrong_if_shown

    @property
    def content(self) -> str:
        """64 hex digits: what was read, what was written."""
        pieces = [(piece.question, piece.text) for piece in self.prompt.evidence]
        said = [self.prompt.question, pieces, self.answer]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def drawn_together(sources: Iterable[Iterable[LabelledDraft]]) -> list[LabelledDraft]:
    """Return the drafts of several sources, each content once: the first one stands."""
    found: dict[str, LabelledDraft] = {}
    for drafts in sources:
        for draft in drafts:
            found.setdefault(draft.content, draft)
    return list(found.values())


def digest_of(drafts: Iterable[LabelledDraft]) -> str:
    """Return 64 hex digits over contents, labels and groups, in any order."""
    rows = sorted(f"{d.content} {d.is_right:d} {d.group}" for d in drafts)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def piece_of(
    question: str, text: str, *, entry: int = 0, revision: int = 0
) -> Evidence:
    """Return a piece of evidence of which only its words matter."""
    return Evidence(
        entry_id=entry,
        revision_id=revision,
        text=text,
        question=question,
        confidence=1.0,
        is_verified=True,
        distance=0.0,
        vector_rank=None,
        text_rank=None,
        score=0.0,
        document_title="",
        section="",
        verified_at=None,
        valid_until=None,
    )


def finite(signals: Mapping[str, object]) -> dict[str, float | None]:
    """Return signals as numbers, of which JSON may hold others."""
    return {
        name: float(value) if isinstance(value, int | float) else None
        for name, value in signals.items()
    }


# Labelled drafts of a JSON Lines file; its fields: docs/reference/labelled-
# answers.md.


_REQUIRED: Final = frozenset({"question", "evidence", "answer", "is_right", "group"})
_OPTIONAL: Final = frozenset({"id", "signals", "language"})
_MOST_SHOWN: Final = 10
_LONGEST_LINE: Final = 1_000_000


def drafts_of_file(file: Path) -> list[LabelledDraft]:
    """Read every line of `file`; a line that can't be read makes all unreadable.

    Raises:
        TrainingDataError: The file can't be opened, or lines are none; names each.
    """
    found: dict[str, LabelledDraft] = {}
    faults: list[str] = []
    try:
        with file.open(encoding="utf-8") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.strip():
                    continue
                try:
                    draft = _draft(line, number)
                    if draft.id in found:
                        raise ValueError(f"the id {draft.id!r} stands twice")  # noqa: TRY301  # one place keeps the faults
                except (RecursionError, TypeError, ValueError) as error:
                    faults.append(f"line {number}: {error}")
                else:
                    found[draft.id] = draft
    except (OSError, UnicodeDecodeError) as error:
        raise TrainingDataError(f"{file} can not be read: {error}.") from error
    if faults:
        more = len(faults) - _MOST_SHOWN
        rest = f"; and {more:,} more" if more > 0 else ""
        raise TrainingDataError(
            f"{file.name} holds {len(faults):,} lines that are no labelled answers: "
            f"{'; '.join(faults[:_MOST_SHOWN])}{rest}."
        )
    return list(found.values())


def _draft(line: str, number: int) -> LabelledDraft:
    if len(line) > _LONGEST_LINE:
        msg = f"it has {len(line):,} characters"
        raise ValueError(msg)
    row = json.loads(line)
    if not isinstance(row, dict):
        msg = f"it is {type(row).__name__}, not an object"
        raise TypeError(msg)
    if missing := _REQUIRED - row.keys():
        msg = f"{', '.join(sorted(missing))} missing"
        raise ValueError(msg)
    if unknown := row.keys() - _REQUIRED - _OPTIONAL:
        msg = f"{', '.join(sorted(unknown))} not known"
        raise ValueError(msg)
    if not isinstance(row["is_right"], bool):
        msg = f"is_right is {row['is_right']!r}, not true or false"
        raise TypeError(msg)
    return LabelledDraft(
        id=_text(row.get("id", str(number)), "id"),
        group=_text(row["group"], "group"),
        signals=_signals(row.get("signals", {})),
        is_answerable=None,
        is_correct=row["is_right"],
        prompt=Prompt(
            _text(row["question"], "question"),
            _pieces(row["evidence"]),
            _text(row.get("language", "en"), "language"),
        ),
        answer=_text(row["answer"], "answer"),
    )


def _pieces(value: object) -> tuple[Evidence, ...]:
    if not isinstance(value, list) or not value:
        msg = "evidence is no list of pieces, or an empty one"
        raise ValueError(msg)
    pieces = []
    for piece in value:
        if not isinstance(piece, dict) or not piece.keys() <= {"question", "text"}:
            msg = 'a piece of evidence is no {"question", "text"}'
            raise TypeError(msg)
        question = piece.get("question", "")
        if not isinstance(question, str):
            msg = f"a piece's question is {question!r}, not a text"
            raise TypeError(msg)
        pieces.append(piece_of(question, _text(piece.get("text"), "a piece's text")))
    return tuple(pieces)


def _signals(value: object) -> Mapping[str, float | None]:
    if not isinstance(value, dict):
        msg = "signals is no object"
        raise TypeError(msg)
    for name, number in value.items():
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if number is not None and not (is_number and math.isfinite(number)):
            msg = f"the signal {name} is {number!r}, not a finite number or null"
            raise ValueError(msg)
    return {
        name: None if number is None else float(number)
        for name, number in value.items()
    }


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        msg = f"{name} is {value!r}, not a text that says something"
        raise ValueError(msg)
    return value
