"""The playground: a question up to hard refusal, by the code that answers; nothing is kept."""

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from kb.models import KnowledgeBase
from qa.models import Answer, Policy
from qa.pipeline.calibration import calibration_of
from qa.pipeline.evidence import Retrieval
from qa.pipeline.gates import Decision
from qa.pipeline.generation import LanguageModel
from qa.pipeline.outcome import Calibration, Question, VerbatimMatch

from .asking import new_question, stages_of
from .policies import active_policy


@dataclass(frozen=True, slots=True)
class Preview:
    """What hard refusal and the verbatim tier would say, and what they would say it on."""

    question: Question
    retrieval: Retrieval
    verbatim: VerbatimMatch
    decision: Decision
    policy: Policy
    calibration: Calibration


def preview(
    text: str,
    *,
    asker: AbstractBaseUser | AnonymousUser,
    knowledge_base: KnowledgeBase | None = None,
    language: str | None = None,
) -> Preview:
    """Run a question up to hard refusal.

    Raises:
        InvalidQuestionError: The text is empty, too long or no text.
        KnowledgeBaseNotFoundError: There is none to ask.
        UnavailableError: The embedding model is down.
    """
    row = new_question(text, asker, knowledge_base, language, Answer.Channel.API)
    policy = active_policy(row.knowledge_base)
    stages = stages_of(row, policy, _never)
    question, retrieval, verbatim, decision = (next(stages) for _ in range(4))
    if not (
        isinstance(question, Question)
        and isinstance(retrieval, Retrieval)
        and isinstance(verbatim, VerbatimMatch)
        and isinstance(decision, Decision)
    ):
        msg = f"The pipeline's stages changed: {question}, {retrieval}, {decision}"
        raise TypeError(msg)
    return Preview(
        question=question,
        retrieval=retrieval,
        verbatim=verbatim,
        decision=decision,
        policy=policy,
        calibration=calibration_of(policy.as_value(), retrieval),
    )


def _never() -> LanguageModel:
    msg = "The playground ends before any language model."
    raise RuntimeError(msg)
