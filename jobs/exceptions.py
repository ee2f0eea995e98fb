from accounts.exceptions import ConflictError, NescioError, NotFoundError


class JobNotFoundError(NotFoundError):
    code = "job_not_found"


class JobStateError(ConflictError):
    code = "job_state"


class RetryableJobError(NescioError):
    """A failure in a handler after which the same step may soon succeed."""

    code = "job_retryable"


class MailRefusedError(NescioError):
    """A rejection by the mail server that lasts until the settings are corrected.

    It is not retried.
    """

    code = "mail_refused"


class JobCancelledError(NescioError):
    """A request to cancel the job; raised at the start of the next step."""

    code = "job_cancelled"


class JobInterruptedError(NescioError):
    """A shutdown of this worker; another one continues after the last finished step."""

    code = "job_interrupted"


class LeaseLostError(NescioError):
    """The loss of the job to another run; the step in progress is rolled back."""

    code = "job_lease_lost"
