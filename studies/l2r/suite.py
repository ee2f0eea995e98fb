"""A multiple-choice data set as a suite: retrieval and gates are the product's own."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kb.documents.models import KnowledgeBase
from qa.answers.sources import KnowledgeRetriever, evidence_scope
from qa.evaluation.judging import Judged, Parameter
from qa.evaluation.knowledge import asked_of, evaluation_user
from qa.pipeline.gates import Decision
from qa.pipeline.hard_gate import judge_coverage
from qa.pipeline.language_model import Generation
from qa.pipeline.policy import Policy as PolicyValue
from qa.pipeline.retrieve import retrieve
from qa.pipeline.soft_gate import judge_generation, verify_support
from qa.pipeline.values import Question, Retrieval, clean_question
from qa.policies.models import Policy

from .questions import Choice, ChoiceModel, ChoiceQuestion


@dataclass(kw_only=True, eq=False)
class ChoiceSuite:
    """`judged.Suite` over questions with options.

    The knowledge base is asked the bare question and the model the question with its
    options. Hard refusal is decided first; a question that it refuses never reaches the
    model, except in shadow.

    Attributes:
        about: What makes two runs the same one beside knowledge, policy and models.
        plain: Whether the model is asked closed-book too, whatever the gates say.
        model: Loads what chooses.
    """

    name: str
    protocol: str
    knowledge_base: KnowledgeBase
    policy: Policy
    questions: Sequence[ChoiceQuestion]
    about: Mapping[str, Parameter]
    plain: bool
    model: Callable[[], ChoiceModel] = field(repr=False)

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """What makes two runs the same one, with what the knowledge base holds."""
        return {
            **self.about,
            "plain": self.plain,
            "chooses": self.model().fingerprint,
            **asked_of(self.knowledge_base),
        }

    @property
    def case_ids(self) -> Sequence[str]:
        """The questions' ids, in the order in which they are asked."""
        return [question.id for question in self.questions]

    def judge(self, case_id: str) -> Judged:
        """Ask one question, wait for its outcome and judge it."""
        began = time.perf_counter()
        question = self._by_id[case_id]
        policy = self._value
        asked = clean_question(question.question, self.knowledge_base.language)
        scope = evidence_scope(evaluation_user(), self.knowledge_base, policy)
        retriever = KnowledgeRetriever(scope)
        found = retrieve(asked, retriever=retriever, policy=policy)
        hard = judge_coverage(asked, found, retriever=retriever, policy=policy)
        is_closed_book = self.plain or not found.evidence
        closed = self.model().choose(question, ()) if is_closed_book else None
        choice, deciding, signals = None, hard, hard.signals
        if not hard.refused:
            choice = self.model().choose(question, found.evidence)
            deciding = self._soft_gate(question, choice, asked, found)
            signals = (*hard.signals, *deciding.signals)
        return Judged(
            id=question.id,
            group=question.group,
            signals={signal.name: signal.value for signal in signals}
            | _distributions(choice),
            is_answerable=None,
            is_correct=is_right(question, choice) if choice else None,
            is_answered=not deciding.refused,
            gate=deciding.gate.value if deciding.refused else "",
            reason=deciding.reason.value if deciding.reason else "",
            measures=_measures(question, choice, closed),
            milliseconds=(time.perf_counter() - began) * 1000,
            model_milliseconds=sum(c.milliseconds for c in (closed, choice) if c),
            answer_id=None,
        )

    @cached_property
    def _by_id(self) -> Mapping[str, ChoiceQuestion]:
        return {question.id: question for question in self.questions}

    @cached_property
    def _value(self) -> PolicyValue:
        return self.policy.as_value()

    def _soft_gate(
        self,
        question: ChoiceQuestion,
        choice: Choice,
        asked: Question,
        found: Retrieval,
    ) -> Decision:
        """Return the second gate's decision on a choice, judged like an answer."""
        generation = Generation(
            cited=choice.cited,
            reasoning=choice.reasoning,
            can_answer=choice.can_answer,
            verdict_probability=choice.verdict_probability,
            answer="\n".join(question.options[index] for index in choice.chosen),
            malformed=not choice.readable,
            repaired=choice.repaired,
            milliseconds=choice.milliseconds,
        )
        return judge_generation(
            found,
            generation,
            verify_support(asked, found, generation),
            policy=self._value,
            language_model=self.model().fingerprint,
        )


def is_right(question: ChoiceQuestion, choice: Choice) -> bool | None:
    """Tell whether a choice is right; None where nothing was chosen.

    One right option: it is the chosen one. Several: more than half of all options are
    labelled correctly. The paper scores each option and has no such bound; the share
    itself is the measure "accuracy".
    """
    if not choice.chosen:
        return None
    if not question.several:
        return choice.chosen == question.correct
    return question.share_right(choice.chosen) > 0.5


def _accuracy(question: ChoiceQuestion, choice: Choice) -> float:
    """Return 0 or 1 for one right option, the share labelled correctly for several.

    What can't be read labels nothing.
    """
    if not choice.readable:
        return 0.0
    if question.several:
        return question.share_right(choice.chosen)
    return float(choice.chosen == question.correct)


def _measures(
    question: ChoiceQuestion, choice: Choice | None, closed: Choice | None
) -> dict[str, float]:
    """Return the accuracies with and without evidence, and what chance would give."""
    count = len(question.options)
    right = len(question.correct)
    measures = {
        "options": float(count),
        # A coin for each option labels half of them correctly, whatever their number.
        "chance_accuracy": 0.5 if question.several else right / count,
    }
    if choice:
        measures["accuracy"] = _accuracy(question, choice)
        measures["chosen"] = float(len(choice.chosen))
    if closed:
        measures["plain_accuracy"] = _accuracy(question, closed)
    return measures


def _distributions(choice: Choice | None) -> dict[str, float]:
    """Return how far the best option's score lies above the next, a signal of its own."""
    if choice is None or len(choice.scores) < 2:
        return {}
    first, second = sorted(choice.scores, reverse=True)[:2]
    return {"option_margin": first - second}
