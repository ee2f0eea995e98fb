"""What a reranker's files say of it; nothing here needs torch."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from probes.cards import card_text, read_beside
from probes.exceptions import RerankerFileError

WEIGHTS: Final = "model.safetensors"
CARD: Final = "reranker.json"
FORMAT: Final = 1
MIN_TOKENS: Final = 8
MAX_TOKENS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class RerankerCard:
    """What a reranker's files say of it, beside its weights.

    Attributes:
        base: Name of the model that fitting began with.
        language_model: Fingerprint of the model whose preferences it learnt.
        boundary_probe: Fingerprint of the probe that gave them.
        data_sha256: Digest of the preferences that it was fitted on.
        sizes: Counts by name: preferences, held out.
        settings: How it was fitted.
        metrics: What was measured on the held-out preferences, by name: they stopped
            the fit, so a report needs others.
        max_tokens: Of a question and a note together; what is longer is cut.
        weights_sha256: Digest of the weights' file.
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
        """64 hex digits over all that it says, the digest of the weights included."""
        said = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()


def write_card(directory: Path, card: RerankerCard) -> None:
    """Write a card, the last of the files: it names the digest of the weights."""
    (directory / CARD).write_bytes(card_text(asdict(card), FORMAT))


def read_card(directory: Path) -> RerankerCard:
    """Read what a reranker's files say, checked against its weights."""
    return read_beside(
        RerankerCard,
        directory / CARD,
        directory / WEIGHTS,
        version=FORMAT,
        damaged=damaged,
    )


def damaged(directory: Path, why: str) -> RerankerFileError:
    """Return the error that says why a reranker's files cannot be used."""
    return RerankerFileError(
        f"The reranker in {directory} cannot be used: {why}. Put back the files that "
        "train reranker wrote, fit it again, or set NESCIO_RERANKER to nothing."
    )
