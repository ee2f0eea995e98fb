"""Reading, scoring, choosing and writing with a causal language model.

Reading on from a `Context` gives a new one and leaves the old one as it was, so a fixed
prefix is read once, and continuations of one context can be compared.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

import numpy as np
import torch
from transformers import PreTrainedModel

from accounts.fair_lock import FairLock
from probes.adapter.merging import AdapterCard
from probes.language_model import scoring
from probes.language_model.batch import Written, look_each, weigh_each, write_each
from probes.language_model.network import Network
from probes.language_model.scoring import Example
from probes.language_model.second_pass import Passing, read_activations
from probes.language_model.taps import (
    NO_STEERING,
    Meter,
    PassStopped,
    Steering,
    last_position,
    metered,
    tapped,
)
from probes.language_model.tokens import Tokens
from probes.language_model.values import (
    Context,
    Generated,
    Look,
    Passage,
    Passages,
    Scored,
    cut,
    resume,
)
from probes.language_model.writing import Allowed, Enough, write
from probes.taps import Activations, Tap

# The forms that one model is asked in, each with its fixed prefix: monitored answers
# alone take three. A few megabytes each.
_PREFIXES_KEPT: Final = 8


class WhiteBoxModel:
    """A Hugging Face causal language model; one thread at a time computes, in order.

    Its `fingerprint` is over weights, configuration, tokenizer, adapter and dtype.
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
        self._network = Network(model, name=name)
        self.tokens = tokens
        self.name = name
        self.fingerprint = fingerprint
        self.adapter = adapter
        self._lock = FairLock()
        self._prefixes: OrderedDict[tuple[int, ...], Context] = OrderedDict()
        self._passages = Passages(passage_bytes)

    @property
    def dtype(self) -> torch.dtype:
        return self._network.dtype

    @property
    def device(self) -> torch.device:
        return self._network.device

    @property
    def context_length(self) -> int:
        return self._network.context_length

    @property
    def parameters(self) -> int:
        """How many numbers its weights are; those that two parts share count once."""
        return int(self._network.module.num_parameters())

    @property
    def blocks(self) -> int:
        """How many blocks it has; a layer is one of them, 0-based."""
        return int(self._network.configuration.get_text_config().num_hidden_layers)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the model for several steps that belong to one answer."""
        with self._lock:
            yield

    @contextmanager
    def metered(self) -> Iterator[Meter]:
        """Hold the model and count what goes through it until the context ends."""
        with self._lock, metered(self._network.module) as meter:
            yield meter

    def read_prefix(self, ids: Sequence[int]) -> Context:
        """Read a fixed prefix; the second time it is there already."""
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
        """Read `ids`, steered at each, and return the context that they make.

        Raises:
            ValueError: There is nothing to read.
        """
        if not ids:
            if after is None:
                raise ValueError("A context needs at least one token.")
            return after
        with self._lock, self._steered(steering):
            return self._network.read(ids, after)

    def _steered(self, steering: Steering) -> AbstractContextManager[object]:
        if not steering:  # looking for the blocks takes a millisecond
            return nullcontext()
        return tapped(self._network.module, steering=steering)

    def look(
        self,
        ids: Sequence[int],
        after: Context | None,
        *,
        taps: Sequence[Tap],
        watch: Callable[[Tap, Activations], bool] | None = None,
    ) -> Look:
        """Read `ids`, at least one, and return what is at the taps at the last one.

        `watch` is called in mid-pass with what is at each tap, shape (width,); False
        ends the reading there, and nothing behind it is computed.
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

    def look_each(
        self,
        rows: Sequence[Sequence[int]],
        after: Context,
        *,
        taps: Sequence[Tap],
    ) -> list[Mapping[Tap, Activations]]:
        """Return float32 (width,) at each tap at the last token of each row."""
        with self._lock:
            return look_each(self._network, rows, after, taps)

    def read_passage(self, ids: Sequence[int], prefix: Context) -> Context | Passage:
        """Read a passage after a fixed prefix, or find it among those read lately.

        The context of both comes back for a model whose cache can't be cut.
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

    def score_each(
        self,
        options: Sequence[Sequence[int]],
        after: Sequence[Context | Passage],
        *,
        stops: Sequence[int] = (),
        skips: Sequence[int] | None = None,
    ) -> tuple[Scored, ...]:
        """Return how likely each option is to follow its own passage, in one pass.

        The passages share one prefix, any of `stops` may end an option, and so many
        tokens at an option's beginning as `skips` says are read and not scored.
        """
        with self._lock:
            return scoring.score_each(
                self._network, options, after, stops=stops, skips=skips
            )

    def score_all(
        self,
        options: Sequence[Sequence[int]],
        after: Context,
        *,
        stops: Sequence[int] = (),
        skips: Sequence[int] | None = None,
        steering: Steering = NO_STEERING,
    ) -> tuple[Scored, ...]:
        """Score several continuations of one context, in one pass where memory allows.

        An empty option is scored by its stop alone; otherwise as `score_each`.
        """
        with self._lock, self._steered(steering):
            return scoring.score_all(
                self._network, options, after, stops=stops, skips=skips
            )

    def generate(
        self,
        after: Context,
        *,
        max_tokens: int,
        stop: Sequence[str] = (),
        allowed: Allowed | None = None,
        taps: Sequence[Tap] = (),
        with_end: bool = False,
        steering: Steering = NO_STEERING,
        enough: Enough | None = None,
    ) -> Generated:
        """Write greedily until the turn ends, a stop string appears or it is enough.

        Args:
            allowed: Given the tokens written so far, those that may come next; an end
                token among them allows the end. Control tokens are never written.
            with_end: Whether the end token's are kept too, which takes a pass more.
            steering: What is added to blocks' outputs at each token that is written; the
                taps read what it made of them.
            enough: Given the text so far, whether to write no more of it.
        """
        with self._lock:
            return write(
                self._network,
                self.tokens,
                after,
                max_tokens=max_tokens,
                stop=stop,
                allowed=allowed,
                taps=taps,
                with_end=with_end,
                steering=steering,
                enough=enough,
            )

    def write_each(
        self,
        rows: Sequence[Sequence[int]],
        after: Context,
        *,
        max_tokens: int,
        stop: Sequence[str] = (),
        temperature: float = 0.0,
        seed: int = 0,
    ) -> tuple[Written, ...]:
        """Write on from each row, side by side; drawn above a temperature of 0."""
        with self._lock:
            return write_each(
                self._network,
                self.tokens,
                rows,
                after,
                max_tokens=max_tokens,
                stop=stop,
                temperature=temperature,
                seed=seed,
            )

    def weigh_each(
        self, rows: Sequence[Sequence[int]], options: Sequence[int], after: Context
    ) -> np.ndarray:
        """Return each option's probability against the others, shape (rows, options)."""
        with self._lock:
            return weigh_each(self._network, rows, options, after)

    def score_labels(
        self,
        examples: Sequence[Example],
        question: Sequence[int],
        options: Sequence[int],
        after: Context,
        *,
        end: Sequence[int] = (),
    ) -> np.ndarray:
        """Return the logits of labels at each example and after the question, in one pass.

        Shape (len(examples) + 1, options): row i with the examples before i in view.
        `end` is between an example's label and what follows it.
        """
        with self._lock:
            return scoring.score_labels(
                self._network, examples, question, options, after, end=end
            )

    def read_activations(
        self, passings: Sequence[Passing], taps: Sequence[Tap]
    ) -> list[Mapping[Tap, Activations]]:
        """Read texts written elsewhere; float32 (its kept positions, width) for each."""
        with self._lock:
            found = dict(read_activations(self._network, passings, taps))
        return [found[index] for index in range(len(passings))]
