"""What reading, scoring and writing give back, and passages that are read again and again.

Questions come back to the same few entries. What a model made of an entry behind its
fixed prefix does not depend on the question, so it is kept, without the prefix, and
several are laid side by side as one batch when a question is asked of them.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import pad
from transformers import DynamicCache, PreTrainedConfig
from transformers.cache_utils import DynamicLayer

from probes.taps import Activations, Tap

Layers = tuple[tuple[torch.Tensor, torch.Tensor], ...]


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


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """Tokens that were read after a prefix.

    Attributes:
        prefix: What was read before.
        ids: The passage's own tokens, at least one.
        next_log_probabilities: As in `Context`, after the passage.
        layers: Keys and values of the passage's own tokens for each layer, each of
            shape (1, heads, len(ids), width).
    """

    prefix: Context
    ids: tuple[int, ...]
    next_log_probabilities: torch.Tensor
    layers: Layers

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def bytes(self) -> int:
        own = sum(tensor.nbytes for layer in self.layers for tensor in layer)
        return own + self.next_log_probabilities.nbytes


class Passages:
    """The passages that were read last, up to a bound of memory."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._kept: OrderedDict[tuple[int, ...], Passage] = OrderedDict()

    def find(self, ids: Sequence[int], after: Context) -> Passage | None:
        """Return the passage if it was read after this very prefix, as the latest."""
        key = (*after.ids, *ids)
        found = self._kept.get(key)
        # The same tokens read as another prefix and passage are cut elsewhere.
        if found is None or len(found) != len(ids):
            return None
        self._kept.move_to_end(key)
        return found

    def keep(self, passage: Passage) -> None:
        """Keep one more; the ones not asked for longest make room."""
        key = (*passage.prefix.ids, *passage.ids)
        replaced = self._kept.pop(key, None)
        self._bytes += passage.bytes - (replaced.bytes if replaced else 0)
        self._kept[key] = passage
        while self._bytes > self._limit:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= dropped.bytes


def cut(context: Context, prefix: Context) -> Passage | None:
    """Return what of `context` lies behind `prefix`, which it was read on from.

    None for a model whose layers keep something else than every token's keys and
    values (a sliding window, a state).
    """
    own = len(context) - len(prefix)
    everything = _layers(context.cache)
    if everything is None:
        return None
    # Copies: views would keep the whole context in memory.
    layers = tuple(
        (keys[:, :, -own:].clone(), values[:, :, -own:].clone())
        for keys, values in everything
    )
    return Passage(prefix, context.ids[-own:], context.next_log_probabilities, layers)


def _layers(cache: DynamicCache) -> Layers | None:
    layers = []
    for layer in cache.layers:
        if (
            type(layer) is not DynamicLayer
            or layer.keys is None
            or layer.values is None
        ):
            return None
        layers.append((layer.keys, layer.values))
    return tuple(layers)


def side_by_side(
    passages: Sequence[Passage], configuration: PreTrainedConfig
) -> tuple[DynamicCache, torch.Tensor]:
    """Lay passages of one prefix out as the rows of one batch.

    Returns:
        The cache, each row padded on the right to the longest passage, and which of its
        positions are real: 1 or 0, shape (rows, len(prefix) + longest).
    """
    prefix, longest = passages[0].prefix, max(map(len, passages))
    cache = DynamicCache(config=configuration)
    for index, layer in enumerate(_layers(prefix.cache) or ()):
        joined = []
        for which, before in enumerate(layer):
            rows = [
                pad(own, (0, 0, 0, longest - own.shape[2]))
                for own in (passage.layers[index][which] for passage in passages)
            ]
            shared = before.expand(len(passages), -1, -1, -1)
            joined.append(torch.cat([shared, torch.cat(rows)], dim=2))
        cache.update(joined[0], joined[1], index)
    lengths = torch.tensor([len(prefix) + len(passage) for passage in passages])
    positions = torch.arange(len(prefix) + longest)
    return cache, (positions[None] < lengths[:, None]).long()


def resume(passage: Context | Passage, configuration: PreTrainedConfig) -> Context:
    """Return a passage behind its prefix as a context to read on from."""
    if isinstance(passage, Context):
        return passage
    cache, _ = side_by_side([passage], configuration)
    ids = (*passage.prefix.ids, *passage.ids)
    return Context(ids, passage.next_log_probabilities, cache)
