"""Examples with labels before a question, and what the model holds of each label there.

Where a label stands is known from how the row was put together and never looked for in it:
a text that looks like an example is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from probes.language_model.network import Network
from probes.language_model.values import Context


@dataclass(frozen=True, slots=True)
class Example:
    """Something asked, and its label.

    Attributes:
        ids: Tokens up to the label, at least one.
        label: Which of the options it is, 0-based.
    """

    ids: tuple[int, ...]
    label: int


def score_labels(
    network: Network,
    examples: Sequence[Example],
    question: Sequence[int],
    options: Sequence[int],
    after: Context,
    *,
    end: Sequence[int] = (),
) -> NDArray[np.float32]:
    """Score as `WhiteBoxModel.score_labels` says; the caller holds the model."""
    row: list[int] = []
    places: list[int] = []
    for example in examples:
        row += example.ids
        places.append(len(row) - 1)
        row += [options[example.label], *end]
    row += question
    places.append(len(row) - 1)
    logits, _ = network.after([row], after, keep=torch.tensor(places))
    scores: NDArray[np.float32] = logits[0, :, list(options)].float().cpu().numpy()
    return scores
