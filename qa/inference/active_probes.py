"""Which probes read a language model's answers, looked up for every answer."""

import logging
from typing import Final

from accounts.exceptions import NescioError
from accounts.loaded_once import LoadedOnce
from probes.models import Probe
from qa.pipeline.language_model import LanguageModel, NoProbes, Probes

logger = logging.getLogger(__name__)

_NONE: Final = NoProbes("No probe is in use.")
_loaded: Final = LoadedOnce[str, Probes]()


def active_probes(language_model: LanguageModel) -> Probes:
    """Return the probes that read this model's answers, in shadow or not (one query).

    A probe that can't be used is logged and left out. Where a server answers, the model
    that reads its answers is loaded with the first probe that needs it.
    """
    serving = Probe.objects.serving().order_by("pk")
    states = tuple(serving.values_list("fingerprint", "state"))
    if not states:
        return _NONE

    def load() -> Probes:
        # Pulls in torch, which a process without probes never pays for.
        from qa.inference.probe_loading import load_probes  # noqa: PLC0415

        return load_probes(language_model, dict(states))

    return _loaded.get(
        language_model.fingerprint, load, version=states, fallback=_no_probes
    )


def _no_probes(error: NescioError) -> NoProbes:
    logger.error("The probes can not be loaded.", exc_info=error)
    return NoProbes(str(error))
