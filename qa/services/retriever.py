"""Search on behalf of one asker, in the pipeline's terms."""

from collections.abc import Callable, Sequence

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils import timezone

from kb.embedding import embed_question
from kb.models import Audience, KnowledgeBase
from kb.search import METHOD, contradictions_between, nearest_excluded, search
from kb.types import Exclusion, Hit, QuestionVector, Scope
from qa.pipeline.evidence import Contradiction, Evidence, Retrieval, Withheld
from qa.pipeline.gates import Reason
from qa.pipeline.policy import Policy

from .grounds import grounds_of

_REASONS = {
    Exclusion.EXPIRED: Reason.EXPIRED_ONLY,
    Exclusion.UNVERIFIED: Reason.UNVERIFIED_ONLY,
    Exclusion.NOT_ENTITLED: Reason.NOT_ENTITLED,
}


def scope_of(
    asker: AbstractBaseUser | AnonymousUser,
    knowledge_base: KnowledgeBase,
    policy: Policy,
) -> Scope:
    """Return what may be evidence for `asker` now.

    One query, or none where the asker's audiences were read with the knowledge base.
    """
    grounds = grounds_of(knowledge_base)
    if grounds and grounds.asker == asker:
        audience_ids = grounds.audience_ids
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
            evidence=tuple(_evidence(hit) for hit in found.hits),
            visible=found.visible,
            route=found.route.value,
            method=METHOD,
            embedder=found.embedder,
            deep=found.deep,
            embed_milliseconds=0.0 if is_known else vector.milliseconds,
            sql_milliseconds=found.sql_milliseconds,
        )

    def withheld(self, question: str) -> Sequence[Withheld]:
        """Return the nearest entry outside the scope for each cause, if any."""
        nearest = nearest_excluded(self._vector(question), scope=self._scope)
        return tuple(
            Withheld(_REASONS[entry.cause], entry.distance, entry.confidence)
            for entry in nearest
        )

    def contradictions(self, entry_ids: Sequence[int]) -> Sequence[Contradiction]:
        """Return the unsettled contradictions between any two of these entries."""
        return tuple(
            Contradiction(found.conflict_id, found.entries, found.quotes)
            for found in contradictions_between(entry_ids)
        )

    def _vector(self, question: str) -> QuestionVector:
        if question not in self._vectors:
            self._vectors[question] = embed_question(question)
        return self._vectors[question]


def _evidence(hit: Hit) -> Evidence:
    return Evidence(
        entry_id=hit.entry_id,
        revision_id=hit.revision_id,
        text=hit.text,
        question=hit.question,
        confidence=hit.confidence,
        is_verified=hit.is_verified,
        distance=hit.distance,
        vector_rank=hit.vector_rank,
        text_rank=hit.text_rank,
        score=hit.score,
        document_title=hit.document_title,
        section=hit.section,
        verified_at=hit.verified_at,
        valid_until=hit.valid_until,
    )
