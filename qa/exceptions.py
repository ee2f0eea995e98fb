"""The errors of this app; "not found" also covers what a user may not see."""

import random

from accounts.exceptions import (
    ConflictError,
    ForbiddenError,
    NescioError,
    NotFoundError,
    UnavailableError,
)


class LanguageModelUnavailableError(UnavailableError):
    code = "language_model_unavailable"


class LanguageModelBusyError(LanguageModelUnavailableError):
    """The language model's queue is full.

    `retry_seconds` is random, so that clients rejected together do not all retry at
    the same time and fill the queue again.
    """

    code = "language_model_busy"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.retry_seconds = random.randint(10, 30)  # noqa: S311  # no secret


class AnswerNotFoundError(NotFoundError):
    code = "answer_not_found"


class ConversationNotFoundError(NotFoundError):
    code = "conversation_not_found"


class InvalidQuestionError(NescioError):
    code = "invalid_question"


class MomentError(NescioError):
    """No question can be decided as of the given moment."""

    code = "invalid_moment"


class PastForbiddenError(ForbiddenError):
    code = "past_forbidden"


class NotReplayableError(ConflictError):
    """A stored answer cannot be decided again."""

    code = "not_replayable"


class AnswerDecidedError(ConflictError):
    code = "answer_decided"


class AnswerPendingError(ConflictError):
    code = "answer_pending"


class InvalidVoteError(NescioError):
    code = "invalid_vote"


class EntryNotShownError(ConflictError):
    code = "entry_not_shown"


class VoteNotFoundError(NotFoundError):
    code = "vote_not_found"


class EscalationNotFoundError(NotFoundError):
    code = "escalation_not_found"


class EscalationExistsError(ConflictError):
    code = "escalation_exists"


class EscalationClosedError(ConflictError):
    code = "escalation_closed"


class InvalidEscalationError(NescioError):
    code = "invalid_escalation"


class AssignedElsewhereError(ConflictError):
    """An escalation or gap is assigned to somebody else, and `take_over` is not set."""

    code = "assigned_elsewhere"


class NothingToUndoError(ConflictError):
    code = "nothing_to_undo"


class InvalidSampleError(NescioError):
    code = "invalid_sample"


class ReviewNotFoundError(NotFoundError):
    code = "review_not_found"


class ReviewStateError(ConflictError):
    code = "review_state"


class InvalidReviewError(NescioError):
    code = "invalid_review"


class PolicyError(NescioError):
    code = "invalid_policy"


class PolicyNotFoundError(NotFoundError):
    code = "policy_not_found"


class EvaluationDataError(NescioError):
    code = "invalid_evaluation_data"


class CalibrationError(NescioError):
    code = "invalid_calibration"


class EvaluationBusyError(ConflictError):
    code = "evaluation_busy"


class TrainingDataError(NescioError):
    code = "invalid_training_data"


class GapNotFoundError(NotFoundError):
    code = "gap_not_found"


class GapClosedError(ConflictError):
    code = "gap_closed"


class InvalidGapError(NescioError):
    code = "invalid_gap"


class NoticeNotFoundError(NotFoundError):
    code = "notice_not_found"


class RetrainingNotFoundError(NotFoundError):
    code = "retraining_not_found"


class RetrainingStateError(ConflictError):
    code = "retraining_state"


class LabelPairError(NescioError):
    code = "invalid_labels"
    status = 500


class InboxItemNotFoundError(NotFoundError):
    code = "inbox_item_not_found"


class InvalidInboxError(NescioError):
    code = "invalid_inbox"
