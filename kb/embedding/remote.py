"""An embedder in the model service, with the same fingerprint as in this process."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from pydantic import TypeAdapter, ValidationError

from accounts.model_service import ModelServiceError, compute, describe, rows_of
from kb.exceptions import EmbedderUnavailableError

EMBED: Final = "/v1/embed"
MAX_TEXTS: Final = 32  # per request, so that questions are embedded in between


@dataclass(frozen=True, slots=True)
class Described:
    """The service's description of its embedder."""

    name: str
    fingerprint: str
    dimensions: int


class RemoteEmbedder:
    """The service's embedding model; safe to use from several threads and after a fork."""

    sample: np.ndarray | None = None

    def __init__(self, described: Described) -> None:
        self.name = described.name
        self.fingerprint = described.fingerprint
        self.dimensions = described.dimensions

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Embed entries: float32 of shape (n, dimensions)."""
        made = [
            self._embed(texts[start : start + MAX_TEXTS], are_questions=False)
            for start in range(0, len(texts), MAX_TEXTS)
        ]
        nothing = np.empty((0, self.dimensions), dtype=np.float32)
        return np.concatenate([nothing, *made])

    def encode_question(self, text: str) -> np.ndarray:
        """Embed a question: (dimensions,)."""
        vector: np.ndarray = self._embed([text], are_questions=True)[0]
        return vector

    def _embed(self, texts: Sequence[str], *, are_questions: bool) -> np.ndarray:
        body = {"texts": list(texts), "are_questions": are_questions}
        try:
            found = compute(EMBED, body, model=self.fingerprint)
            return rows_of(found, "vectors", (len(texts), self.dimensions))
        except ModelServiceError as error:
            raise EmbedderUnavailableError(str(error)) from error


def find_remote(name: str) -> RemoteEmbedder | None:
    """Return the embedder called `name`, or None if the service has another one.

    Raises:
        EmbedderUnavailableError: The service cannot be used.
    """
    try:
        found = TypeAdapter(Described).validate_python(describe().get("embedder"))
    except ValidationError as error:
        raise EmbedderUnavailableError(
            f"The model service has another version; use the same one as here: {error}"
        ) from error
    except ModelServiceError as error:
        raise EmbedderUnavailableError(str(error)) from error
    return RemoteEmbedder(found) if found.name == name else None
