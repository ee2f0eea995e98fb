from accounts.exceptions import ConflictError, NescioError, NotFoundError


class JobNotFoundError(NotFoundError):
    code = "job_not_found"


class JobStateError(ConflictError):
    code = "job_state"


class RetryableJobError(NescioError):
    """What a handler raises when the same step may succeed a little later."""

    code = "job_retryable"


class MailRefusedError(NescioError):
    """What a mail server refuses until the settings are corrected: not tried again."""

    code = "mail_refused"


class JobCancelledError(NescioError):
    """Someone asked for the job to stop; raised at the start of the next step."""

    code = "job_cancelled"


class JobInterruptedError(NescioError):
    """This worker shuts down; another one goes on after the last finished step."""

    code = "job_interrupted"


class LeaseLostError(NescioError):
    """The job belongs to another run by now: whatever this one has in hand is dropped."""

    code = "job_lease_lost"
