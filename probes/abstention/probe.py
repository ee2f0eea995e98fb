"""A fitted probe: from an answer's activations to the confidence that it is right."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence

from probes.abstention.networks import RIGHT, Kind, SequenceClassifier
from probes.language_model.taps import Activations, Tap

_ROWS_AT_ONCE: Final = 256


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """One answer's activations and whether it was right.

    Attributes:
        activations: Of its tokens, shape (positions, width); before them the prompt's
            last token if the fit opens with that, behind them the end token if it
            closes with that.
        is_right: What somebody who knows said of it.
    """

    activations: Activations
    is_right: bool


@dataclass(frozen=True, slots=True, eq=False)
class AbstentionProbe:
    """Confidence in [0, 1] that an answer is right.

    Attributes:
        kind: What network it is.
        language_model: Fingerprint of the model whose activations it was fitted on; it
            never serves another.
        tap: Where in that model they were read.
        temperature: Divides the logits, fitted on held-out answers.
        network: The fitted weights.
        closes_with_end: Whether the last position that it reads is the end token.
    """

    kind: Kind
    language_model: str
    tap: Tap
    temperature: float
    network: SequenceClassifier
    closes_with_end: bool = False

    @property
    def width(self) -> int:
        """Numbers a position."""
        return self.network.width

    @property
    def opens_with_prompt(self) -> bool:
        """Whether the first position that it reads is the prompt's last token."""
        return self.network.opens_with_prompt

    def confidences(self, answers: Sequence[Activations]) -> NDArray[np.float64]:
        """Return each answer's confidence after its last position, shape (answers,).

        Raises:
            ValueError: An answer has no position, or activations of another width.
        """
        return np.array([along[-1] for along in self.along(answers)])

    def along(self, answers: Sequence[Activations]) -> Iterator[NDArray[np.float64]]:
        """Yield for each answer the confidence after each of its positions.

        The last number is the answer's; those before it are what the probe thought on
        the way, from the LSTM's running state.
        """
        for first in range(0, len(answers), _ROWS_AT_ONCE):
            packed = pack(answers[first : first + _ROWS_AT_ONCE], self.width)
            with torch.inference_mode():
                logits = self.network(packed)
            rows, lengths = pad_packed_sequence(logits, batch_first=True)
            shares = (rows / self.temperature).softmax(-1)[..., RIGHT].double().numpy()
            for row, length in zip(shares, lengths.tolist(), strict=True):
                yield row[:length]


def pack(answers: Sequence[Activations], width: int) -> PackedSequence:
    """Pack answers of any lengths, checked.

    Raises:
        ValueError: An answer has no position, or activations of another width.
    """
    for answer in answers:
        if answer.ndim != 2 or answer.shape[0] == 0 or answer.shape[1] != width:
            msg = f"activations of shape {answer.shape}, not (positions, {width})"
            raise ValueError(msg)
    rows = [torch.from_numpy(np.ascontiguousarray(a, np.float32)) for a in answers]
    return pack_sequence(rows, enforce_sorted=False)
