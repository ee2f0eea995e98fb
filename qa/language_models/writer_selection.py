"""The writer for enrichment that the settings name."""

from kb.enrichment.writer import Writer
from qa.language_models.selection import load_without_adapter
from qa.language_models.server import ServerLanguageModel
from qa.language_models.server_writer import ServerWriter


def load_writer() -> Writer:
    """Return what writes proposals: the configured server, or the white-box model.

    Raises:
        NescioError: As `load_without_adapter` says.
    """
    model = load_without_adapter()
    if isinstance(model, ServerLanguageModel):
        return ServerWriter(model)
    # torch takes 400 MiB and seconds: a process that never asks never imports it.
    from qa.language_models.white_box_writer import WhiteBoxWriter  # noqa: PLC0415

    return WhiteBoxWriter(model)
