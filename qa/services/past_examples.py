"""Past questions as examples for the one that is asked now."""

from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from kb.embedding import embed_question
from kb.types import Scope
from qa.models import AnswerEvidence, PastQuestion
from qa.pipeline.history import JudgedQuestion, KnownQuestion
from qa.pipeline.outcome import Question

# Some have no evidence that this asker may see.
_LOOKED_AT_FOR_ONE: Final = 3


class PastExamples:
    """`qa.pipeline.history.History` on behalf of one asker."""

    def __init__(
        self, scope: Scope, *, release: Callable[[], None] = lambda: None
    ) -> None:
        """Take what the asker may see.

        Args:
            scope: The knowledge base and the asker's audiences. A past question without
                evidence in it is no example of a verdict.
            release: Called when the database has been read: a model reads next.
        """
        self._scope = scope
        self._release = release

    def known(
        self, question: Question, *, own_model: str, limit: int
    ) -> Sequence[KnownQuestion]:
        """Return the nearest that this form of a model was asked, the nearest first."""
        vector = embed_question(question.text)
        rows = PastQuestion.objects.nearest_known(
            vector.values.tolist(),
            knowledge_base_id=self._scope.knowledge_base_id,
            model_id=vector.model_id,
            own_model=own_model,
        ).values_list("answer_id", "answer__question", "is_known")
        found = [
            KnownQuestion(text, bool(is_known), str(answer))
            for answer, text, is_known in rows[:limit]
        ]
        self._release()
        return found

    def judged(
        self, question: Question, *, language_model: str, limit: int
    ) -> Sequence[JudgedQuestion]:
        """Return the nearest that this language model answered, the nearest first."""
        vector = embed_question(question.text)
        rows = PastQuestion.objects.nearest_to(
            vector.values.tolist(),
            knowledge_base_id=self._scope.knowledge_base_id,
            model_id=vector.model_id,
            language_model=language_model,
        ).values_list("answer_id", "answer__question", "can_be_answered")
        found = [*rows[: limit * _LOOKED_AT_FOR_ONE]]
        notes = self._notes_of([answer for answer, _, _ in found])
        self._release()
        return [
            JudgedQuestion(text, notes[answer], can_be_answered, str(answer))
            for answer, text, can_be_answered in found
            if answer in notes
        ][:limit]

    def _notes_of(self, answers: Sequence[UUID]) -> dict[UUID, str]:
        """Return for each answer what stood first in its evidence, as it stood then."""
        pieces = AnswerEvidence.objects.filter(
            answer__in=answers,
            entry__audience__in=self._scope.audience_ids,
            revision__isnull=False,
        ).order_by("answer", "rank")
        rows = pieces.values_list("answer_id", "revision__question", "revision__text")
        notes: dict[UUID, str] = {}
        for answer, question, text in rows:
            notes.setdefault(answer, f"{question} {text}".strip())
        return notes
