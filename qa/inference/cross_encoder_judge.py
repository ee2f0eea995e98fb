"""A judge of pairs: the verifier's cross-encoder on two statements read jointly.

A linear head on its states, fitted on labelled pairs (`evaluate_conflicts --fit-head`),
says which of the three kinds they are. The encoder itself stays as it was fitted, to
judge whether an entry answers a question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from scipy.special import softmax

import probes
from accounts.ids import digest
from kb.conflicts.values import Kind, Opinion, Statement, Unsure
from kb.text.words import tokens
from probes.exceptions import VerifierFileError
from probes.verifier.readings import Readings

from .judges import line_of

HEAD: Final = (
    Path(probes.__file__).parent / "shipped" / "conflicts" / "head.safetensors"
)
_KINDS: Final = tuple(Kind)  # in the order of the head's rows
_SAME: Final = [float(kind is Kind.DUPLICATE) for kind in _KINDS]
_PAIRS_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """A linear head; logits of the kinds are `weight @ states + bias`.

    Attributes:
        weight: (3, 3 * width of the encoder), `bias` (3,).
        cross_encoder: Fingerprint of the cross-encoder whose states it reads.
    """

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]
    cross_encoder: str


def save_head(head: Head, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # safetensors writes the memory as it is, whatever its order.
    tensors = {
        "weight": np.ascontiguousarray(head.weight),
        "bias": np.ascontiguousarray(head.bias),
    }
    save_file(tensors, path, metadata={"cross_encoder": head.cross_encoder})


def load_head(path: Path = HEAD) -> Head:
    """Load a head from its file.

    Raises:
        VerifierFileError: The file is missing or damaged.
    """
    try:
        with safe_open(path, framework="numpy") as read:
            metadata: Mapping[str, str] = read.metadata() or {}
            return Head(
                read.get_tensor("weight"),
                read.get_tensor("bias"),
                metadata["cross_encoder"],
            )
    except (OSError, KeyError, SafetensorError) as error:
        raise VerifierFileError(
            f"The head for conflicts in {path} cannot be read: {error}. Put it back, or "
            "set NESCIO_CONFLICT_JUDGE to none."
        ) from error


class CrossEncoderJudge:
    """`kb.conflicts.Judge` on the verifier's cross-encoder."""

    name = "the verifier's cross-encoder"
    # It may overrule even what the signals are sure of.
    asked_about = Unsure(least=0.05, most=1.0)

    def __init__(self, verifier: Readings, head: Head) -> None:
        """Raise VerifierFileError if the head was fitted for another cross-encoder."""
        in_use = verifier.card.cross_fingerprint
        if head.cross_encoder != in_use:
            raise VerifierFileError(
                "The head for conflicts was fitted for the cross-encoder "
                f"{head.cross_encoder[:12]}, and {in_use[:12]} is in use. Fit it again (manage.py evaluate_conflicts --fit-head), or set "
                "NESCIO_CONFLICT_JUDGE to none."
            )
        self._verifier, self._head = verifier, head
        self.fingerprint = digest(head.cross_encoder, head.weight.tobytes().hex())

    def weigh(self, pairs: Sequence[tuple[Statement, Statement]]) -> list[Opinion]:
        # The head was not fitted on pairs with identical words, which are duplicates.
        apart = [
            at for at, pair in enumerate(pairs) if _words(pair[0]) != _words(pair[1])
        ]
        shares = np.tile(_SAME, (len(pairs), 1))
        for at in range(0, len(apart), _PAIRS_AT_ONCE):
            places = apart[at : at + _PAIRS_AT_ONCE]
            states = states_of(self._verifier, [pairs[place] for place in places])
            logits = states @ self._head.weight.T + self._head.bias
            shares[places] = softmax(logits, axis=1)
        return [self._opinion(each) for each in shares.tolist()]

    def _opinion(self, shares: Sequence[float]) -> Opinion:
        said = {k.value: share for k, share in zip(_KINDS, shares, strict=True)}
        return Opinion(**said, name=self.name, fingerprint=self.fingerprint)


def _words(statement: Statement) -> list[str]:
    return [said for said, _ in tokens(line_of(statement))]


def states_of(
    verifier: Readings, pairs: Sequence[tuple[Statement, Statement]]
) -> NDArray[np.float64]:
    """Return the states of each pair that a head reads: (pairs, 3 * width)."""
    return verifier.read_together(
        [(line_of(one), line_of(other)) for one, other in pairs]
    )
