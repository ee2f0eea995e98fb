"""The verifier that the settings name."""

from pathlib import Path

from django.conf import settings

from kb.embedding.embedder import load_embedder
from probes.verifier import scoring


def load_verifier() -> scoring.Verifier:
    """Return it, loaded once per process; it reads by the bundled embedder."""
    return scoring.load_verifier(
        _directory(), base=lambda: load_embedder("bundled").network
    )


def is_loaded() -> bool:
    return scoring.is_loaded(_directory())


def _directory() -> Path:
    name = settings.VERIFIER
    return scoring.BUNDLED if name == "bundled" else Path(name)
