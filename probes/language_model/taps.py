"""Taps into a causal language model's blocks: read activations, steer, stop early.

Forward hooks are set only on the blocks concerned. A `layer` is a 0-based block
everywhere, and its activation is the block's output before any final norm: `layer` 0 of
n is the first block's output, n - 1 the last one's.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from probes.exceptions import LayerError
from probes.taps import Activations, Part, Tap

Watch = Callable[[Tap, torch.Tensor], bool]
# Some families' blocks return a tuple, with the hidden states first.
_Output = torch.Tensor | tuple[torch.Tensor, ...]


@dataclass(slots=True)
class Flow:
    """The last pass's activations: at each tap (rows, positions, width), detached."""

    at: dict[Tap, torch.Tensor] = field(default_factory=dict)
    is_stopped: bool = False

    def row(self, tap: Tap, index: int, positions: slice | list[int]) -> Activations:
        """Return a copy of one row's activations as float32, (positions, width)."""
        kept = self.at[tap][index, positions].float().cpu().numpy()
        return np.array(kept, dtype=np.float32)


class PassStopped(Exception):  # noqa: N818  # not an error: how a hook leaves a pass
    """Ends a forward pass whose remaining blocks are not needed."""


# For each block a direction, shape (width,), that is added to its output everywhere.
Steering = Mapping[int, torch.Tensor]
NO_STEERING: Final[Steering] = {}


@contextmanager
def tapped(
    module: PreTrainedModel,
    taps: Sequence[Tap] = (),
    *,
    steering: Steering = NO_STEERING,
    watch: Watch | None = None,
    truncate: bool = False,
) -> Iterator[Flow]:
    """Read at `taps` in every forward pass until the context ends, after steering.

    `steering` is added to a block's output at every position. `watch` is called at each
    tap during the pass; False stops the pass there. `truncate` stops every pass at its
    deepest tap. A stopped pass raises `PassStopped` from the model.

    Raises:
        LayerError: A block or its part does not exist in this model.
    """
    blocks = decoder_blocks(module)
    for layer in {*steering, *(tap.layer for tap in taps)}:
        if not 0 <= layer < len(blocks):
            raise LayerError(
                f"Layer {layer} does not exist: {module.config.model_type} has "
                f"{len(blocks)} blocks, 0 to {len(blocks) - 1}."
            )
    flow, deepest = Flow(), max(taps, key=_depth, default=None) if truncate else None
    with ExitStack() as hooks:
        for layer, direction in steering.items():
            handle = blocks[layer].register_forward_hook(_steer(direction))
            hooks.callback(handle.remove)
        for tap in sorted(taps, key=_depth):
            keep = _keeper(flow, tap, watch, is_last=tap == deepest)
            hooks.callback(_attach(blocks[tap.layer], tap, keep))
        start = module.register_forward_pre_hook(_forget(flow))
        hooks.callback(start.remove)
        yield flow


def steered(
    module: PreTrainedModel, steering: Steering
) -> AbstractContextManager[object]:
    if not steering:  # looking for the blocks takes a millisecond
        return nullcontext()
    return tapped(module, steering=steering)


def decoder_blocks(module: PreTrainedModel) -> nn.ModuleList:
    count = module.config.get_text_config().num_hidden_layers
    lists = (
        (name, part)
        for name, part in module.named_modules()
        if isinstance(part, nn.ModuleList) and len(part) == count
    )
    # The outermost list: a block may have lists of its own.
    found = min(lists, key=lambda named: named[0].count("."), default=None)
    if found is None:
        raise LayerError(f"{module.config.model_type} has no list of {count} blocks.")
    return found[1]


def last_position(values: torch.Tensor) -> Activations:
    """Return a copy of the first row's last position as float32, (width,)."""
    return np.array(values[0, -1].float().cpu().numpy(), dtype=np.float32)


def _depth(tap: Tap) -> tuple[int, bool]:
    """Order taps as a pass reaches them: a block's inside before its output."""
    return tap.layer, tap.part is Part.BLOCK


def _attach(
    block: nn.Module, tap: Tap, keep: Callable[[torch.Tensor], None]
) -> Callable[[], None]:
    if tap.part is Part.BLOCK:
        handle = block.register_forward_hook(lambda _m, _a, out: keep(_tensor(out)))
    else:
        inner = _down_projection(block, tap)
        handle = inner.register_forward_pre_hook(lambda _m, given: keep(given[0]))
    return handle.remove


def _keeper(
    flow: Flow, tap: Tap, watch: Watch | None, *, is_last: bool
) -> Callable[[torch.Tensor], None]:
    def keep(values: torch.Tensor) -> None:
        flow.at[tap] = values.detach()
        if is_last or (watch is not None and not watch(tap, flow.at[tap])):
            flow.is_stopped = True
            raise PassStopped

    return keep


def _forget(flow: Flow) -> Callable[..., None]:
    def forget(*_given: object) -> None:
        flow.at.clear()
        flow.is_stopped = False

    return forget


def _steer(direction: torch.Tensor) -> Callable[..., _Output]:
    def add(_module: nn.Module, _given: object, out: _Output) -> _Output:
        values = _tensor(out)
        moved = values + direction.to(values.device, values.dtype)
        return (moved, *out[1:]) if isinstance(out, tuple) else moved

    return add


def _tensor(out: _Output) -> torch.Tensor:
    return out[0] if isinstance(out, tuple) else out


def _down_projection(block: nn.Module, tap: Tap) -> nn.Module:
    mlp = getattr(block, "mlp", None)
    layers = (
        [part for part in mlp.modules() if isinstance(part, nn.Linear | Conv1D)]
        if isinstance(mlp, nn.Module)
        else []
    )
    if not layers:
        raise LayerError(
            f"Block {tap.layer} has no feed-forward part called mlp to read inside of."
        )
    return layers[-1]


@dataclass(slots=True)
class Meter:
    """Counts what goes through it: passes over several tokens, and single tokens."""

    prompt_passes: int = 0
    prompt_tokens: int = 0
    steps: int = 0


@contextmanager
def metered(module: nn.Module) -> Iterator[Meter]:
    meter = Meter()

    def count(_module: nn.Module, _given: object, named: dict[str, object]) -> None:
        ids = named["input_ids"]
        if not isinstance(ids, torch.Tensor):
            raise TypeError(f"A pass over {type(ids).__name__} can't be counted.")
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
