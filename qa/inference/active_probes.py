"""Which probes are asked of a language model's answers, loaded once per process.

The registry is looked at for every answer, in one small query: what is promoted or
retired holds from the next answer on, in every process.
"""

import logging
import threading
import time
from dataclasses import dataclass
from typing import Final

from accounts.exceptions import NescioError
from probes.models import Probe
from qa.pipeline.language_model import LanguageModel, NoProbes, Probes

logger = logging.getLogger(__name__)

Stamp = tuple[tuple[str, str], ...]
_RETRY_SECONDS: Final = 60.0
_NONE: Final = NoProbes("No probe is in use.")


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What was loaded for one language model.

    Attributes:
        stamp: What the registry held then.
        until: When to try again, on the monotonic clock.
    """

    stamp: Stamp
    probes: Probes
    until: float


_loaded: Final[dict[str, _Loaded]] = {}
_lock: Final = threading.Lock()


def probes_in_force(language_model: LanguageModel) -> Probes:
    """Return the probes that are asked of this model's answers (one query).

    A probe that can't be used is logged and left out; whoever reads the others is told
    why. Where a server answers, the model that reads its answers is loaded with the first
    probe that needs it.
    """
    serving = Probe.objects.serving().order_by("pk")
    stamp: Stamp = tuple(serving.values_list("fingerprint", "state"))
    if not stamp:
        return _NONE
    key = language_model.fingerprint
    found = _loaded.get(key)
    if found is None or _is_over(found, stamp):
        with _lock:
            found = _loaded.get(key)
            if found is None or _is_over(found, stamp):
                found = _loaded[key] = _load(language_model, stamp)
    return found.probes


def _is_over(found: _Loaded, stamp: Stamp) -> bool:
    return found.stamp != stamp or time.monotonic() >= found.until


def _load(language_model: LanguageModel, stamp: Stamp) -> _Loaded:
    # Pulls in torch, which a process without probes never pays for.
    from qa.inference.probe_loading import load_probes  # noqa: PLC0415

    try:
        probes = load_probes(language_model, dict(stamp))
    except NescioError as error:
        logger.exception("The probes can not be loaded.")
        return _Loaded(stamp, NoProbes(str(error)), time.monotonic() + _RETRY_SECONDS)
    return _Loaded(stamp, probes, float("inf"))


# Probes at work: those of the registry, asked of every answer.


__all__ = ["probes_in_force"]
