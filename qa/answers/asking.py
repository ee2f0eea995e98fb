"""Deciding a question with the pipeline and storing the outcome."""

import logging
from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Unpack
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.acting import each_as, reading_as, user_reader
from accounts.exceptions import UnavailableError
from accounts.people import AnyUser
from kb.types import Scope
from qa import pipeline
from qa.answers.models import Answer
from qa.exceptions import AnswerDecidedError, AnswerNotFoundError, AnswerPendingError
from qa.pipeline.closed_book import ClosedBookModels
from qa.pipeline.language_model import LanguageModel, Probes
from qa.pipeline.monitored import SegmentWriter
from qa.pipeline.policy import Policy as PolicyValue
from qa.pipeline.policy import RetrievalTiming
from qa.pipeline.self_knowledge import SelfKnowledge
from qa.pipeline.values import StageValue
from qa.policies.models import Policy
from qa.policies.services import active_policy, has_verifier

from .questions import QuestionFields, new_question
from .recording import OPEN, record_failure, record_outcome
from .sources import (
    KnowledgeRetriever,
    PastExamples,
    active_probes,
    before_the_model,
    closed_book_models_for,
    configured_model,
    configured_reranker,
    configured_verifier,
    evidence_scope,
    release_connection,
    verdict_debiaser,
)

logger = logging.getLogger(__name__)

# Far above the worst case: every attempt at a language server times out, behind a full
# queue.
ABANDONED_AFTER = timedelta(minutes=15)


def ask(text: str, **fields: Unpack[QuestionFields]) -> Answer:
    """Ask a question and wait for the outcome.

    A question decided without the language model is inserted once, already decided. One
    that needs the model is stored first, so that it is not lost if the model is down.
    """
    answer = new_question(text, **fields)
    for _ in decide(answer):
        pass
    return answer


def keep_question(text: str, **fields: Unpack[QuestionFields]) -> Answer:
    """Store a question for `decide`, for callers that show stages as they complete."""
    answer = new_question(text, **fields)
    answer.save(force_insert=True)
    return answer


def decide(
    answer: Answer,
    *,
    language_model: Callable[[], LanguageModel] | None = None,
    probes: Callable[[LanguageModel], Probes] | None = None,
    policy: Policy | None = None,
) -> Generator[StageValue]:
    """Decide a question, yielding each stage's value; store the outcome, yield it last.

    It is decided with what its asker may see, whoever calls this. A stored question is
    claimed first, so that it is decided only once.

    Args:
        language_model: Loads the model; the configured one if None.
        probes: Returns the probes of a model; the active ones if None.
        policy: The version to decide by; the active one if None.

    Raises:
        AnswerDecidedError: It is already decided.
        AnswerPendingError: Another caller is deciding it.
        UnavailableError: A model is down; the row, whose id is in `detail`, is stored
            as failed.
    """
    reader = user_reader(answer.asker or AnonymousUser())
    stages = _decide(answer, language_model, probes, policy)
    try:
        yield from each_as(reader, stages)
    finally:
        with reading_as(reader):
            stages.close()


def _decide(
    answer: Answer,
    language_model: Callable[[], LanguageModel] | None,
    probes: Callable[[LanguageModel], Probes] | None,
    policy: Policy | None,
) -> Generator[StageValue]:
    if answer.outcome not in OPEN:
        raise _decided_before(answer)
    if not answer._state.adding:
        _claim(answer)
    policy = policy or active_policy(answer.knowledge_base)
    frozen = policy.as_value()
    sources = sources_for(answer, frozen, language_model, probes)
    failure = "It was interrupted; ask again."
    try:
        with ExitStack() as place:
            wait = _once_before_the_model(answer, place)
            trace = yield from look(answer, _waiting(sources, wait), frozen)
            if not trace.is_decided:
                wait()
            trace = yield from pipeline.write(trace, sources)
        outcome = pipeline.conclude(trace)
        record_outcome(answer, outcome, policy)
        failure = ""
        yield outcome
    except AnswerDecidedError:
        failure = ""  # somebody else decided it
        raise
    except UnavailableError as error:
        logger.warning("Question %s was not decided: %s", answer.pk, error)
        _keep(answer)
        failure = str(error)
        error.detail = {"id": str(answer.pk)}
        raise
    finally:
        # Also reached if the caller disconnects or an unexpected error is raised.
        if failure and not answer._state.adding:
            record_failure(answer, failure)


def decide_alone(answer: Answer) -> None:
    """Decide a stored question completely, unless it is already decided; for jobs.

    Only one run of a job works at a time, so an earlier run's claim was abandoned.
    """
    if answer.outcome not in OPEN:
        return
    Answer.objects.filter(pk=answer.pk).update(claimed_at=None)
    try:
        for _ in decide(answer):
            pass
    except AnswerDecidedError:  # by a run that was presumed dead
        asker = answer.asker  # its roles may be limited, which a refresh would undo
        answer.refresh_from_db()
        answer.asker = asker


def find_failed(answer_id: UUID, *, asker: AnyUser) -> Answer:
    """Return the asker's own failed question, for `decide` to retry.

    Raises:
        AnswerNotFoundError: It does not exist, or is another user's.
        AnswerPendingError: It is being decided.
        AnswerDecidedError: It is already decided.
    """
    own = Answer.objects.asked_by(asker).select_related("knowledge_base")
    answer = own.filter(pk=answer_id).first()
    if answer is None:
        raise AnswerNotFoundError(f"There is no answer {answer_id}.")
    if answer.outcome == Answer.Outcome.PENDING:
        raise _being_decided(answer)
    if answer.outcome != Answer.Outcome.FAILED:
        raise _decided_before(answer)
    return answer


def fail_abandoned() -> int:
    """Mark questions whose process died while deciding as failed; return how many.

    They can then be retried. If one is decided after all, its outcome is still stored.
    """
    latest = timezone.now() - ABANDONED_AFTER
    begun = Q(claimed_at__lt=latest) | Q(claimed_at__isnull=True, created_at__lt=latest)
    rows = Answer.objects.filter(begun, outcome=Answer.Outcome.PENDING)
    return rows.update(
        outcome=Answer.Outcome.FAILED,
        error="The process that decided it ended before it was done. Ask again.",
    )


def look(
    answer: Answer, sources: pipeline.Sources, policy: PolicyValue
) -> pipeline.Steps:
    """Run a question up to the hard gate on behalf of its asker; write nothing."""
    return pipeline.look(
        answer.question, sources, policy=policy, language=answer.language
    )


def sources_for(
    answer: Answer,
    policy: PolicyValue,
    language_model: Callable[[], LanguageModel] | None = None,
    probes: Callable[[LanguageModel], Probes] | None = None,
    *,
    scope: Scope | None = None,
) -> pipeline.Sources:
    """Return the pipeline's sources for a question, in its asker's scope or in `scope`.

    The scope is set on `answer`, so that it can be replayed. No database connection is
    held while a model is loaded or writes.
    """
    asker = answer.asker or AnonymousUser()
    scope = scope or evidence_scope(asker, answer.knowledge_base, policy)
    answer.scope = {"at": scope.at.isoformat(), "audiences": [*scope.audience_ids]}
    history = PastExamples(scope, release=release_connection)

    def load_model() -> LanguageModel:
        release_connection()
        return (language_model or configured_model)()

    def load_probes(model: LanguageModel) -> Probes:
        found = (probes or active_probes)(model)
        release_connection()  # the model writes next
        return found

    # The model writes between two searches of a monitored answer.
    is_monitored = policy.retrieval_timing is RetrievalTiming.MONITORED
    return pipeline.Sources(
        retriever=KnowledgeRetriever(
            scope, release=release_connection if is_monitored else None
        ),
        language_model=load_model,
        probes=load_probes,
        closed_book=closed_book_models_for(policy.retrieval_timing, history),
        verifier=configured_verifier if has_verifier(answer.knowledge_base) else None,
        reranker=configured_reranker,
        debiaser=partial(verdict_debiaser, history),
    )


def _once_before_the_model(answer: Answer, place: ExitStack) -> Callable[[], None]:
    """Return a function whose first call stores the question and reserves its slot."""
    waits: list[bool] = []

    def wait() -> None:
        if not waits:
            _keep(answer)
            place.enter_context(before_the_model.take())
            waits.append(True)

    return wait


def _waiting(sources: pipeline.Sources, wait: Callable[[], None]) -> pipeline.Sources:
    """Return the sources with a closed-book model that waits for its slot when used."""
    if sources.closed_book is None:
        return sources
    loads = sources.closed_book

    def knowledge() -> SelfKnowledge:
        wait()
        return loads.knowledge()

    def writer() -> SegmentWriter:
        wait()
        return loads.writer()

    return replace(sources, closed_book=ClosedBookModels(knowledge, writer))


def _decided_before(answer: Answer) -> AnswerDecidedError:
    return AnswerDecidedError(
        f"Question {answer.pk} is already decided; ask it again as a new question."
    )


def _being_decided(answer: Answer) -> AnswerPendingError:
    return AnswerPendingError(
        f"Question {answer.pk} is being decided; read it again in a moment."
    )


def _keep(answer: Answer) -> None:
    """Insert the pending row, so that the question survives a later failure."""
    if answer._state.adding:
        answer.claimed_at = timezone.now()
        with transaction.atomic():
            answer.save(force_insert=True)


def _claim(answer: Answer) -> None:
    """Claim a stored question that nobody is deciding; only one caller can get it."""
    free = Q(outcome=Answer.Outcome.FAILED)
    free |= Q(outcome=Answer.Outcome.PENDING, claimed_at__isnull=True)
    fields = {
        "outcome": Answer.Outcome.PENDING,
        "claimed_at": timezone.now(),
        "error": "",
    }
    kept = Answer.objects.filter(pk=answer.pk)
    if not kept.filter(free).update(**fields):
        is_pending = kept.filter(outcome=Answer.Outcome.PENDING).exists()
        raise _being_decided(answer) if is_pending else _decided_before(answer)
    for name, value in fields.items():
        setattr(answer, name, value)
