"""What reading, scoring and writing give back."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from probes.taps import Activations, Tap


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """Tokens that were read, ready to be read on from.

    Attributes:
        ids: The tokens.
        next_log_probabilities: Natural log of the next token's distribution, float32,
            shape (vocabulary,).
        cache: Keys and values of the tokens; the model's own, never changed.
    """

    ids: tuple[int, ...]
    next_log_probabilities: torch.Tensor
    cache: DynamicCache

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.ids)


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """How likely a continuation of n tokens is; all natural logarithms.

    Attributes:
        log_probabilities: Of each token after those before it, shape (n,).
        stops: Of any stop token after the first i tokens, shape (n + 1,); -inf
            throughout if there are no stop tokens.
    """

    log_probabilities: NDArray[np.float32]
    stops: NDArray[np.float32]

    @property
    def total(self) -> float:
        """Log-probability of the whole continuation."""
        return float(self.log_probabilities.sum(dtype=np.float64))


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """Tokens that the model wrote.

    Attributes:
        ids: Without the token that ended it.
        text: Cut before the stop string, if one ended it.
        log_probabilities: Natural log of each token's probability in [-inf, 0] over
            the whole vocabulary, whatever was allowed.
        entropies: In nats, of the distribution that each token was taken from.
        finished: Whether it ended by itself and not at `max_tokens`.
        context: What was read and written, to go on from.
        activations: For each tap that was asked for, float32 of shape (len(ids),
            width): of every written token, as they were read; no key where nothing was.
        end: The same of the end token, (1, width), where that was asked for and written.
    """

    ids: tuple[int, ...]
    text: str
    log_probabilities: tuple[float, ...]
    entropies: tuple[float, ...]
    finished: bool
    context: Context
    activations: Mapping[Tap, Activations]
    end: Mapping[Tap, Activations]


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """A reading that was watched.

    Attributes:
        context: What was read; None where the watch stopped it.
        states: For each tap that was reached, float32 of shape (width,): what stood
            there at the last position.
    """

    context: Context | None
    states: Mapping[Tap, Activations]


def log_softmax(logits: torch.Tensor) -> torch.Tensor:
    """Return natural-log probabilities in float32, whatever the weights are held in."""
    return torch.log_softmax(logits.float(), dim=-1)
