"""An embedder in the model service, known by the same fingerprint as in this process."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from pydantic import TypeAdapter, ValidationError

from accounts.model_service import ModelServiceError, compute, describe, rows_of
from kb.exceptions import EmbedderUnavailableError

EMBED: Final = "/v1/embed"
_BATCH: Final = 64  # texts of one request, so that questions come between them


@dataclass(frozen=True, slots=True)
class Described:
    """What the service says of its embedder."""

    name: str
    fingerprint: str
    dimensions: int


class RemoteEmbedder:
    """The service's embedding model; safe to use from several threads and after a fork."""

    sample: np.ndarray | None = None

    def __init__(self, name: str) -> None:
        """Ask which model the service has.

        Raises:
            EmbedderUnavailableError: It has another one.
        """
        try:
            found = TypeAdapter(Described).validate_python(describe().get("embedder"))
        except ValidationError as error:
            raise ModelServiceError(
                f"The model service is of another version: its embedder {error}"
            ) from error
        if found.name != name:
            raise EmbedderUnavailableError(
                f"The model service embeds with {found.name!r}, and {name!r} is asked "
                "for. Set NESCIO_EMBEDDING_MODEL there to it and start the service again."
            )
        self.name = name
        self.fingerprint = found.fingerprint
        self.dimensions = found.dimensions

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Embed what entries say: float32 of shape (n, dimensions)."""
        made = [
            self._embed(texts[start : start + _BATCH], are_questions=False)
            for start in range(0, len(texts), _BATCH)
        ]
        nothing = np.empty((0, self.dimensions), dtype=np.float32)
        return np.concatenate([nothing, *made])

    def encode_question(self, text: str) -> np.ndarray:
        """Embed a question: (dimensions,)."""
        vector: np.ndarray = self._embed([text], are_questions=True)[0]
        return vector

    def _embed(self, texts: Sequence[str], *, are_questions: bool) -> np.ndarray:
        body = {"texts": list(texts), "are_questions": are_questions}
        return rows_of(compute(EMBED, body), "vectors", (len(texts), self.dimensions))
