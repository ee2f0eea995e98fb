"""The forward passes of a causal language model, on top of what it read before."""

import copy
from collections.abc import Sequence
from typing import Final

import torch
from transformers import DynamicCache, PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from probes.exceptions import TooManyTokensError
from probes.language_model.tokens import Tokens
from probes.language_model.values import Context, Passage, log_softmax, side_by_side

# These layers replace their tensors when they grow, so a shallow copy is a snapshot.
_APPENDING_LAYERS: Final = (DynamicLayer, DynamicSlidingWindowLayer)


class Network:
    """The weights of a model and its forward passes; not thread-safe."""

    def __init__(self, model: PreTrainedModel, tokens: Tokens, *, name: str) -> None:
        model.train(mode=False)
        self.module = model
        self.tokens = tokens
        self._name = name

    @property
    def configuration(self) -> PreTrainedConfig:
        return self.module.config

    @property
    def dtype(self) -> torch.dtype:
        return next(self.module.parameters()).dtype

    @property
    def device(self) -> torch.device:
        return next(self.module.parameters()).device

    @property
    def context_length(self) -> int:
        configuration = self.configuration.get_text_config()
        return int(getattr(configuration, "max_position_embeddings", 2**31))

    def read(self, ids: Sequence[int], context: Context | None) -> Context:
        logits, cache = self.after([ids], context, keep=1)
        before = context.ids if context else ()
        return Context((*before, *ids), log_softmax(logits[0, -1]), cache)

    def after(
        self,
        rows: Sequence[Sequence[int]],
        context: Context | None,
        *,
        keep: int | torch.Tensor,
    ) -> tuple[torch.Tensor, DynamicCache]:
        """Read rows of one width, each after the same context, which stays unchanged.

        Returns logits of shape (rows, positions, vocabulary), of the last `keep`
        positions or of the 0-based ones that it lists, and the cache.
        """
        self.require_room(len(rows[0]) + (len(context) if context else 0))
        cache = (
            fork(context.cache) if context else DynamicCache(config=self.configuration)
        )
        if len(rows) > 1:
            cache.batch_repeat_interleave(len(rows))
        with torch.inference_mode():
            output = self.module(
                input_ids=self._numbers(rows),
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=keep,
            )
        return output.logits, output.past_key_values

    def after_each(
        self, rows: Sequence[Sequence[int]], passages: Sequence[Passage], *, keep: int
    ) -> torch.Tensor:
        """Read rows of one width after passages; returns (rows, keep, vocabulary)."""
        cache, is_real = side_by_side(passages, self.configuration)
        width = len(rows[0])
        self.require_room(is_real.shape[1] + width)
        # Padding after a row is never attended to; padding of its passage is masked.
        mask = torch.cat([is_real, torch.ones(len(rows), width, dtype=torch.long)], 1)
        positions = is_real.sum(1, keepdim=True) + torch.arange(width)
        with torch.inference_mode():
            output = self.module(
                input_ids=self._numbers(rows),
                attention_mask=mask.to(self.device),
                position_ids=positions.to(self.device),
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=keep,
            )
        logits: torch.Tensor = output.logits
        return logits

    def require_room(self, total: int) -> None:
        if total > self.context_length:
            raise TooManyTokensError(
                f"{total} tokens do not fit the {self.context_length} of {self._name}. "
                "Ask with less evidence or use a model with a longer context."
            )

    def _numbers(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        numbers = [list(row) for row in rows]
        return torch.tensor(numbers, dtype=torch.long, device=self.device)


def fork(cache: DynamicCache) -> DynamicCache:
    """Return a copy of a cache that can grow without changing the original."""
    fork = copy.copy(cache)
    fork.layers = [
        copy.copy(layer) if type(layer) in _APPENDING_LAYERS else copy.deepcopy(layer)
        for layer in cache.layers
    ]
    return fork
