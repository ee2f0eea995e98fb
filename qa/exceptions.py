from accounts.exceptions import (
    ConflictError,
    NescioError,
    NotFoundError,
    UnavailableError,
)


class LanguageModelUnavailableError(UnavailableError):
    """The language model's server is down or too slow; the question is kept."""

    code = "language_model_unavailable"


class AnswerNotFoundError(NotFoundError):
    """There is no such answer, or it is another user's."""

    code = "answer_not_found"


class InvalidQuestionError(NescioError):
    """The question can't be asked as it was sent."""

    code = "invalid_question"


class AnswerDecidedError(ConflictError):
    """The question was decided before; an answer is never decided twice."""

    code = "answer_decided"


class AnswerPendingError(ConflictError):
    """The question is not decided yet."""

    code = "answer_pending"


class InvalidVoteError(NescioError):
    """The vote can't be kept as it was sent."""

    code = "invalid_vote"


class VoteNotFoundError(NotFoundError):
    """There is no such vote, or it is on an answer that the reviewer may not see."""

    code = "vote_not_found"


class EscalationNotFoundError(NotFoundError):
    """There is no such escalation, or it is another agent's."""

    code = "escalation_not_found"


class EscalationExistsError(ConflictError):
    """The question was sent to the experts before."""

    code = "escalation_exists"


class EscalationClosedError(ConflictError):
    """An expert replied before."""

    code = "escalation_closed"


class InvalidEscalationError(NescioError):
    """A question can't be sent to the experts, or replied to, like this."""

    code = "invalid_escalation"


class NothingToUndoError(ConflictError):
    """There is nothing of this kind to take back, or something was done since."""

    code = "nothing_to_undo"


class InvalidSampleError(NescioError):
    """A sample of answers can't be drawn like this."""

    code = "invalid_sample"


class ReviewNotFoundError(NotFoundError):
    """There is no such review, or it is of an answer that the expert may not see."""

    code = "review_not_found"


class ReviewStateError(ConflictError):
    """Somebody else holds it, or its state forbids this."""

    code = "review_state"


class InvalidReviewError(NescioError):
    """A judgement can't be kept as it was sent."""

    code = "invalid_review"


class PolicyError(NescioError):
    """A policy's values contradict each other or are out of range."""

    code = "invalid_policy"


class PolicyNotFoundError(NotFoundError):
    """There is no such version of a policy."""

    code = "policy_not_found"


class KnowledgeBaseNotFoundError(NotFoundError):
    """There is no such knowledge base, or none at all yet."""

    code = "knowledge_base_not_found"


class EvaluationDataError(NescioError):
    """Labelled questions that can't be read, or that can't be asked here."""

    code = "invalid_evaluation_data"


class CalibrationError(NescioError):
    """Labelled answers that can't be calibrated on, or a bound that can't be met."""

    code = "invalid_calibration"


class EvaluationBusyError(ConflictError):
    """Two processes would ask the same questions of the same run."""

    code = "evaluation_busy"


class TrainingDataError(NescioError):
    """Labelled answers that can't be read, or that nothing can be trained on here."""

    code = "invalid_training_data"


class GapNotFoundError(NotFoundError):
    """There is no such gap, or it is filled by an entry that the user may not see."""

    code = "gap_not_found"


class GapClosedError(ConflictError):
    """The gap is filled or dismissed."""

    code = "gap_closed"


class InvalidGapError(NescioError):
    """A gap can't be changed like this."""

    code = "invalid_gap"


class NoticeNotFoundError(NotFoundError):
    """There is no such notice, or it is another user's."""

    code = "notice_not_found"


class WebhookRefusedError(NescioError):
    """The webhook's address is not allowed, or it refused what was posted."""

    code = "webhook_refused"


class RetrainingNotFoundError(NotFoundError):
    """There is no such retraining."""

    code = "retraining_not_found"


class RetrainingStateError(ConflictError):
    """A retraining can't be approved, declined or undone in its state."""

    code = "retraining_state"


class LabelPairError(NescioError):
    """Two words that can't be the labels of this language model."""

    code = "invalid_labels"
    status = 500
