"""Labelled questions from files, and from reviews with the evidence marked there."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Prefetch

from kb.documents.models import KnowledgeBase
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.answers.past_question_models import PastQuestion
from qa.answers.questions import find_knowledge_base
from qa.answers.sources import KnowledgeRetriever, evidence_scope
from qa.evaluation.cases import as_text, as_texts, read_lines
from qa.evaluation.metrics.text import contains_gold, normalised
from qa.exceptions import EvaluationDataError, TrainingDataError
from qa.policies.services import active_policy
from qa.reviews.models import Review
from qa.training.past_questions import answers_rightly, references_of


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question with its reference answers.

    Attributes:
        marked: The notes that an expert marked as answering it.
        is_reviewed: Whether its references are what experts found right, often whole
            entries.
    """

    question: str
    references: tuple[str, ...]
    notes: tuple[str, ...] = ()
    group: str = ""
    marked: tuple[str, ...] = ()
    is_reviewed: bool = False

    @property
    def without_notes(self) -> Self:
        return replace(self, notes=(), marked=())

    def is_answered_by(self, said: str) -> bool:
        """Return whether a model's answer is right: it contains a reference.

        No short answer contains a whole entry, so a reviewed question uses the
        comparison for past questions.
        """
        if self.is_reviewed:
            return answers_rightly(said, self.references, question=self.question)
        return contains_gold(said, self.references) == 1.0


@dataclass(frozen=True, slots=True)
class Questions:
    """Labelled questions in JSON Lines `files`, with at most `notes` notes each.

    For questions without notes, `asker` searches the knowledge base with the slug
    `knowledge_base`, if given.
    """

    files: Sequence[Path]
    knowledge_base: str = ""
    asker: AbstractBaseUser | None = None
    notes: int = 3


def questions_of_file(file: Path) -> list[LabelledQuestion]:
    """Read questions, one JSON object per line.

    The fields are `question`, `answers` (or `answer`; a string is one answer, or a list
    written as JSON), and optionally `notes` and `group`; others are ignored.

    Raises:
        TrainingDataError: The file cannot be read, or a line is invalid; names the
            line.
    """
    try:
        return [row for _, row in read_lines(file, _question)]
    except EvaluationDataError as error:
        raise TrainingDataError(
            f'{error} A line is {{"question": "...", "answers": ["..."]}}, with '
            'optional "notes": ["..."].'
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise TrainingDataError(f"{file} cannot be read: {error}.") from error


def read_questions(wanted: Questions) -> list[LabelledQuestion]:
    found = [row for file in wanted.files for row in questions_of_file(file)]
    if not found:
        raise TrainingDataError("There is nothing to train on: the files are empty.")
    if not wanted.knowledge_base or wanted.asker is None:
        return found
    knowledge_base = find_knowledge_base(wanted.knowledge_base, asker=wanted.asker)
    policy = active_policy(knowledge_base).as_value()
    retriever = KnowledgeRetriever(evidence_scope(wanted.asker, knowledge_base, policy))
    return [
        row if row.notes else replace(row, notes=_found(retriever, row, wanted.notes))
        for row in found
    ]


def question_of(row: object) -> LabelledQuestion:
    """Return the question of an uploaded row.

    Raises:
        TrainingDataError: The row is not a labelled question.
    """
    try:
        return _question(row if isinstance(row, dict) else {})
    except (KeyError, TypeError, ValueError) as error:
        raise TrainingDataError(
            f"{str(row)[:100]!r} is not a labelled question: {error}. A row is "
            '{"question": "...", "answers": ["..."]}.'
        ) from error


def _found(
    retriever: KnowledgeRetriever, row: LabelledQuestion, count: int
) -> tuple[str, ...]:
    retrieval = retriever.look(row.question, top_k=count, deep=False)
    texts = (f"{piece.question} {piece.text}".strip() for piece in retrieval.evidence)
    return tuple(dict.fromkeys(texts))


def _question(row: Mapping[str, Any]) -> LabelledQuestion:
    if not isinstance(row, dict):
        raise TypeError(f"it is {type(row).__name__}, not an object")
    given = row["answers"] if "answers" in row else row["answer"]
    if isinstance(given, str):
        given = json.loads(given) if given.startswith("[") else [given]
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise TypeError(f"{given!r} is not a list of strings")
    # Without letters or digits, a reference would be contained in every answer or in
    # none.
    references = tuple(one for one in given if normalised(one))
    if not references:
        raise ValueError(f"no answer among {given!r}")
    return LabelledQuestion(
        question=as_text(row["question"]),
        references=references,
        notes=as_texts(row.get("notes", [])),
        group=as_text(row["group"]) if row.get("group") else "",
    )


# Only the newest: older reviews may be about knowledge that no longer exists.
_MAX: Final = 5_000


def reviewed_questions(knowledge_base: KnowledgeBase) -> list[LabelledQuestion]:
    """Return the reviewed questions for which a right answer is known.

    Notes are the pieces of evidence as they were retrieved, best first; marked are
    those that a reviewer named as supporting the right answer. Questions with the same
    words form one group.
    """
    pieces = AnswerEvidence.objects.select_related("revision").order_by("rank")
    rows = (
        PastQuestion.objects.filter(knowledge_base=knowledge_base)
        .exclude(answer__channel=Answer.Channel.EVALUATION)
        .select_related("answer")
        .prefetch_related(
            Prefetch("answer__evidence", pieces),
            Prefetch("answer__reviews", Review.objects.done().select_related("entry")),
        )
        .order_by("-labelled_at", "-pk")[:_MAX]
    )
    return [one for row in rows if (one := _labelled(row))]


def _labelled(row: PastQuestion) -> LabelledQuestion | None:
    references = references_of(row)
    if not references:
        return None
    used = {key for review in row.answer.reviews.all() for key in review.evidence_used}
    notes: dict[str, bool] = {}
    for piece in row.answer.evidence.all():
        if piece.revision is not None:
            text = f"{piece.revision.question} {piece.revision.text}".strip()
            notes[text] = notes.get(text, False) or piece.pk in used
    return LabelledQuestion(
        row.answer.question,
        tuple(references),
        tuple(notes),
        normalised(row.answer.question),
        tuple(text for text, is_marked in notes.items() if is_marked),
        is_reviewed=True,
    )
