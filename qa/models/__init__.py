"""The rows of what was asked and how it was decided."""

from .answer import Answer, AnswerEvidence, AnswerQuerySet
from .policy import Policy, RefusalWording
from .vote import Vote

__all__ = [
    "Answer",
    "AnswerEvidence",
    "AnswerQuerySet",
    "Policy",
    "RefusalWording",
    "Vote",
]
