"""Results of reading, scoring and writing, and a cache of passages.

What a model makes of an entry after its fixed prefix does not depend on the question,
so it is kept, without the prefix; several are laid side by side as one batch.
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
    """Tokens that were read, to be read on from; its cache is never changed.

    `next_log_probabilities` are natural logs, float32, shape (vocabulary,).
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
        text: Cut before the stop string, if one ended it.
        log_probabilities: Natural logs over the whole vocabulary, whatever was allowed.
        entropies: In nats, of the distribution that each token was taken from.
        activations: At each tap float32 (len(ids), width); no key if there are none.
        end: The same of the end token, (1, width), if it was requested and written.
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
    """A watched reading; `context` is None if the watch stopped it.

    `states` are those of the last position at each tap reached, float32 (width,).
    """

    context: Context | None
    states: Mapping[Tap, Activations]


def log_softmax(logits: torch.Tensor) -> torch.Tensor:
    """Return natural-log probabilities in float32, whatever the weights' dtype."""
    return torch.log_softmax(logits.float(), dim=-1)


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """Tokens read after a prefix; `layers` have shapes (1, heads, len(ids), width)."""

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
    """The most recently used passages, within a memory limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._kept: OrderedDict[tuple[int, ...], Passage] = OrderedDict()

    def find(self, ids: Sequence[int], after: Context) -> Passage | None:
        """Return the passage if it was read after this prefix, as the latest."""
        key = (*after.ids, *ids)
        found = self._kept.get(key)
        # The same tokens may have been split elsewhere into prefix and passage.
        if found is None or len(found) != len(ids):
            return None
        self._kept.move_to_end(key)
        return found

    def keep(self, passage: Passage) -> None:
        """Keep a passage; the least recently used ones make room."""
        key = (*passage.prefix.ids, *passage.ids)
        replaced = self._kept.pop(key, None)
        self._bytes += passage.bytes - (replaced.bytes if replaced else 0)
        self._kept[key] = passage
        while self._bytes > self._limit:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= dropped.bytes


def cut(context: Context, prefix: Context) -> Passage | None:
    """Return what `context` read after `prefix`, or None if a layer can't be cut."""
    own = len(context) - len(prefix)
    everything = _layers(context.cache)
    if everything is None:
        return None
    # Cloned: views would keep the whole context in memory.
    layers = tuple(
        (keys[:, :, -own:].clone(), values[:, :, -own:].clone())
        for keys, values in everything
    )
    return Passage(prefix, context.ids[-own:], context.next_log_probabilities, layers)


def can_be_cut(context: Context) -> bool:
    """Return whether its last tokens can be removed; a sliding window's can't."""
    return _layers(context.cache) is not None


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
    """Lay out passages of one prefix as the rows of one batch, padded on the right.

    Returns the cache, and a mask with 1 for real positions, of shape (rows, len(prefix)
    + longest).
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
    if isinstance(passage, Context):
        return passage
    cache, _ = side_by_side([passage], configuration)
    ids = (*passage.prefix.ids, *passage.ids)
    return Context(ids, passage.next_log_probabilities, cache)
