"""A reranker in use: its card, and many texts scored against a question at once."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import torch
from pydantic import Field
from sentence_transformers import CrossEncoder

from accounts.loaded_once import LoadedOnce
from probes.cards import card_text, fingerprint_of, read_beside
from probes.exceptions import ModelLoadError, RerankerFileError
from probes.language_model.loading import choose_device

WEIGHTS: Final = "model.safetensors"
CARD: Final = "reranker.json"
FORMAT: Final = 1
MIN_TOKENS: Final = 8
MAX_TOKENS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class RerankerCard:
    """The metadata of a reranker, kept beside its weights.

    Attributes:
        boundary_probe: Fingerprint of the probe that the preferences come from.
        metrics: Measured on the held-out preferences, by name; these stopped the fit,
            so a report needs others.
    """

    base: str
    language_model: str
    boundary_probe: str
    data_sha256: str
    sizes: Mapping[str, int]
    settings: Mapping[str, Any]
    metrics: Mapping[str, float]
    max_tokens: Annotated[int, Field(ge=MIN_TOKENS, le=MAX_TOKENS)]
    weights_sha256: str = ""

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self)


def write_card(directory: Path, card: RerankerCard) -> None:
    (directory / CARD).write_bytes(card_text(asdict(card), FORMAT))


def read_card(directory: Path) -> RerankerCard:
    return read_beside(
        RerankerCard,
        directory / CARD,
        directory / WEIGHTS,
        version=FORMAT,
        damaged=damaged,
    )


def damaged(directory: Path, why: str) -> RerankerFileError:
    return RerankerFileError(
        f"The reranker in {directory} cannot be used: {why}. Put back the files that "
        "train reranker wrote, fit it again, or unset NESCIO_RERANKER."
    )


# A cross-encoder in use: texts scored against a question, many at once.


_BATCH: Final = 32


class CrossEncoderReranker:
    """`qa.pipeline.retrieve.Reranker`; safe to use from several threads."""

    def __init__(self, encoder: CrossEncoder, card: RerankerCard) -> None:
        self._encoder, self.card = encoder, card
        self.fingerprint = card.fingerprint
        # Two threads must not change the tokenizer's padding state at once.
        self._lock = threading.Lock()

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one logit per text, of which only the order is meaningful."""
        with self._lock:
            return scores_of(self._encoder, [(question, text) for text in texts])


_loaded: Final = LoadedOnce[Path, CrossEncoderReranker]()


def load_reranker(directory: Path, *, device: str = "cpu") -> CrossEncoderReranker:
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

    An output that the model lacks gets random weights, by torch's current seed. Pickled
    weights and a model's own code are refused.
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
