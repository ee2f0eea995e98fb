"""A verifier in the model service: its readings are computed there, its card counts here."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from accounts.model_service import ModelServiceError, compute, describe, rows_of

from .card import VerifierCard
from .readings import EntryText, Readings

APART: Final = "/v1/verifier/apart"
JOINTLY: Final = "/v1/verifier/jointly"
TOGETHER: Final = "/v1/verifier/together"
WORDS: Final = "/v1/verifier/words"
_KEPT_WORDS: Final = 50_000
READING: Final = 3  # numbers of a window


class RemoteVerifier(Readings):
    """What the service's verifier reads; safe to use from several threads."""

    def __init__(self, card: VerifierCard) -> None:
        super().__init__(card)
        self._knows = lru_cache(maxsize=_KEPT_WORDS)(_knows)

    @property
    def reads_jointly(self) -> bool:
        return bool(self.card.encoder_sha256)

    def is_word(self, word: str) -> bool:
        return self._knows(word)

    def measure(
        self, question: str, entries: Sequence[EntryText]
    ) -> list[NDArray[np.float64]]:
        if not entries:
            return []
        found = compute(APART, _body(question, entries))
        counts = rows_of(found, "windows", (len(entries),))
        rows = rows_of(found, "readings", (int(counts.sum()), READING))
        return np.split(rows, np.cumsum(counts)[:-1])

    def measure_jointly(
        self, question: str, entries: Sequence[EntryText]
    ) -> NDArray[np.float64]:
        if not (entries and self.reads_jointly):
            return np.empty((0, READING))
        found = compute(JOINTLY, _body(question, entries))
        return rows_of(found, "readings", (len(entries), READING))

    def read_together(self, texts: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        if not (texts and self.reads_jointly):
            return np.empty((0, 0))
        found = compute(TOGETHER, {"texts": [list(pair) for pair in texts]})
        return rows_of(found, "states", (len(texts), -1))


def load_remote_verifier() -> RemoteVerifier:
    """Return the verifier that the service has.

    Raises:
        ModelServiceError: It has none, or cannot be used.
    """
    described = describe().get("verifier")
    if described is None:
        raise ModelServiceError(
            "The model service has no verifier: NESCIO_VERIFIER is none there. Set it to "
            "none here too, or to bundled there."
        )
    try:
        return RemoteVerifier(TypeAdapter(VerifierCard).validate_python(described))
    except ValidationError as error:
        raise ModelServiceError(
            f"The model service is of another version: its verifier's card {error}"
        ) from error


def _knows(word: str) -> bool:
    found = compute(WORDS, {"words": [word]})
    return bool(rows_of(found, "known", (1,))[0])


def _body(question: str, entries: Sequence[EntryText]) -> Mapping[str, object]:
    parts = [[e.title, e.section, e.question, e.text] for e in entries]
    return {"question": question, "entries": parts}
