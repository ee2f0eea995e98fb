"""A suite whose questions pass the real pipeline, with search ahead in a thread."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeVar, runtime_checkable

from django.contrib.auth.models import User
from django.db import connection, connections

from kb.documents.models import KnowledgeBase
from qa.answers.asking import look, sources_for
from qa.answers.models import Answer
from qa.answers.questions import new_question
from qa.answers.recording import record_outcome
from qa.answers.sources import release_connection
from qa.exceptions import InvalidQuestionError
from qa.pipeline import Sources, conclude, finish, write
from qa.pipeline.gates import Reason
from qa.pipeline.language_model import LanguageModel
from qa.pipeline.values import Outcome, Trace
from qa.policies.models import Policy

from .cases import Case
from .judging import Judged, Parameter, Scoring, Suite, draft_of
from .knowledge import asked_of, evaluation_user

Item = TypeVar("Item")
Prepared = TypeVar("Prepared")

_DEPTH = 2  # one item is being prepared while another one waits


def prepared_ahead(
    prepare: Callable[[Item], Prepared], items: Iterable[Item]
) -> Iterator[Prepared]:
    """Yield `prepare(item)` for every item, in order, computed ahead in a thread.

    Inside a transaction, whose rows other threads can't see, each is computed when
    needed instead. An exception of `prepare` is raised at its item's position.
    """
    if connection.in_atomic_block:
        yield from map(prepare, items)
        return
    waiting: deque[Future[Prepared]] = deque()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ahead") as thread:
        try:
            for item in items:
                waiting.append(thread.submit(copy_context().run, prepare, item))
                if len(waiting) > _DEPTH:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            # Connections are per thread, and this thread ends here.
            thread.submit(connections.close_all)


_INVALID = "invalid_question"


@dataclass(frozen=True, slots=True)
class Considered:
    """A question that was decided and judged; `write` stores its answer."""

    judged: Judged
    write: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Begun:
    """A question up to the hard gate; without answer and trace if it can't be asked."""

    case: Case
    answer: Answer | None
    seconds: float
    trace: Trace | None = None
    sources: Sources | None = None


@dataclass(kw_only=True, eq=False)
class CaseSuite:
    """Cases about a knowledge base; `about` holds further parameters of a run."""

    name: str
    protocol: str
    knowledge_base: KnowledgeBase
    cases: Sequence[Case]
    about: Mapping[str, Parameter]

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        return {**self.about, **asked_of(self.knowledge_base)}

    @property
    def case_ids(self) -> Sequence[str]:
        return [case.id for case in self.cases]

    @cached_property
    def cases_by_id(self) -> Mapping[str, Case]:
        return {case.id: case for case in self.cases}


@dataclass(kw_only=True, eq=False)
class AskedSuite(CaseSuite):
    """A suite of questions that are asked like those of any user.

    Entries that are not in `keys` are named by their id.
    """

    policy: Policy
    scoring: Scoring
    askers: Mapping[tuple[str, ...], User] = field(default_factory=dict)
    keys: Mapping[int, str] = field(default_factory=dict)
    language_model: Callable[[], LanguageModel] | None = None

    def judge(self, case_id: str) -> Judged:
        considered = next(self.consider([case_id]))
        considered.write()
        return considered.judged

    def consider(self, case_ids: Iterable[str]) -> Iterator[Considered]:
        """Yield judged questions for the caller to write, searching ahead meanwhile."""
        cases = (self.cases_by_id[case_id] for case_id in case_ids)
        for begun in prepared_ahead(self._begin, cases):
            yield self._conclude(begun)

    @cached_property
    def _asker(self) -> User:
        return evaluation_user()

    def _begin(self, case: Case) -> _Begun:
        began = time.perf_counter()
        asker = self.askers[case.asker] if case.asker else self._asker
        try:
            answer = new_question(
                case.question,
                asker=asker,
                channel=Answer.Channel.EVALUATION,
                knowledge_base=self.knowledge_base,
            )
        except InvalidQuestionError:
            return _Begun(case, None, time.perf_counter() - began)
        policy = self.policy.as_value()
        sources = sources_for(answer, policy, self.language_model)
        trace = finish(look(answer, sources, policy))
        return _Begun(case, answer, time.perf_counter() - began, trace, sources)

    def _conclude(self, begun: _Begun) -> Considered:
        if begun.answer is None or begun.trace is None or begun.sources is None:
            return Considered(_unaskable(begun), lambda: None)
        release_connection()
        began = time.perf_counter()
        outcome = conclude(finish(write(begun.trace, begun.sources)))
        answer, policy = begun.answer, self.policy
        judged = self._judged(begun.case, answer, outcome, begun.seconds, began)
        return Considered(judged, lambda: record_outcome(answer, outcome, policy))

    def _judged(
        self, case: Case, answer: Answer, outcome: Outcome, before: float, began: float
    ) -> Judged:
        draft = draft_of(outcome, lambda entry: self.keys.get(entry, str(entry)))
        score = self.scoring(case, draft) if draft else None
        expected = _expected(case, outcome, reveals=self.policy.reveal_not_entitled)
        model = outcome.generation.milliseconds if outcome.generation else 0.0
        return Judged(
            id=case.id,
            group=case.group,
            signals={signal.name: signal.value for signal in outcome.signals},
            is_answerable=case.is_answerable,
            is_correct=score.is_correct if score else None,
            is_answered=outcome.answered,
            gate=outcome.gate.value if outcome.gate else "",
            # A report reveals no more than the asker was shown.
            reason=outcome.shown_reason.value if outcome.shown_reason else "",
            measures={**(score.measures if score else {}), **expected},
            milliseconds=(before + time.perf_counter() - began) * 1000,
            model_milliseconds=model,
            answer_id=answer.pk,
        )


def _expected(case: Case, outcome: Outcome, *, reveals: bool) -> dict[str, float]:
    measures = {}
    if case.gate is not None:
        measures["expected_gate"] = float(outcome.gate is case.gate)
    # A measure must not reveal hidden evidence either, unless refusals do.
    if case.reason is not None and (reveals or case.reason is not Reason.NOT_ENTITLED):
        measures["expected_reason"] = float(outcome.shown_reason is case.reason)
    return measures


def _unaskable(begun: _Begun) -> Judged:
    return Judged(
        id=begun.case.id,
        group=begun.case.group,
        signals={},
        is_answerable=begun.case.is_answerable,
        is_correct=None,
        is_answered=False,
        reason=_INVALID,
        milliseconds=begun.seconds * 1000,
    )


@runtime_checkable
class ConsideringSuite(Protocol):
    def consider(self, case_ids: Iterable[str]) -> Iterator[Considered]:
        """Ask questions and judge them, writing nothing."""


def considered_of(suite: Suite, case_ids: list[str]) -> Iterator[Considered]:
    """Ask questions of any suite; one without `consider` writes while it judges."""
    if isinstance(suite, ConsideringSuite):
        yield from suite.consider(case_ids)
        return
    for case_id in case_ids:
        yield Considered(suite.judge(case_id), lambda: None)
