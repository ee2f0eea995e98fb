"""Classifiers of a sequence of activations: right (class 1) or not (class 0)."""

from enum import StrEnum

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

RIGHT = 1
_CLASSES = 2


class Kind(StrEnum):
    """What network a probe is.

    The paper's LSTM, the linear baseline that it has to beat, or one hidden layer.
    """

    LSTM = "lstm"
    LINEAR = "linear"
    MLP = "mlp"


class SequenceClassifier(nn.Module):
    """Logits after each position of a sequence, from that position and those before it.

    Activations are standardised by the training data's mean and deviation, which are
    part of the weights.
    """

    def __init__(self, width: int, *, opens_with_prompt: bool) -> None:
        """Take activations of `width` numbers a position.

        Args:
            width: How many numbers.
            opens_with_prompt: Whether the first position is the prompt's last token.
        """
        super().__init__()
        self.width = width
        self.opens_with_prompt = opens_with_prompt
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(width))

    def standardise(self, rows: torch.Tensor) -> None:
        """Set the mean and deviation from all positions of the training data."""
        self.mean = rows.mean(0)
        # A dimension that never moves tells nothing and must not blow up.
        self.deviation = rows.std(0).clamp_min(1e-6)

    def forward(self, sequences: PackedSequence) -> PackedSequence:
        """Return logits, two a position, packed as the sequences are."""
        scaled = (sequences.data - self.mean) / self.deviation
        return self.along(sequences._replace(data=scaled))

    def along(self, sequences: PackedSequence) -> PackedSequence:
        """Return the logits of standardised sequences."""
        raise NotImplementedError

    def linear_head(self) -> nn.Linear | None:
        """Return the layer from `linear_features` to logits, if it has one."""
        return None

    def linear_features(self, sequences: PackedSequence) -> torch.Tensor:
        """Return what a linear head sees after each sequence's last position.

        Shape (rows, features).
        """
        scaled = (sequences.data - self.mean) / self.deviation
        rows, lengths = pad_packed_sequence(
            sequences._replace(data=scaled), batch_first=True
        )
        return self.running(rows)[torch.arange(len(lengths)), lengths - 1]

    def running(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the features of a linear head after each position.

        The mean of the positions so far. Where the first position is the prompt's last
        token, that one by itself, and the mean of those after it (0 before there is
        one): shape (rows, positions, 2 * width).
        """
        counts = torch.arange(rows.shape[1], device=rows.device)[None, :, None]
        if not self.opens_with_prompt:
            return rows.cumsum(1) / (counts + 1)
        first = rows[:, :1]
        means = (rows.cumsum(1) - first) / counts.clamp(min=1)
        return torch.cat([first.expand_as(means), means], dim=2)


class LstmClassifier(SequenceClassifier):
    """A projection, an LSTM and a linear head on its state (the paper's section 3).

    Beyond the paper: where sequences open with the prompt's last token, what a linear
    head tells is added, so that the LSTM learns what that can't tell. A few thousand
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
        """Make random weights from torch's current seed."""
        super().__init__(width, opens_with_prompt=opens_with_prompt)
        self.project = nn.Linear(width, projected)
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(projected, hidden, batch_first=True)
        self.head = nn.Linear(hidden, _CLASSES)
        self.linear: nn.Linear | None = None
        if opens_with_prompt:
            self.linear = nn.Linear(2 * width, _CLASSES)
            # It begins where the linear head ends.
            nn.init.zeros_(self.head.weight)
            nn.init.zeros_(self.head.bias)

    def linear_head(self) -> nn.Linear | None:
        """Return what is added to the LSTM's head."""
        return self.linear

    def along(self, sequences: PackedSequence) -> PackedSequence:
        """Return the head on the LSTM's running state."""
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
        self,
        width: int,
        *,
        hidden: int | None,
        dropout: float,
        opens_with_prompt: bool,
    ) -> None:
        """Make random weights from torch's current seed; `hidden` None is linear."""
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
        """Return the head, unless it has a hidden layer."""
        return self.head if isinstance(self.head, nn.Linear) else None

    def along(self, sequences: PackedSequence) -> PackedSequence:
        """Return the head on the running mean."""
        rows, lengths = pad_packed_sequence(sequences, batch_first=True)
        return _packed(self.head(self.dropout(self.running(rows))), lengths)


def _packed(rows: torch.Tensor, lengths: torch.Tensor) -> PackedSequence:
    return pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=False)


def last_of_each(packed: PackedSequence) -> torch.Tensor:
    """Return each sequence's last row, shape (rows, ...), in the given order."""
    rows, lengths = pad_packed_sequence(packed, batch_first=True)
    return rows[torch.arange(len(lengths)), lengths - 1]
