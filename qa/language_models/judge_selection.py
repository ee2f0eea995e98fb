"""The judge of pairs that the settings name."""

from django.conf import settings

from kb.conflicts import Judge
from qa.language_models.selection import load_without_adapter
from qa.language_models.server import ServerLanguageModel
from qa.language_models.server_judge import ServerJudge


def load_judge() -> Judge:
    """Return what judges pairs: the configured server, or the white-box model.

    Raises:
        NescioError: As `load_without_adapter` says.
    """
    model = load_without_adapter()
    if isinstance(model, ServerLanguageModel):
        return ServerJudge(model)
    # torch takes 400 MiB and seconds: a process that never asks never imports it.
    from qa.language_models.white_box_judge import WhiteBoxJudge  # noqa: PLC0415

    return WhiteBoxJudge(model)


def configured_judge() -> Judge | None:
    """Return the judge if `NESCIO_CONFLICT_JUDGE` wants one; raises as `load_judge`."""
    return load_judge() if settings.CONFLICT_JUDGE else None
