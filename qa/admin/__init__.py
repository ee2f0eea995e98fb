"""Answers to look at, policies and probes to make and activate, the words of refusals."""

from .answer import AnswerAdmin
from .drift import DriftReadingAdmin
from .escalation import EscalationAdmin
from .evaluation import EvaluationRunAdmin
from .gap import GapAdmin
from .ledger import ConfidenceMoveAdmin
from .policy import PolicyAdmin
from .probe import ProbeAdmin
from .retraining import RetrainingAdmin
from .review import ReviewAdmin
from .review_sample import ReviewSampleAdmin
from .vote import VoteAdmin
from .wording import RefusalWordingAdmin

__all__ = [
    "AnswerAdmin",
    "ConfidenceMoveAdmin",
    "DriftReadingAdmin",
    "EscalationAdmin",
    "EvaluationRunAdmin",
    "GapAdmin",
    "PolicyAdmin",
    "ProbeAdmin",
    "RefusalWordingAdmin",
    "RetrainingAdmin",
    "ReviewAdmin",
    "ReviewSampleAdmin",
    "VoteAdmin",
]
