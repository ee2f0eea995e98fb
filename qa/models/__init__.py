"""The rows of what was asked and how it was decided."""

from .activation import PolicyActivation
from .answer import Answer, AnswerEvidence, AnswerQuerySet
from .certificate import Certificate
from .drift import DriftReading
from .escalation import Escalation
from .evaluation import EvaluationResult, EvaluationRun
from .policy import Policy, RefusalWording
from .use import UseCursor, VoteChange
from .vote import Vote

__all__ = [
    "Answer",
    "AnswerEvidence",
    "AnswerQuerySet",
    "Certificate",
    "DriftReading",
    "Escalation",
    "EvaluationResult",
    "EvaluationRun",
    "Policy",
    "PolicyActivation",
    "RefusalWording",
    "UseCursor",
    "Vote",
    "VoteChange",
]
