"""A verifier in the model service: readings are computed there and judged here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError
from tokenizers import Tokenizer

from accounts.model_service import (
    ModelChangedError,
    ModelServiceError,
    compute,
    describe,
    rows_of,
)

from .card import VerifierCard, base_directory
from .readings import EntryText, Readings

APART: Final = "/v1/verifier/apart"
JOINTLY: Final = "/v1/verifier/jointly"
TOGETHER: Final = "/v1/verifier/together"
LIKENESS: Final = "/v1/verifier/likeness"
READING: Final = 3  # numbers per window
MAX_ENTRIES, MAX_PAIRS = 256, 64  # per request

Item = TypeVar("Item")


class RemoteVerifier(Readings):
    """Readings from the service's verifier; thread-safe."""

    def __init__(
        self, card: VerifierCard, on_changed: Callable[[], None] = lambda: None
    ) -> None:
        """Call `on_changed` if the service turns out to have another verifier."""
        super().__init__(card)
        self._on_changed = on_changed
        # Every process has the embedder's tokenizer; only its weights are elsewhere.
        self._words = Tokenizer.from_file(str(base_directory() / "tokenizer.json"))
        self._words.no_padding()

    @property
    def reads_jointly(self) -> bool:
        return bool(self.card.encoder_sha256)

    def is_word(self, word: str) -> bool:
        return len(self._words.encode(word, add_special_tokens=False).tokens) == 1

    def measure(
        self, question: str, entries: Sequence[EntryText]
    ) -> list[NDArray[np.float64]]:
        read: list[NDArray[np.float64]] = []
        for some in _chunks(entries, MAX_ENTRIES):
            found = self._compute(APART, _body(question, some))
            counts = rows_of(found, "windows", (len(some),))
            rows = rows_of(found, "readings", (int(counts.sum()), READING))
            read += np.split(rows, np.cumsum(counts)[:-1])
        return read

    def measure_jointly(
        self, question: str, entries: Sequence[EntryText]
    ) -> NDArray[np.float64]:
        read = [np.empty((0, READING))]
        for some in _chunks(entries if self.reads_jointly else [], MAX_ENTRIES):
            found = self._compute(JOINTLY, _body(question, some))
            read.append(rows_of(found, "readings", (len(some), READING)))
        return np.concatenate(read)

    def likeness(
        self, question: str, entries: Sequence[EntryText]
    ) -> NDArray[np.float64]:
        read = [np.empty(0)]
        for some in _chunks(entries, MAX_ENTRIES):
            found = self._compute(LIKENESS, _body(question, some))
            read.append(rows_of(found, "likeness", (len(some),)))
        return np.concatenate(read)

    def read_together(self, texts: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        read: list[NDArray[np.float64]] = []
        for some in _chunks(texts if self.reads_jointly else [], MAX_PAIRS):
            body = {"texts": [list(pair) for pair in some]}
            found = self._compute(TOGETHER, body)
            read.append(rows_of(found, "states", (len(some), -1)))
        return np.concatenate(read) if read else np.empty((0, 0))

    def _compute(
        self, path: str, body: Mapping[str, object]
    ) -> Mapping[str, NDArray[np.float64]]:
        try:
            return compute(path, body, model=self.fingerprint)
        except ModelChangedError:
            self._on_changed()
            raise


def load_remote_verifier(
    on_changed: Callable[[], None] = lambda: None,
) -> RemoteVerifier:
    """Return the service's verifier; `on_changed` is as for `RemoteVerifier`.

    Raises:
        ModelServiceError: It has none, or cannot be used.
    """
    described = describe().get("verifier")
    if described is None:
        raise ModelServiceError(
            "it has no verifier; set NESCIO_VERIFIER to none here too, or to bundled "
            "there"
        )
    try:
        card = TypeAdapter(VerifierCard).validate_python(described)
    except ValidationError as error:
        raise ModelServiceError(
            f"its verifier's card is of another version: {error}"
        ) from error
    return RemoteVerifier(card, on_changed)


def _chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _body(question: str, entries: Sequence[EntryText]) -> Mapping[str, object]:
    parts = [[e.title, e.section, e.question, e.text] for e in entries]
    return {"question": question, "entries": parts}
