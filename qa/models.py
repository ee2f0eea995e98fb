"""The models of the `qa` slices, listed here for Django."""

from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer, AnswerQuerySet
from qa.answers.past_question_models import PastQuestion, PastQuestionQuerySet
from qa.calibration.models import (
    Certificate,
    DriftReading,
    SelfCalibration,
    SelfCalibrationSettings,
)
from qa.dashboard.models import (
    ChangedDay,
    CountedDay,
    DailyCount,
    DailyLatency,
    DailyModel,
    DailyShadow,
)
from qa.evaluation.models import EvaluationResult, EvaluationRun, SavedCase
from qa.gaps.escalation_models import Escalation, Notice
from qa.gaps.models import Gap, GapCursor, GapQuestion, Repeat
from qa.inbox.models import InboxMark
from qa.policies.models import Policy, PolicyActivation, RefusalWording
from qa.reviews.models import Review, ReviewQuerySet
from qa.reviews.sample_models import ReviewSample, ReviewStratum
from qa.training.models import Retraining, RetrainingStep
from qa.votes.models import ConfidenceMove, UseCursor, Vote, VoteChange
