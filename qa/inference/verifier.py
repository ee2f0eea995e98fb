"""The verifier that the settings name, and the reranker that blends its scores."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from django.conf import settings

from accounts.loaded_once import LoadedOnce
from kb.embedding.embedder import load_bundled
from probes.models import Probe
from probes.reranker.blend import Blend, Rows, blend_from
from probes.verifier.card import BUNDLED
from probes.verifier.readings import Readings
from probes.verifier.remote import load_remote_verifier
from qa.pipeline.weighing import Passage

if TYPE_CHECKING:
    from probes.verifier import scoring

logger = logging.getLogger(__name__)

VERIFIER: Final = "verifier"  # key in the card's settings: whose scores were used
_remote: Final = LoadedOnce[str, Readings]()


def load_verifier() -> Readings:
    """Return the verifier, in this process or in the model service; created once."""
    if settings.MODEL_SERVICE_URL:
        url = settings.MODEL_SERVICE_URL
        return _remote.get(url, lambda: load_remote_verifier(lambda: _remote.drop(url)))
    return load_local_verifier()


def load_local_verifier() -> "scoring.Verifier":
    """Return the local verifier, loaded once; it shares the embedder's network."""
    from probes.verifier import scoring  # noqa: PLC0415  # imports torch

    return scoring.load_verifier(_directory(), base=lambda: load_bundled().network)


def is_loaded() -> bool:
    if settings.MODEL_SERVICE_URL:
        return _remote.find(settings.MODEL_SERVICE_URL) is not None
    from probes.verifier import scoring  # noqa: PLC0415  # as above

    return scoring.is_loaded(_directory())


def _directory() -> Path:
    name = settings.VERIFIER
    return BUNDLED if name == "bundled" else Path(name)


@dataclass(frozen=True, slots=True, eq=False)
class BlendedReranker:
    """`qa.pipeline.retrieve.Reranker`; texts must be in the order of retrieval."""

    fingerprint: str
    blend: Blend
    verifier: Readings

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        if not texts:
            return []
        found: list[float] = self.blend.scores(
            measured(self.verifier, question, texts)
        ).tolist()
        return found


def measured(verifier: Readings, question: str, texts: Sequence[str]) -> Rows:
    """Return the verifier's logit and cosine of each text's best window: (texts, 2)."""
    windows = verifier.measure(question, [Passage("", "", "", text) for text in texts])
    return np.array([each[each[:, 0].argmax(), :2] for each in windows])


_loaded: Final = LoadedOnce[str, BlendedReranker | None]()


def load_blended(language_model: str, fingerprint: str) -> BlendedReranker | None:
    """Return this reranker from the registry, loaded once; None if it can't be used."""
    version = (fingerprint, settings.VERIFIER)
    return _loaded.get(language_model, lambda: _load(fingerprint), version=version)


def _load(key: str) -> BlendedReranker | None:
    row = Probe.objects.get(fingerprint=key)
    verifier = None if settings.VERIFIER == "none" else load_verifier()
    read_by = row.parsed_card.settings.get(VERIFIER)
    if verifier is None or verifier.fingerprint != read_by:
        logger.error(
            "%s blends the scores of the verifier %s, and %s is configured: the "
            "evidence keeps its order. Train a reranker with this verifier.",
            row, str(read_by)[:12], verifier.fingerprint[:12] if verifier else "none",
        )  # fmt: skip
        return None
    blend = blend_from(row.files, language_model=row.language_model)
    return BlendedReranker(key, blend, verifier)
