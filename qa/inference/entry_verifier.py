"""The verifier that the settings name, as the pipeline asks it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from django.conf import settings

from probes.verifier import scoring
from qa.pipeline.entry_gate import Passage

_BUNDLED: Final = "bundled"


class EntryVerifier:
    """`qa.pipeline.entry_gate.Verifier`; safe to use from several threads."""

    def __init__(self, verifier: scoring.Verifier) -> None:
        self._verifier = verifier
        self.fingerprint = verifier.fingerprint

    def score(self, question: str, passages: Sequence[Passage]) -> Sequence[float]:
        entries = [
            scoring.EntryText(scoring.place_of(p.title, p.section), p.question, p.text)
            for p in passages
        ]
        return self._verifier.score(question, entries)


def load_verifier() -> EntryVerifier:
    """Return the configured verifier; its files are read once per process."""
    name = settings.VERIFIER
    directory = scoring.BUNDLED if name == _BUNDLED else Path(name)
    return EntryVerifier(scoring.load_verifier(directory))
