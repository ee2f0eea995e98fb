"""Merge an adapter's files into its model's weights: no cost when the model runs.

Done here rather than by peft, whose import would add seconds to every start.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from probes.cards import UNREADABLE, Digest, read_beside, reason
from probes.exceptions import AdapterFileError, AdapterMismatchError

WEIGHTS: Final = "adapter_model.safetensors"
CONFIGURATION: Final = "adapter_config.json"
CARD: Final = "adapter.json"
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class AdapterCard:
    """The metadata of an adapter, kept beside its weights.

    Attributes:
        groups: Groups of the data (articles) that it was fitted on; figures measured on
            them prove nothing.
    """

    base: str
    base_sha256: Digest
    form: str
    data_sha256: Digest
    groups: tuple[str, ...]
    settings: Mapping[str, Any]
    metrics: Mapping[str, float]
    weights_sha256: Digest = ""


def read_card(directory: Path) -> AdapterCard:
    return read_beside(
        AdapterCard,
        directory / CARD,
        directory / WEIGHTS,
        version=FORMAT,
        damaged=damaged,
    )


def damaged(directory: Path, why: str) -> AdapterFileError:
    return AdapterFileError(
        f"The adapter in {directory} cannot be used: {why}. Put back the files that "
        "train adapter wrote, fit it again, or set NESCIO_LANGUAGE_ADAPTER to 'none'."
    )


_PREFIX: Final = "base_model.model."
_DOWN: Final = ".lora_A.weight"
_UP: Final = ".lora_B.weight"


def merge_adapter(
    model: PreTrainedModel, directory: Path, *, base_sha256: str
) -> AdapterCard:
    """Add an adapter's changes to the model's own weights: W + (alpha / rank) B A.

    `base_sha256` is the digest of the model's weights. Hu et al., "LoRA" (ICLR 2022),
    section 4.1.
    """
    card = read_card(directory)
    if card.base_sha256 != base_sha256:
        raise AdapterMismatchError(
            f"The adapter in {directory} was fitted to {card.base} "
            f"({card.base_sha256[:12]}), and the model here is {base_sha256[:12]}. Fit "
            "one for this model (manage.py train adapter), or set "
            "NESCIO_LANGUAGE_ADAPTER to 'none'."
        )
    try:
        merge_changes(model, load_file(directory / WEIGHTS), _factor(directory))
    except (*UNREADABLE, ArithmeticError, SafetensorError) as error:
        raise damaged(directory, reason(error)) from error
    return card


def merge_changes(
    model: PreTrainedModel, tensors: Mapping[str, torch.Tensor], factor: float
) -> None:
    """Add low-rank changes, named as peft names them, to weights: W + factor B A.

    Raises:
        ArithmeticError, AttributeError, TypeError, ValueError: They do not fit the
            model, some of whose weights may be changed by then.
    """
    with torch.no_grad():
        # One after the other: all at once would take as much memory as the model.
        for weight, change in _changes(tensors, model):
            # Computed in float32 and rounded to the weights' own type once.
            weight.copy_(weight.float() + factor * change.to(weight.device))


def _factor(directory: Path) -> float:
    said = json.loads((directory / CONFIGURATION).read_text(encoding="utf-8"))
    unknown = [
        name
        for name in (
            "use_dora",
            "use_rslora",
            "modules_to_save",
            "rank_pattern",
            "alpha_pattern",
        )
        if said.get(name)
    ]
    if said.get("peft_type") != "LORA" or said.get("bias") != "none" or unknown:
        raise ValueError(
            f"only plain LoRA can be merged, not {unknown or said.get('peft_type')}"
        )
    return float(said["lora_alpha"]) / int(said["r"])


def _changes(
    tensors: Mapping[str, torch.Tensor], model: PreTrainedModel
) -> Iterator[tuple[nn.Parameter, torch.Tensor]]:
    """Yield each changed weight with its change B A, of the same shape, in float32."""
    names = {name.removesuffix(_DOWN) for name in tensors if name.endswith(_DOWN)}
    if 2 * len(names) != len(tensors) or not names:
        raise ValueError(f"{len(tensors)} tensors for {len(names)} layers")
    for name in sorted(names):
        module = model.get_submodule(name.removeprefix(_PREFIX))
        if not isinstance(module, nn.Linear | Conv1D):
            raise TypeError(f"{name} is a {type(module).__name__}")
        change = tensors[name + _UP].float() @ tensors[name + _DOWN].float()
        change = change.T if isinstance(module, Conv1D) else change
        if change.shape != module.weight.shape or not bool(change.isfinite().all()):
            raise ValueError(
                f"{name} changes {tuple(change.shape)} of {tuple(module.weight.shape)}"
            )
        yield module.get_parameter("weight"), change
