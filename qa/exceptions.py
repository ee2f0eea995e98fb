from accounts.exceptions import NotFoundError, UnavailableError


class LanguageModelUnavailableError(UnavailableError):
    """The language model's server is down or too slow; the question is kept."""

    code = "language_model_unavailable"


class AnswerNotFoundError(NotFoundError):
    """There is no such answer, or it is another user's."""

    code = "answer_not_found"
