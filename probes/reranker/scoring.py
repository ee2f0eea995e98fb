"""A cross-encoder in use: texts scored against a question, many at once."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
from sentence_transformers import CrossEncoder

from accounts.loaded_once import LoadedOnce
from probes.exceptions import ModelLoadError
from probes.language_model.loading import choose_device

from .card import RerankerCard, damaged, read_card

_BATCH: Final = 32


class CrossEncoderReranker:
    """`qa.pipeline.retrieve.Reranker`; safe to use from several threads.

    Attributes:
        fingerprint: 64 hex digits over card and weights.
        card: What its files say.
    """

    def __init__(self, encoder: CrossEncoder, card: RerankerCard) -> None:
        self._encoder, self.card = encoder, card
        self.fingerprint = card.fingerprint
        # The tokenizer's padding state may not be changed by two threads at once.
        self._lock = threading.Lock()

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return how much each text helps with the question, higher is more.

        Logits: only their order means anything.
        """
        with self._lock:
            return scores_of(self._encoder, [(question, text) for text in texts])


_loaded: Final = LoadedOnce[Path, CrossEncoderReranker]()


def load_reranker(directory: Path, *, device: str = "cpu") -> CrossEncoderReranker:
    """Return the reranker whose files lie in `directory`, loaded once per process.

    Args:
        device: As `NESCIO_MODEL_DEVICE`.
    """

    def load() -> CrossEncoderReranker:
        card = read_card(directory)
        try:
            encoder = open_encoder(
                str(directory), max_tokens=card.max_tokens, device=device
            )
        except ModelLoadError as error:
            raise damaged(directory, str(error)) from error
        return CrossEncoderReranker(encoder, card)

    return _loaded.get(directory, load)


def open_encoder(name: str, *, max_tokens: int, device: str = "cpu") -> CrossEncoder:
    """Return a cross-encoder with one output, or make one of an embedding model.

    Of a model that has no such output its weights are random, by torch's current seed.

    Args:
        name: A directory, or a name that sentence-transformers knows.
        max_tokens: Of question and text together; what is longer is cut.
        device: As `NESCIO_MODEL_DEVICE`.

    Raises:
        ModelLoadError: It is not there, or offers only what is refused: pickled
            weights, its own code.
    """
    try:
        encoder: CrossEncoder = CrossEncoder(
            name,
            num_labels=1,
            max_length=max_tokens,
            device=str(choose_device(device)),
            local_files_only=Path(name).is_dir(),
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True, "dtype": "float32"},
        )
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise ModelLoadError(
            f"The cross-encoder {name!r} could not be loaded: {error} It takes a "
            "directory or a name that sentence-transformers can fetch, with safetensors "
            "weights."
        ) from error
    return encoder


def scores_of(encoder: CrossEncoder, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Return the logit of each pair, in their order."""
    if not pairs:
        return []
    found: np.ndarray = encoder.predict(
        list(pairs),
        batch_size=_BATCH,
        show_progress_bar=False,
        activation_fn=torch.nn.Identity(),
        convert_to_numpy=True,
    )
    scores: list[float] = found.reshape(-1).astype(float).tolist()
    return scores
