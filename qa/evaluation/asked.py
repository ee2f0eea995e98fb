"""A suite whose questions are asked as everybody's are: retrieval, gates, language model.

Nothing is written while a question is decided. Its answer is written together with its
result, in one transaction: a process that is killed leaves both or neither.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from django.contrib.auth.models import User

from kb.models import KnowledgeBase
from qa.exceptions import InvalidQuestionError
from qa.models import Answer, Policy
from qa.pipeline.gates import Decision, Gate
from qa.pipeline.generation import LanguageModel
from qa.pipeline.outcome import Outcome, StageValue
from qa.services.asking import new_question, stages_of
from qa.services.loading import release_connection
from qa.services.recording import record_outcome

from .ahead import prepared_ahead
from .cases import Case
from .judged import Judged, Parameter
from .knowledge import asked_of, evaluation_user
from .scoring import Scoring, draft_of

_INVALID = "invalid_question"


@dataclass(frozen=True, slots=True)
class Considered:
    """A question that was decided and judged, and not written yet.

    Attributes:
        write: Writes the answer, if there is one to write.
    """

    judged: Judged
    write: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Begun:
    """A question as far as it comes without a language model.

    Attributes:
        answer: Not written yet; None where the text can't be asked.
        stages: Goes on behind the hard gate.
        seconds: Time spent so far.
    """

    case: Case
    answer: Answer | None
    stages: Iterator[StageValue]
    seconds: float


@dataclass(kw_only=True, eq=False)
class AskedSuite:
    """`judged.Suite` over a knowledge base.

    Attributes:
        about: What makes two runs the same one beside knowledge, policy and models.
        askers: Users by the name that cases give.
        keys: The suite's key of an entry by what it says; others have their id.
        language_model: Loads the model; the configured one if None.
    """

    name: str
    protocol: str
    knowledge_base: KnowledgeBase
    policy: Policy
    cases: Sequence[Case]
    scoring: Scoring
    about: Mapping[str, Parameter]
    askers: Mapping[str, User] = field(default_factory=dict)
    keys: Mapping[int, str] = field(default_factory=dict)
    language_model: Callable[[], LanguageModel] | None = None

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """What makes two runs the same one, with what the knowledge base holds."""
        return {**self.about, **asked_of(self.knowledge_base)}

    @property
    def case_ids(self) -> Sequence[str]:
        """The ids in the order in which the questions are asked."""
        return [case.id for case in self.cases]

    def judge(self, case_id: str) -> Judged:
        """Ask one question, write its answer and judge it.

        Raises:
            UnavailableError: A model is down; nothing was written.
        """
        considered = next(self.consider([case_id]))
        considered.write()
        return considered.judged

    def consider(self, case_ids: Iterable[str]) -> Iterator[Considered]:
        """Ask questions, and leave it to the caller when their answers are written.

        The evidence of the next ones is looked for while the model works on this one.

        Raises:
            UnavailableError: A model is down; nothing was written.
        """
        cases = (self._by_id[case_id] for case_id in case_ids)
        for begun in prepared_ahead(self._begin, cases):
            yield self._conclude(begun)

    @cached_property
    def _by_id(self) -> Mapping[str, Case]:
        return {case.id: case for case in self.cases}

    @cached_property
    def _asker(self) -> User:
        return evaluation_user()

    def _begin(self, case: Case) -> _Begun:
        """Do what needs no language model: everything up to the hard gate."""
        began = time.perf_counter()
        asker = self.askers[case.asker] if case.asker else self._asker
        try:
            answer = new_question(
                case.question,
                asker,
                self.knowledge_base,
                None,
                Answer.Channel.EVALUATION,
            )
        except InvalidQuestionError:
            return _Begun(case, None, iter(()), time.perf_counter() - began)
        stages = stages_of(answer, self.policy, self._load)
        for value in stages:
            if isinstance(value, Decision) and value.gate is Gate.HARD_REFUSAL:
                break
        return _Begun(case, answer, stages, time.perf_counter() - began)

    def _load(self) -> LanguageModel:
        if self.language_model:
            return self.language_model()
        # Pulls in torch, which a suite that only refuses never pays for.
        from qa.language_models import load_language_model  # noqa: PLC0415

        return load_language_model()

    def _conclude(self, begun: _Begun) -> Considered:
        if begun.answer is None:
            return Considered(_unaskable(begun), _nothing)
        release_connection()
        began = time.perf_counter()
        *_, outcome = begun.stages
        if not isinstance(outcome, Outcome):
            msg = f"Question {begun.case.id} ended without an outcome."
            raise TypeError(msg)
        answer, policy = begun.answer, self.policy
        judged = self._judged(begun.case, answer, outcome, begun.seconds, began)
        return Considered(judged, lambda: record_outcome(answer, outcome, policy))

    def _judged(
        self, case: Case, answer: Answer, outcome: Outcome, before: float, began: float
    ) -> Judged:
        draft = draft_of(outcome, lambda entry: self.keys.get(entry, str(entry)))
        score = self.scoring(case, draft) if draft else None
        measures = dict(score.measures) if score else {}
        model = outcome.generation.milliseconds if outcome.generation else 0.0
        return Judged(
            id=case.id,
            group=case.group,
            signals={signal.name: signal.value for signal in outcome.signals},
            is_answerable=case.is_answerable,
            is_correct=score.is_correct if score else None,
            is_answered=outcome.answered,
            gate=outcome.gate.value if outcome.gate else "",
            reason=outcome.reason.value if outcome.reason else "",
            measures={**measures, **_expected(case, outcome)},
            milliseconds=(before + time.perf_counter() - began) * 1000,
            model_milliseconds=model,
            answer_id=answer.pk,
        )


def _expected(case: Case, outcome: Outcome) -> dict[str, float]:
    """Tell whether it was decided where and why the case says, if it does."""
    measures = {}
    if case.gate is not None:
        measures["expected_gate"] = float(outcome.gate is case.gate)
    if case.reason is not None:
        measures["expected_reason"] = float(outcome.reason is case.reason)
    return measures


def _unaskable(begun: _Begun) -> Judged:
    """A text that the product does not take as a question is refused before any gate."""
    return Judged(
        id=begun.case.id,
        group=begun.case.group,
        signals={},
        is_answerable=begun.case.is_answerable,
        is_correct=None,
        is_answered=False,
        gate="",
        reason=_INVALID,
        measures={},
        milliseconds=begun.seconds * 1000,
        model_milliseconds=0.0,
        answer_id=None,
    )


def _nothing() -> None:
    """There is no answer to write."""
