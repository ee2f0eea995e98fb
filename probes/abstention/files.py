"""Activation probes as files: weights as safetensors, never a pickle."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from probes.abstention.fitting import FitSettings, new_network
from probes.abstention.probe import AbstentionProbe, Kind, SequenceClassifier
from probes.cards import UNREADABLE, ProbeCard, ProbeFiles, card_bytes, reason
from probes.taps import Part, Tap

# Largest size that a file may ask for: a forged card must not exhaust the memory.
_MAX_SIZE: Final = 1 << 16


def probe_files(
    probe: AbstentionProbe, settings: FitSettings, card: ProbeCard
) -> ProbeFiles:
    """Return a fitted probe as files; `card` has the fields that the probe lacks."""
    weights = save_tensors(
        {name: value.contiguous() for name, value in probe.network.state_dict().items()}
    )
    said = replace(
        card,
        language_model=probe.language_model,
        layer=probe.tap.layer,
        part=probe.tap.part.value,
        temperature=probe.temperature,
        sizes={**card.sizes, "width": probe.width},
        settings={**asdict(settings), "kind": settings.kind.value},
    )
    return ProbeFiles(f"{card.kind.value} probe", card_bytes(said, weights), weights)


def probe_from(files: ProbeFiles, *, language_model: str) -> AbstentionProbe:
    card = files.checked(language_model=language_model)
    if card.layer is None:
        raise files.damaged(f"a {card.kind.value} probe reads no activations")
    try:
        settings = settings_of(card)
        tensors = load_tensors(files.weights)
        network = _filled(card.sizes["width"], settings, tensors)
        tap = Tap(card.layer, Part(card.part))
    except (*UNREADABLE, RuntimeError, SafetensorError) as error:
        raise files.damaged(reason(error)) from error
    return AbstentionProbe(
        settings.kind,
        card.language_model,
        tap,
        card.temperature,
        network,
        closes_with_end=settings.closes_with_end,
    )


def settings_of(card: ProbeCard) -> FitSettings:
    # Defaults for cards from before these settings existed.
    said: dict[str, object] = {
        "opens_with_prompt": False,
        "closes_with_end": True,
        **card.settings,
    }
    return FitSettings(**{**said, "kind": Kind(said["kind"])})  # type: ignore[arg-type]  # checked where they are used


def _filled(
    width: int, settings: FitSettings, tensors: Mapping[str, torch.Tensor]
) -> SequenceClassifier:
    sizes: tuple[object, ...] = (width, settings.hidden, settings.projected)
    if not all(isinstance(size, int) and 0 < size <= _MAX_SIZE for size in sizes):
        raise ValueError(f"sizes {sizes} are not between 1 and {_MAX_SIZE}")
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
        raise ValueError("a weight is not finite")
    # Its initial weights are replaced and must not use up the caller's random numbers.
    with torch.random.fork_rng(devices=[]):
        network = new_network(width, settings)
    network.load_state_dict(dict(tensors))
    network.train(mode=False)
    return network
