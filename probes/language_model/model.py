"""Reading, scoring, choosing and writing with a causal language model.

Reading on from a `Context` gives a new one and leaves the old one unchanged, so a fixed
prefix is read once, and continuations of one context can be compared.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

import torch
from transformers import PreTrainedModel

from accounts.fair_lock import FairLock
from probes.adapter.merging import AdapterCard
from probes.language_model import batch, scoring, second_pass, writing
from probes.language_model.network import Network
from probes.language_model.taps import (
    NO_STEERING,
    Meter,
    PassStopped,
    Steering,
    last_position,
    metered,
    steered,
    tapped,
)
from probes.language_model.tokens import Tokens
from probes.language_model.values import Context, Look, Passage, Passages, cut, resume
from probes.taps import Activations, Tap

# Prompt forms of one model, each with its fixed prefix of a few megabytes; monitored
# answers alone use three.
_PREFIXES_KEPT: Final = 8


_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


def _held(
    act: Callable[Concatenate[Network, _Given], _Found],
) -> Callable[Concatenate["WhiteBoxModel", _Given], _Found]:
    """Make a function of the network a method that holds the model's lock."""

    @wraps(act)
    def method(
        self: "WhiteBoxModel", /, *given: _Given.args, **named: _Given.kwargs
    ) -> _Found:
        with self._lock:
            return act(self._network, *given, **named)

    return method


class WhiteBoxModel:
    """A Hugging Face causal language model; one thread at a time computes, in order.

    Its `fingerprint` covers weights, configuration, tokenizer, adapter and dtype.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokens: Tokens,
        *,
        name: str,
        fingerprint: str,
        adapter: AdapterCard | None = None,
        passage_bytes: int = 64 * 2**20,
    ) -> None:
        """Take over a loaded model, which must not be trained meanwhile."""
        self._network = Network(model, tokens, name=name)
        self.dtype, self.device = self._network.dtype, self._network.device
        self.context_length = self._network.context_length
        self.tokens = tokens
        self.name = name
        self.fingerprint = fingerprint
        self.adapter = adapter
        self._lock = FairLock()
        self._prefixes: OrderedDict[tuple[int, ...], Context] = OrderedDict()
        self._passages = Passages(passage_bytes)

    @property
    def parameters(self) -> int:
        """Number of parameters; shared ones count once."""
        return int(self._network.module.num_parameters())

    @property
    def blocks(self) -> int:
        """Number of blocks; a layer is the 0-based number of one."""
        return int(self._network.configuration.get_text_config().num_hidden_layers)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the model for several steps of one answer."""
        with self._lock:
            yield

    @contextmanager
    def metered(self) -> Iterator[Meter]:
        """Hold the model and count what goes through it until the context ends."""
        with self._lock, metered(self._network.module) as meter:
            yield meter

    def read_prefix(self, ids: Sequence[int]) -> Context:
        """Read a fixed prefix, or return it if it was read before."""
        key = tuple(ids)
        with self._lock:
            context = self._prefixes.get(key)
            if context is None:
                context = self.read(key)
                self._prefixes[key] = context
                while len(self._prefixes) > _PREFIXES_KEPT:
                    self._prefixes.popitem(last=False)
            self._prefixes.move_to_end(key)
            return context

    def read(
        self,
        ids: Sequence[int],
        after: Context | None = None,
        *,
        steering: Steering = NO_STEERING,
    ) -> Context:
        """Read `ids`, steered at each, and return the resulting context.

        Raises:
            ValueError: There is nothing to read.
        """
        if not ids:
            if after is None:
                raise ValueError("A context needs at least one token.")
            return after
        with self._lock, steered(self._network.module, steering):
            return self._network.read(ids, after)

    def look(
        self,
        ids: Sequence[int],
        after: Context | None,
        *,
        taps: Sequence[Tap],
        watch: Callable[[Tap, Activations], bool] | None = None,
    ) -> Look:
        """Read `ids`, at least one, and return the activations at the last of them.

        `watch` is called during the pass with the activations at each tap, shape
        (width,); False ends the reading there, and nothing beyond it is computed.
        """

        def watched(tap: Tap, values: torch.Tensor) -> bool:
            return watch is None or watch(tap, last_position(values))

        with self._lock, tapped(self._network.module, taps, watch=watched) as flow:
            try:
                context = self._network.read(ids, after)
            except PassStopped:
                context = None
            states = {tap: last_position(values) for tap, values in flow.at.items()}
        return Look(context, states)

    def read_passage(self, ids: Sequence[int], prefix: Context) -> Context | Passage:
        """Read a passage after a fixed prefix, or return it if it was read lately.

        Returns the context of both for a model whose cache can't be cut.
        """
        with self._lock:
            found = self._passages.find(ids, prefix)
            if found is not None:
                return found
            context = self.read(ids, prefix)
            passage = cut(context, prefix)
            if passage is None:
                return context
            self._passages.keep(passage)
            return passage

    def resume(self, passage: Context | Passage) -> Context:
        return resume(passage, self._network.configuration)

    look_each = _held(batch.look_each)
    weigh_each = _held(batch.weigh_each)
    write_each = _held(batch.write_each)
    generate = _held(writing.generate)
    score_all = _held(scoring.score_all)
    score_each = _held(scoring.score_each)
    score_labels = _held(scoring.score_labels)
    read_activations = _held(second_pass.read_activations)
