"""A desk's files and questions, as a directory holds them, and its knowledge base."""

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import transaction

from accounts.roles import Role
from kb.documents.models import KnowledgeBase
from kb.imports.running import run_import
from kb.imports.services import Upload, start_import, unfinished_import
from qa.evaluation.knowledge import PREFIX, USERNAME, ensure_agent, ensure_audience
from qa.exceptions import EvaluationDataError
from qa.training.knowledge_sets import read_json

QUESTIONS: Final = "questions.json"


class Kind(StrEnum):
    """What a desk knows of a question: its answer, something close to it, or nothing."""

    KNOWN = "known"
    NEAR = "near"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class DeskQuestion:
    """A question, and the words that a right answer shows; none if nothing answers."""

    text: str
    kind: Kind
    shows: tuple[str, ...] = ()

    def is_answered_by(self, texts: Sequence[str]) -> bool:
        """Return whether the texts shown contain all the words, whatever the spacing."""
        shown = _plain("\n".join(texts))
        return bool(self.shows) and all(_plain(words) in shown for words in self.shows)


@dataclass(frozen=True, slots=True)
class Desk:
    name: str
    files: tuple[Path, ...]
    questions: tuple[DeskQuestion, ...]


def read_desks(directory: Path) -> list[Desk]:
    """Return the desks in a directory: each a subdirectory with files and questions.

    Raises:
        EvaluationDataError: There is none, or its questions are not as expected.
    """
    found = [
        read_desk(file.parent) for file in sorted(directory.glob(f"*/{QUESTIONS}"))
    ]
    if not found:
        raise EvaluationDataError(
            f"{directory} has no subdirectory with files of knowledge and {QUESTIONS}."
        )
    return found


def read_desk(directory: Path) -> Desk:
    place = directory / QUESTIONS
    try:
        questions = tuple(_question(row) for row in read_json(place))
    except (KeyError, TypeError, ValueError) as error:
        raise EvaluationDataError(
            f"{place} must be a list of objects with `text`, `kind` "
            f"({', '.join(Kind)}) and `shows`, a list of texts: {error}."
        ) from error
    files = sorted(each for each in directory.iterdir() if each.name != QUESTIONS)
    return Desk(directory.name, tuple(files), questions)


def _question(row: dict[str, Any]) -> DeskQuestion:
    kind, shows = Kind(row["kind"]), tuple(row["shows"])
    if bool(shows) is not (kind is Kind.KNOWN):
        raise ValueError(f"{row['text']!r} is {kind} and shows {len(shows)} texts")
    return DeskQuestion(row["text"], kind, shows)


def ensure_desk(desk: Desk) -> KnowledgeBase:
    """Return the desk's knowledge base, its files imported and verified as they are.

    Only evaluations may see it. Another version of the files gets one of its own.
    """
    digest = hashlib.sha256()
    for file in desk.files:
        digest.update(file.read_bytes())
    knowledge_base, _ = KnowledgeBase.objects.get_or_create(
        slug=f"{PREFIX}desk-{desk.name}-{digest.hexdigest()[:10]}",
        defaults={"name": f"Evaluation: {desk.name}"},
    )
    curator = ensure_agent(f"{USERNAME}-curator", (USERNAME, Role.CURATOR))
    done = set(knowledge_base.documents.values_list("source", flat=True))
    for file in desk.files:
        if file.name not in done:
            _import(file, knowledge_base, curator)
    return knowledge_base


def _import(file: Path, knowledge_base: KnowledgeBase, by: User) -> None:
    with file.open("rb") as stream:
        upload = Upload(
            file=stream,
            name=file.name,
            knowledge_base=knowledge_base,
            audience=ensure_audience(),
            verify=True,
        )
        row = unfinished_import(upload, by=by) or start_import(upload, by=by)
    run_import(row.pk, apply=True, writing=_written)


def _written(_done: int, _total: int | None) -> AbstractContextManager[None]:
    return transaction.atomic()


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
