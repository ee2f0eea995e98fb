"""The admin pages of the `qa` slices, imported here so that Django registers them."""

from qa.answers.admin import AnswerAdmin
from qa.calibration.admin import DriftReadingAdmin
from qa.evaluation.admin import EvaluationRunAdmin
from qa.evaluation.case_admin import SavedCaseAdmin
from qa.gaps.admin import GapAdmin
from qa.gaps.escalation_admin import EscalationAdmin
from qa.policies.admin import PolicyAdmin, RefusalWordingAdmin
from qa.reviews.admin import ReviewAdmin
from qa.reviews.sample_admin import ReviewSampleAdmin
from qa.training.probe_admin import ProbeAdmin
from qa.training.retraining_admin import RetrainingAdmin
from qa.votes.admin import ConfidenceMoveAdmin, VoteAdmin
