"""What a piece of work costs a model: passes and tokens, counted where they are run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(slots=True)
class Meter:
    """What went through the model so far.

    Attributes:
        prompt_passes: Passes that read several tokens of a text at once.
        prompt_tokens: Tokens that these read, all rows of a batch together.
        steps: Tokens that were read one at a time, as written ones are.
    """

    prompt_passes: int = 0
    prompt_tokens: int = 0
    steps: int = 0


@contextmanager
def metered(module: nn.Module) -> Iterator[Meter]:
    """Count what goes through `module`, a causal language model, until the context ends."""
    meter = Meter()

    def count(_module: nn.Module, _given: object, named: dict[str, object]) -> None:
        ids = named["input_ids"]
        if not isinstance(ids, torch.Tensor):
            msg = f"A pass over {type(ids).__name__} can't be counted."
            raise TypeError(msg)
        if ids.shape[1] > 1:
            meter.prompt_passes += 1
            meter.prompt_tokens += ids.numel()
        else:
            meter.steps += ids.numel()

    handle = module.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield meter
    finally:
        handle.remove()
