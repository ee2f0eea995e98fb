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

    def __init__(self, width: int) -> None:
        """Take activations of `width` numbers a position."""
        super().__init__()
        self.width = width
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

    def squared_weights(self) -> torch.Tensor:
        """Return the sum of those squared weights that a penalty holds down."""
        return torch.zeros(())


class LstmClassifier(SequenceClassifier):
    """A projection, an LSTM and a linear head on its state (the paper's section 3)."""

    def __init__(
        self, width: int, *, projected: int, hidden: int, dropout: float
    ) -> None:
        """Make random weights from torch's current seed."""
        super().__init__(width)
        self.project = nn.Linear(width, projected)
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(projected, hidden, batch_first=True)
        self.head = nn.Linear(hidden, _CLASSES)

    def along(self, sequences: PackedSequence) -> PackedSequence:
        """Return the head on the LSTM's running state."""
        projected = self.dropout(self.project(sequences.data))
        states, _ = self.lstm(sequences._replace(data=projected))
        return sequences._replace(data=self.head(self.dropout(states.data)))


class MeanClassifier(SequenceClassifier):
    """A head on the mean of the positions so far: linear, or with one hidden layer."""

    def __init__(self, width: int, *, hidden: int | None, dropout: float) -> None:
        """Make random weights from torch's current seed; `hidden` None is linear."""
        super().__init__(width)
        self.dropout = nn.Dropout(dropout)
        self.head: nn.Module = nn.Linear(width, _CLASSES)
        if hidden is not None:
            self.head = nn.Sequential(
                nn.Linear(width, hidden),
                nn.Tanh(),
                nn.Dropout(dropout),
                nn.Linear(hidden, _CLASSES),
            )

    def squared_weights(self) -> torch.Tensor:
        """Return those of a linear head; a hidden layer has its dropout."""
        if isinstance(self.head, nn.Linear):
            return self.head.weight.square().sum()
        return super().squared_weights()

    def along(self, sequences: PackedSequence) -> PackedSequence:
        """Return the head on the running mean."""
        rows, lengths = pad_packed_sequence(sequences, batch_first=True)
        counts = torch.arange(1, rows.shape[1] + 1, device=rows.device)
        means = rows.cumsum(1) / counts[None, :, None]
        logits = self.head(self.dropout(means))
        return pack_padded_sequence(
            logits, lengths, batch_first=True, enforce_sorted=False
        )


def last_of_each(packed: PackedSequence) -> torch.Tensor:
    """Return each sequence's last row, shape (rows, ...), in the given order."""
    rows, lengths = pad_packed_sequence(packed, batch_first=True)
    return rows[torch.arange(len(lengths)), lengths - 1]
