"""Decide a question by the pipeline and store the outcome."""

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

# Far beyond what deciding takes at worst: every try of a language server at its time
# limit, behind a queue of questions before it.
ABANDONED_AFTER = timedelta(minutes=15)


def ask(text: str, **fields: Unpack[QuestionFields]) -> Answer:
    """Ask and wait for the outcome.

    A refusal before, and an answer without a language model, are written once, decided.
    What goes on to the language model is kept first, so that the question outlives a
    model that is down.
    """
    answer = new_question(text, **fields)
    for _ in decide(answer):
        pass
    return answer


def keep_question(text: str, **fields: Unpack[QuestionFields]) -> Answer:
    """Keep a question for `decide`: where the stages are wanted as they come."""
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
    """Yield each stage's value; the outcome is stored before it is yielded, last.

    It is decided by what its asker may see, no matter who has it decided. One that was kept
    is claimed first, so that it is decided once.

    Args:
        language_model: Loads the model; the configured one if None.
        probes: Returns those of a model; the active ones if None.

    Raises:
        AnswerDecidedError: It was decided before.
        AnswerPendingError: Somebody else is deciding it now.
        UnavailableError: A model is down; the row, whose id is in `detail`, is kept as
            failed.
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
        # Also when the caller hung up, or something of ours broke.
        if failure and not answer._state.adding:
            record_failure(answer, failure)


def decide_alone(answer: Answer) -> None:
    """Decide a kept question to its end, unless it was decided before: for jobs.

    One run of a job works at a time: what an earlier one claimed, it left undone.
    """
    if answer.outcome not in OPEN:
        return
    Answer.objects.filter(pk=answer.pk).update(claimed_at=None)
    try:
        for _ in decide(answer):
            pass
    except AnswerDecidedError:  # by a run that was presumed dead
        asker = answer.asker  # whose roles may be limited here
        answer.refresh_from_db()
        answer.asker = asker


def find_failed(answer_id: UUID, *, asker: AnyUser) -> Answer:
    """Return the asker's own question whose first try failed, for `decide`.

    Raises:
        AnswerNotFoundError: There is none, or it is another user's.
        AnswerPendingError: Somebody is deciding it now.
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
    """Mark questions that nobody decides any more as failed; return how many.

    Their process was killed in mid-answer; now they can be decided again. One that is
    decided after all is stored as usual.
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
    """Take a question to the hard gate on behalf of its asker; writes nothing."""
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
    """Return what a question may be answered by on behalf of its asker, or in `scope`.

    The row keeps which one, so that it can be decided again. No database connection is
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

    # Between two looks of a monitored answer the model writes.
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
    """Return what keeps the question and takes it a place, the first time it is called."""
    waits: list[bool] = []

    def wait() -> None:
        if not waits:
            _keep(answer)
            place.enter_context(before_the_model.take())
            waits.append(True)

    return wait


def _waiting(sources: pipeline.Sources, wait: Callable[[], None]) -> pipeline.Sources:
    """Return the sources with a closed-book model that is waited for where it is asked."""
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
    """Write the pending row, so that the question outlives what may fail from here on."""
    if answer._state.adding:
        answer.claimed_at = timezone.now()
        with transaction.atomic():
            answer.save(force_insert=True)


def _claim(answer: Answer) -> None:
    """Take a kept question that nobody is deciding; the first of several gets it."""
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
