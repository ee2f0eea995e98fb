"""The model whose activations speak for the answers of a language model."""

from django.conf import settings

from probes.language_model import WhiteBoxModel, load_model
from qa.pipeline.generation import LanguageModel


def white_box_of(language_model: LanguageModel) -> WhiteBoxModel | None:
    """Return the model itself, or for a server the one that reads its answers here.

    Returns:
        None where a server answers and `NESCIO_SURROGATE_MODEL` is "none".

    Raises:
        ModelError: The surrogate's files can't be used as they are.
        ModelLoadError: The surrogate is not there, or can't be fetched.
    """
    own = getattr(language_model, "model", None)
    if isinstance(own, WhiteBoxModel):
        return own
    if settings.SURROGATE_MODEL == "none":
        return None
    return load_model(settings.SURROGATE_MODEL)
