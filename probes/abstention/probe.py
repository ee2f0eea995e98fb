"""Classifiers of activation sequences: right (class 1) or not (class 0)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
)

from probes.taps import Activations, Tap

RIGHT = 1
_CLASSES = 2


class Kind(StrEnum):
    """The paper's LSTM, its linear baseline, or a network with one hidden layer."""

    LSTM = "lstm"
    LINEAR = "linear"
    MLP = "mlp"


class SequenceClassifier(nn.Module):
    """Logits after each position of a sequence, from standardised activations."""

    def __init__(self, width: int, *, opens_with_prompt: bool) -> None:
        super().__init__()
        self.width = width
        self.opens_with_prompt = opens_with_prompt
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(width))

    def standardise(self, rows: torch.Tensor) -> None:
        self.mean = rows.mean(0)
        # A constant dimension carries no information and must not blow up.
        self.deviation = rows.std(0).clamp_min(1e-6)

    def forward(self, sequences: PackedSequence) -> PackedSequence:
        """Return two logits per position, packed like the sequences."""
        scaled = (sequences.data - self.mean) / self.deviation
        return self.along(sequences._replace(data=scaled))

    def along(self, sequences: PackedSequence) -> PackedSequence:
        raise NotImplementedError

    def linear_head(self) -> nn.Linear | None:
        return None

    def linear_features(self, sequences: PackedSequence) -> torch.Tensor:
        """Return a linear head's features at each end, shape (rows, features)."""
        scaled = (sequences.data - self.mean) / self.deviation
        rows, lengths = pad_packed_sequence(
            sequences._replace(data=scaled), batch_first=True
        )
        return self.running(rows)[torch.arange(len(lengths)), lengths - 1]

    def running(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the features of a linear head after each position.

        The mean of the positions so far. If the first position is the prompt's last
        token: that position, and the mean of those after it (0 while there is none), in
        the shape (rows, positions, 2 * width).
        """
        counts = torch.arange(rows.shape[1], device=rows.device)[None, :, None]
        if not self.opens_with_prompt:
            return rows.cumsum(1) / (counts + 1)
        first = rows[:, :1]
        means = (rows.cumsum(1) - first) / counts.clamp(min=1)
        return torch.cat([first.expand_as(means), means], dim=2)


class LstmClassifier(SequenceClassifier):
    """A projection, an LSTM and a linear head on its state (the paper's section 3).

    Beyond the paper: if sequences open with the prompt's last token, the prediction of
    a linear head is added, so that the LSTM only learns the rest. A few thousand
    answers are too few for the LSTM to find it by itself.
    """

    def __init__(
        self,
        width: int,
        *,
        projected: int,
        hidden: int,
        dropout: float,
        opens_with_prompt: bool,
    ) -> None:
        super().__init__(width, opens_with_prompt=opens_with_prompt)
        self.project = nn.Linear(width, projected)
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(projected, hidden, batch_first=True)
        self.head = nn.Linear(hidden, _CLASSES)
        self.linear: nn.Linear | None = None
        if opens_with_prompt:
            self.linear = nn.Linear(2 * width, _CLASSES)
            # The LSTM starts as a zero correction to the linear head.
            nn.init.zeros_(self.head.weight)
            nn.init.zeros_(self.head.bias)

    def linear_head(self) -> nn.Linear | None:
        return self.linear

    def along(self, sequences: PackedSequence) -> PackedSequence:
        projected = self.dropout(self.project(sequences.data))
        states, _ = self.lstm(sequences._replace(data=projected))
        logits = self.head(self.dropout(states.data))
        if self.linear is not None:
            rows, lengths = pad_packed_sequence(sequences, batch_first=True)
            logits = logits + _packed(self.linear(self.running(rows)), lengths).data
        return sequences._replace(data=logits)


class MeanClassifier(SequenceClassifier):
    """A head on the mean of the positions so far: linear, or with one hidden layer."""

    def __init__(
        self, width: int, *, hidden: int | None, dropout: float, opens_with_prompt: bool
    ) -> None:
        super().__init__(width, opens_with_prompt=opens_with_prompt)
        features = 2 * width if opens_with_prompt else width
        self.dropout = nn.Dropout(dropout)
        self.head: nn.Module = nn.Linear(features, _CLASSES)
        if hidden is not None:
            self.head = nn.Sequential(
                nn.Linear(features, hidden),
                nn.Tanh(),
                nn.Dropout(dropout),
                nn.Linear(hidden, _CLASSES),
            )

    def linear_head(self) -> nn.Linear | None:
        return self.head if isinstance(self.head, nn.Linear) else None

    def along(self, sequences: PackedSequence) -> PackedSequence:
        rows, lengths = pad_packed_sequence(sequences, batch_first=True)
        return _packed(self.head(self.dropout(self.running(rows))), lengths)


def _packed(rows: torch.Tensor, lengths: torch.Tensor) -> PackedSequence:
    return pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=False)


def last_of_each(packed: PackedSequence) -> torch.Tensor:
    """Return each sequence's last row, shape (rows, ...), in the given order."""
    rows, lengths = pad_packed_sequence(packed, batch_first=True)
    return rows[torch.arange(len(lengths)), lengths - 1]


_ROWS_AT_ONCE: Final = 256


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """One answer's activations and whether it was right.

    Attributes:
        activations: Those of its tokens, shape (positions, width), preceded by the
            prompt's last token if the fit opens with it, and followed by the end token
            if it closes with it.
    """

    activations: Activations
    is_right: bool


@dataclass(frozen=True, slots=True, eq=False)
class AbstentionProbe:
    """Confidence in [0, 1] that an answer is right.

    Attributes:
        language_model: Fingerprint of the model whose activations it was fitted on; it
            never serves another.
        temperature: Divides the logits, fitted on held-out answers.
    """

    kind: Kind
    language_model: str
    tap: Tap
    temperature: float
    network: SequenceClassifier
    closes_with_end: bool = False

    @property
    def width(self) -> int:
        return self.network.width

    @property
    def opens_with_prompt(self) -> bool:
        return self.network.opens_with_prompt

    def confidences(self, answers: Sequence[Activations]) -> NDArray[np.float64]:
        """Return each answer's confidence after its last position, shape (answers,)."""
        return np.array([along[-1] for along in self.along(answers)])

    def along(self, answers: Sequence[Activations]) -> Iterator[NDArray[np.float64]]:
        """Yield for each answer the confidence after each of its positions."""
        for first in range(0, len(answers), _ROWS_AT_ONCE):
            packed = pack(answers[first : first + _ROWS_AT_ONCE], self.width)
            with torch.inference_mode():
                logits = self.network(packed)
            rows, lengths = pad_packed_sequence(logits, batch_first=True)
            shares = (rows / self.temperature).softmax(-1)[..., RIGHT].double().numpy()
            for row, length in zip(shares, lengths.tolist(), strict=True):
                yield row[:length]


def pack(answers: Sequence[Activations], width: int) -> PackedSequence:
    """Pack answers of any length.

    Raises:
        ValueError: An answer has no positions or another width.
    """
    for answer in answers:
        if answer.ndim != 2 or answer.shape[0] == 0 or answer.shape[1] != width:
            raise ValueError(
                f"activations of shape {answer.shape}, not (positions, {width})"
            )
    rows = [torch.from_numpy(np.ascontiguousarray(a, np.float32)) for a in answers]
    return pack_sequence(rows, enforce_sorted=False)
