"""The rows of what was asked and how it was decided."""

from .activation import PolicyActivation
from .answer import Answer, AnswerEvidence, AnswerQuerySet
from .certificate import Certificate
from .drift import DriftReading
from .escalation import Escalation
from .evaluation import EvaluationResult, EvaluationRun
from .gap import Gap, GapCursor, GapQuestion
from .history import PastQuestion, PastQuestionQuerySet
from .ledger import ConfidenceMove
from .notice import Notice
from .policy import Policy, RefusalWording
from .repeat import Repeat
from .retraining import Retraining, RetrainingStep
from .review import Review, ReviewQuerySet
from .review_sample import ReviewSample, ReviewSampleQuerySet, ReviewStratum
from .rollup import ChangedDay, CountedDay, DailyCount, DailyLatency
from .use import UseCursor, VoteChange
from .vote import Vote

__all__ = [
    "Answer",
    "AnswerEvidence",
    "AnswerQuerySet",
    "Certificate",
    "ChangedDay",
    "ConfidenceMove",
    "CountedDay",
    "DailyCount",
    "DailyLatency",
    "DriftReading",
    "Escalation",
    "EvaluationResult",
    "EvaluationRun",
    "Gap",
    "GapCursor",
    "GapQuestion",
    "Notice",
    "PastQuestion",
    "PastQuestionQuerySet",
    "Policy",
    "PolicyActivation",
    "RefusalWording",
    "Repeat",
    "Retraining",
    "RetrainingStep",
    "Review",
    "ReviewQuerySet",
    "ReviewSample",
    "ReviewSampleQuerySet",
    "ReviewStratum",
    "UseCursor",
    "Vote",
    "VoteChange",
]
