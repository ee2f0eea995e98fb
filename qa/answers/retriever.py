"""Search on behalf of one asker, in the pipeline's terms."""

from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils import timezone

from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.embedding.services import embed_question
from kb.search import METHOD, contradictions_between, nearest_excluded, search
from kb.types import Contradiction, Excluded, QuestionVector, Scope
from qa.answers.models import AnswerEvidence
from qa.answers.past_question_models import PastQuestion
from qa.pipeline.history import JudgedQuestion, KnownQuestion
from qa.pipeline.policy import Policy
from qa.pipeline.values import Question, Retrieval
from qa.policies.ask_prefetch import prefetched


def scope_of(
    asker: AbstractBaseUser | AnonymousUser,
    knowledge_base: KnowledgeBase,
    policy: Policy,
) -> Scope:
    """Return what may be evidence for `asker` now.

    One query, or none where the asker's audiences were read with the knowledge base.
    """
    found = prefetched(knowledge_base)
    if found and found.asker == asker:
        audience_ids = found.audience_ids
    else:
        visible = Audience.objects.visible_to(asker).order_by()
        audience_ids = tuple(visible.values_list("pk", flat=True))
    return Scope(
        knowledge_base_id=knowledge_base.pk,
        audience_ids=audience_ids,
        unverified_floor=policy.unverified_floor,
        enriched_floor=policy.least_enriched,
        at=timezone.now(),
    )


class KnowledgeRetriever:
    """The knowledge base as one asker may see it; one for each question.

    The question is embedded once however often it is looked for.
    """

    def __init__(
        self, scope: Scope, *, release: Callable[[], None] | None = None
    ) -> None:
        """Take over whom it looks for.

        Args:
            release: Called after each look, for who is busy long before the next one.
        """
        self._scope = scope
        self._release = release
        self._vectors: dict[str, QuestionVector] = {}

    def look(self, question: str, *, top_k: int, deep: bool) -> Retrieval:
        """Return evidence best first; `deep` spends more for certainty of recall."""
        is_known = question in self._vectors
        vector = self._vector(question)
        found = search(vector, question, scope=self._scope, top_k=top_k, deep=deep)
        self._vectors[question] = found.vector
        if self._release:
            self._release()
        return Retrieval(
            evidence=found.hits,
            visible=found.visible,
            route=found.route.value,
            method=METHOD,
            embedder=found.embedder,
            deep=found.deep,
            embed_milliseconds=0.0 if is_known else vector.milliseconds,
            sql_milliseconds=found.sql_milliseconds,
        )

    def withheld(self, question: str) -> Sequence[Excluded]:
        """Return the nearest entry outside the scope for each cause, if any."""
        return nearest_excluded(self._vector(question), scope=self._scope)

    def contradictions(self, entry_ids: Sequence[int]) -> Sequence[Contradiction]:
        """Return the unsettled contradictions between any two of these entries."""
        return contradictions_between(entry_ids)

    def _vector(self, question: str) -> QuestionVector:
        if question not in self._vectors:
            self._vectors[question] = embed_question(question)
        return self._vectors[question]


# Past questions as examples for the one that is asked now.


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
