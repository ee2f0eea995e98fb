"""A multiple-choice data set as a suite, with the product's own retrieval and gates."""

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
    """`judging.Suite` over questions with options.

    Retrieval gets the bare question, the model the question with its options. Hard
    refusal is decided first; a question that it refuses never reaches the model, except
    in shadow.

    Attributes:
        about: What identifies a run besides knowledge, policy and models.
        plain: Whether the model is also asked closed-book, whatever the gates decide.
        model: Loads the model that chooses.
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
        """What identifies a run, including the contents of the knowledge base."""
        return {
            **self.about,
            "plain": self.plain,
            "chooses": self.model().fingerprint,
            **asked_of(self.knowledge_base),
        }

    @property
    def case_ids(self) -> Sequence[str]:
        """The ids of the questions, in the order in which they are asked."""
        return [question.id for question in self.questions]

    def judge(self, case_id: str) -> Judged:
        """Ask one question and judge the outcome."""
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
        """Return the second gate's decision on a choice, treated like an answer."""
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
    """Return whether a choice is right, or None if nothing was chosen.

    With one right option, it must be the chosen one. With several, more than half of
    all options must be labelled correctly; the paper has no such bound and scores each
    option, as the measure "accuracy" does.
    """
    if not choice.chosen:
        return None
    if not question.several:
        return choice.chosen == question.correct
    return question.share_right(choice.chosen) > 0.5


def _accuracy(question: ChoiceQuestion, choice: Choice) -> float:
    """Return 0 or 1 for one right option, the share labelled correctly for several.

    An unreadable choice gets 0.
    """
    if not choice.readable:
        return 0.0
    if question.several:
        return question.share_right(choice.chosen)
    return float(choice.chosen == question.correct)


def _measures(
    question: ChoiceQuestion, choice: Choice | None, closed: Choice | None
) -> dict[str, float]:
    """Return the accuracies with and without evidence, and that of chance."""
    count = len(question.options)
    right = len(question.correct)
    measures = {
        "options": float(count),
        # Tossing a coin for each option labels half of them correctly.
        "chance_accuracy": 0.5 if question.several else right / count,
    }
    if choice:
        measures["accuracy"] = _accuracy(question, choice)
        measures["chosen"] = float(len(choice.chosen))
    if closed:
        measures["plain_accuracy"] = _accuracy(question, closed)
    return measures


def _distributions(choice: Choice | None) -> dict[str, float]:
    """Return the margin of the best option's score over the next, as a signal."""
    if choice is None or len(choice.scores) < 2:
        return {}
    first, second = sorted(choice.scores, reverse=True)[:2]
    return {"option_margin": first - second}
