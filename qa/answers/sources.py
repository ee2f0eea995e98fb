"""The pipeline's sources: search on behalf of one asker, past questions, lazy models.

Each model imports torch, which takes 400 MiB and seconds; a process that only refuses
never loads one. No model is loaded or waited for while a database connection is held.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.exceptions import NescioError
from accounts.loaded_once import LoadedOnce
from accounts.people import AnyUser
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.embedding.services import embed_question
from kb.search import (
    METHOD,
    contradictions_between,
    nearest_excluded,
    not_compared_among,
    search,
)
from kb.search.past import contradictions_then
from kb.types import Contradiction, Excluded, QuestionVector, Scope
from probes.models import Probe
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.past_question_models import PastQuestion, PastQuestionQuerySet
from qa.exceptions import LanguageModelBusyError
from qa.pipeline.closed_book import ClosedBookModels
from qa.pipeline.history import History, JudgedQuestion, KnownQuestion, VerdictDebiaser
from qa.pipeline.language_model import LanguageModel, NoProbes, Probes
from qa.pipeline.monitored import SegmentWriter
from qa.pipeline.policy import Policy, RetrievalTiming
from qa.pipeline.retrieve import Reranker
from qa.pipeline.self_knowledge import SelfKnowledge
from qa.pipeline.values import Question, Retrieval
from qa.pipeline.weighing import Verifier
from qa.policies.ask_prefetch import prefetched

if TYPE_CHECKING:
    from qa.inference.rewriter import Rewriter

logger = logging.getLogger(__name__)
_probes: Final = LoadedOnce[str, Probes]()


def release_connection() -> None:
    """Return this thread's database connection to the pool until it is needed again.

    A language model may take a minute; waiting for it must not keep a connection from
    questions that are refused in milliseconds.
    """
    if not connection.in_atomic_block:
        connection.close()


def configured_model() -> LanguageModel:
    from qa.inference.configured import load_language_model  # noqa: PLC0415

    return load_language_model()


def active_probes(language_model: LanguageModel) -> Probes:
    """Return the probes in use for this model's answers, in shadow or not (one query).

    A probe that can't be used is logged and left out. If a language server answers, the
    model that reads its answers is loaded with the first probe that needs it.
    """
    serving = Probe.objects.serving().order_by("pk")
    states = tuple(serving.values_list("fingerprint", "state"))
    if not states:
        return NoProbes("No probe is in use.")

    def load() -> Probes:
        from qa.inference.probe_loading import load_probes  # noqa: PLC0415

        return load_probes(language_model, dict(states))

    def unusable(error: NescioError) -> NoProbes:
        logger.error("The probes cannot be loaded.", exc_info=error)
        return NoProbes(str(error))

    key = language_model.fingerprint
    return _probes.get(key, load, version=states, fallback=unusable)


class _Places:
    """The slots of this process in the language model's queue."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = 0

    @property
    def taken(self) -> int:
        return self._taken

    @contextmanager
    def take(self) -> Iterator[None]:
        """Reserve a slot in the language model's queue.

        A waiting question holds a thread of the web server; the bound leaves threads
        for questions that need no model.

        Raises:
            LanguageModelBusyError: All slots are taken.
        """
        with self._lock:
            if self._taken >= settings.LANGUAGE_QUEUE:
                raise LanguageModelBusyError(
                    f"{self._taken} questions wait for the language model, the limit "
                    "(NESCIO_LANGUAGE_QUEUE). Yours is saved; retry it in a moment."
                )
            self._taken += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken -= 1


before_the_model: Final = _Places()


def closed_book_models_for(
    timing: RetrievalTiming, history: History
) -> ClosedBookModels:
    """Return the loaders of the models that answer without evidence."""
    return ClosedBookModels(partial(_own_knowledge, timing, history), _segment_writer)


def configured_reranker() -> Reranker | None:
    """Return the active or configured reranker; None if it fits another model."""
    from qa.inference import policy_models  # noqa: PLC0415

    release_connection()
    reranker = policy_models.configured_reranker()
    release_connection()  # the reranker reads next
    return reranker


def configured_rewriter() -> "Rewriter | None":
    """Return the rewriter of follow-ups; None if no model follows instructions."""
    is_bundled = settings.LANGUAGE_MODEL == "bundled"
    if not settings.LANGUAGE_SERVER_URL and is_bundled:
        return None  # without loading anything
    from qa.inference.rewriter import load_rewriter  # noqa: PLC0415

    release_connection()
    return load_rewriter()


def configured_verifier() -> Verifier:
    """Return the configured verifier; it reads with the bundled embedder."""
    from qa.inference import verifier  # noqa: PLC0415

    if not verifier.is_loaded():
        release_connection()
    return verifier.load_verifier()


def verdict_debiaser(history: History) -> VerdictDebiaser:
    from qa.inference import policy_models  # noqa: PLC0415

    release_connection()
    return policy_models.verdict_debiaser(history)


def _own_knowledge(timing: RetrievalTiming, history: History) -> SelfKnowledge:
    from qa.inference.policy_models import self_knowledge_by  # noqa: PLC0415

    release_connection()
    own = self_knowledge_by(timing, history=history)
    release_connection()  # the model reads next
    return own


def _segment_writer() -> SegmentWriter:
    from qa.inference.monitored_writer import monitored_writer  # noqa: PLC0415

    release_connection()
    writer = monitored_writer()
    release_connection()
    return writer


def evidence_scope(
    asker: AnyUser, knowledge_base: KnowledgeBase, policy: Policy
) -> Scope:
    """Return the scope of evidence for `asker` as of now.

    One query, or none if the asker's audiences were prefetched with the knowledge base.
    """
    found = prefetched(knowledge_base)
    if found and found.asker == asker:
        audience_ids = found.audience_ids
    else:
        audience_ids = Audience.objects.ids_visible_to(asker)
    return Scope(
        knowledge_base_id=knowledge_base.pk,
        audience_ids=audience_ids,
        unverified_floor=policy.unverified_floor,
        enriched_floor=policy.min_enriched,
        at=timezone.now(),
    )


class KnowledgeRetriever:
    """Search in a knowledge base as one asker may see it; one instance per question.

    Each text is embedded once, however often it is searched for.
    """

    def __init__(
        self, scope: Scope, *, release: Callable[[], None] | None = None
    ) -> None:
        """Call `release` after each search, if the next one may be far off."""
        self._scope = scope
        self._release = release
        self._vectors: dict[str, QuestionVector] = {}

    def look(self, question: str, *, top_k: int, deep: bool) -> Retrieval:
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
        return nearest_excluded(self._vector(question), scope=self._scope)

    def contradictions(self, entry_ids: Sequence[int]) -> Sequence[Contradiction]:
        if self._scope.past:
            return contradictions_then(entry_ids, self._scope.at)
        return contradictions_between(entry_ids)

    def not_compared(self, entry_ids: Sequence[int]) -> Collection[int]:
        """Return the entries not compared yet; none for the past, as not recorded."""
        return () if self._scope.past else not_compared_among(entry_ids)

    def _vector(self, question: str) -> QuestionVector:
        if question not in self._vectors:
            self._vectors[question] = embed_question(question)
        return self._vectors[question]


# Candidates per example, as some have no evidence that this asker may see.
_LOOKED_AT_FOR_ONE: Final = 3


class PastExamples:
    """`qa.pipeline.history.History` on behalf of one asker."""

    def __init__(
        self, scope: Scope, *, release: Callable[[], None] = lambda: None
    ) -> None:
        """Restrict the examples to a knowledge base and the asker's audiences.

        A past question without evidence in the scope is not an example of a verdict.
        `release` is called after reading the database, because a model runs next.
        """
        self._scope = scope
        self._release = release

    def known(
        self, question: Question, *, own_model: str, limit: int
    ) -> Sequence[KnownQuestion]:
        near = self._nearest(question, own_model=own_model, is_known__isnull=False)
        rows = near.values_list("answer_id", "answer__question", "is_known")
        found = [
            KnownQuestion(text, bool(is_known), str(answer))
            for answer, text, is_known in rows[:limit]
        ]
        self._release()
        return found

    def judged(
        self, question: Question, *, language_model: str, limit: int
    ) -> Sequence[JudgedQuestion]:
        near = self._nearest(question, language_model=language_model)
        rows = near.values_list("answer_id", "answer__question", "can_be_answered")
        found = [*rows[: limit * _LOOKED_AT_FOR_ONE]]
        notes = self._first_notes([answer for answer, _, _ in found])
        self._release()
        return [
            JudgedQuestion(text, notes[answer], can_be_answered, str(answer))
            for answer, text, can_be_answered in found
            if answer in notes
        ][:limit]

    def _nearest(self, question: Question, **values: object) -> PastQuestionQuerySet:
        vector = embed_question(question.text)
        return PastQuestion.objects.nearest_to(
            vector.values.tolist(),
            knowledge_base_id=self._scope.knowledge_base_id,
            embedding_model_id=vector.model_id,
            **values,
        )

    def _first_notes(self, answers: Sequence[UUID]) -> dict[UUID, str]:
        """Return each answer's first piece of evidence, in its words of then."""
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
