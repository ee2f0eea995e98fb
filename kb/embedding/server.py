"""Embedding by a server that implements OpenAI's embeddings API.

Such servers are vLLM, Text Embeddings Inference, llama.cpp's, Ollama and OpenAI itself.
A server names its model but has no files to take a fingerprint of, so the model is
identified by its vector of one sample text: a server that embeds it differently has
another model, whose vectors must not be mixed with the stored ones.
"""

import hashlib
import os
from collections.abc import Sequence
from typing import Final

import numpy as np
import openai
from django.conf import settings

from kb.embedding.embedder import ON_SERVER
from kb.embedding.models import EmbeddingModel
from kb.exceptions import EmbedderUnavailableError

_BATCH: Final = 32  # texts per request; every server accepts this many
_SAMPLE: Final = "How do I change the address to which my card is sent?"
# Servers compute in half precision and in batches: the vector of a text varies by less
# than this.
_SAME: Final = 0.999  # cosine
_RETRIES: Final = 2


class ServerEmbedder:
    """A model on the configured server; safe to use from several threads and after a fork."""

    def __init__(self, name: str) -> None:
        """Ask the server for a first vector.

        Args:
            name: `ON_SERVER` followed by the server's name for the model.

        Raises:
            EmbedderUnavailableError: No server is configured, or it returns no vector.
        """
        if not settings.EMBEDDING_SERVER_URL:
            raise EmbedderUnavailableError(
                f"The embedding model {name!r} needs an embedding server: set "
                "NESCIO_EMBEDDING_SERVER_URL."
            )
        self.name = name
        self._model = name.removeprefix(ON_SERVER)
        self._clients: dict[int, openai.OpenAI] = {}  # by process
        # Both are included, so that changing either prompt makes it another model.
        said = self.encode_question(_SAMPLE) + self._entries([_SAMPLE])[0]
        self.sample = np.asarray(said / np.linalg.norm(said))
        self.dimensions = len(self.sample)
        self.fingerprint = self._known_fingerprint() or self._new_fingerprint()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Embed entries: float32 of shape (n, dimensions), every row of unit length."""
        made = [
            self._entries(texts[start : start + _BATCH])
            for start in range(0, len(texts), _BATCH)
        ]
        nothing = np.empty((0, self.dimensions), dtype=np.float32)
        return np.concatenate([nothing, *made])

    def encode_question(self, text: str) -> np.ndarray:
        """Embed a question: (dimensions,), unit length."""
        vector: np.ndarray = self._ask([settings.EMBEDDING_QUESTION_PROMPT + text])[0]
        return vector

    def _entries(self, texts: Sequence[str]) -> np.ndarray:
        return self._ask([settings.EMBEDDING_ENTRY_PROMPT + text for text in texts])

    def _ask(self, texts: Sequence[str]) -> np.ndarray:
        try:
            reply = self._client().embeddings.create(
                model=self._model, input=list(texts), encoding_format="float"
            )
            rows = sorted(reply.data, key=lambda row: row.index)
            vectors = np.array([row.embedding for row in rows], dtype=np.float32)
            norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
        # A malformed reply shows up when it is read.
        except (openai.OpenAIError, AttributeError, TypeError, ValueError) as error:
            raise EmbedderUnavailableError(
                f"The embedding server sent no vectors of {self._model!r}: {error} "
                "Check NESCIO_EMBEDDING_SERVER_URL and NESCIO_EMBEDDING_MODEL."
            ) from error
        is_whole = len(vectors) == len(texts)
        if not is_whole or not np.all(np.isfinite(norms) & (norms > 0)):
            raise EmbedderUnavailableError(
                f"The embedding server sent {len(vectors)} vectors of {self._model!r} "
                f"for {len(texts)} texts, or vectors that are zero or not finite."
            )
        return np.asarray(vectors / norms)

    def _client(self) -> openai.OpenAI:
        """Return this process's client: connections cannot be shared with a fork."""
        own = os.getpid()
        if own not in self._clients:
            self._clients[own] = openai.OpenAI(
                base_url=settings.EMBEDDING_SERVER_URL,
                api_key=settings.EMBEDDING_SERVER_KEY or "none",
                timeout=settings.EMBEDDING_SERVER_TIMEOUT_SECONDS,
                max_retries=_RETRIES,
            )
        return self._clients[own]

    def _known_fingerprint(self) -> str | None:
        """Return the fingerprint of a registered model with this name and sample."""
        rows = EmbeddingModel.objects.filter(name=self.name, sample__isnull=False)
        for row in rows.order_by("-activated_at", "-pk"):
            known = np.asarray(row.sample)
            if known.shape == self.sample.shape and known @ self.sample > _SAME:
                return row.fingerprint
        return None

    def _new_fingerprint(self) -> str:
        return hashlib.sha256(self.name.encode() + self.sample.tobytes()).hexdigest()
