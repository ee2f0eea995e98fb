"""A probe on disk: weights as safetensors, everything else as JSON, never a pickle."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from probes.abstention.fitting import FitSettings, new_network
from probes.abstention.networks import Kind, SequenceClassifier
from probes.abstention.probe import AbstentionProbe
from probes.exceptions import ProbeFileError, ProbeMismatchError
from probes.language_model.taps import Part, Tap

WEIGHTS: Final = "probe.safetensors"
CARD: Final = "probe.json"
_FORMAT: Final = 1
# Sizes that a file may ask for: a forged card must not take all memory.
_LARGEST: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class ProbeCard:
    """What a probe's file says of it, beside its weights.

    Attributes:
        data_sha256: Digest of the labelled answers that it was fitted on.
        metrics: What was measured on answers that neither fitting nor its early stop
            saw, by name.
    """

    data_sha256: str
    settings: FitSettings
    metrics: Mapping[str, float]


def save_probe(directory: Path, probe: AbstentionProbe, card: ProbeCard) -> None:
    """Write the two files; the card, which names the weights' digest, comes last.

    A write that was broken off leaves files that `load_probe` refuses.
    """
    directory.mkdir(parents=True, exist_ok=True)
    weights = save_tensors(
        {name: value.contiguous() for name, value in probe.network.state_dict().items()}
    )
    (directory / WEIGHTS).write_bytes(weights)
    said = {
        "format": _FORMAT,
        "kind": probe.kind,
        "language_model": probe.language_model,
        "layer": probe.tap.layer,
        "part": probe.tap.part,
        "width": probe.width,
        "temperature": probe.temperature,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "data_sha256": card.data_sha256,
        "settings": asdict(card.settings),
        "metrics": dict(card.metrics),
    }
    text = json.dumps(said, indent=2, sort_keys=True)
    (directory / CARD).write_text(f"{text}\n", encoding="utf-8")


def load_probe(
    directory: Path, *, language_model: str
) -> tuple[AbstentionProbe, ProbeCard]:
    """Read a probe for the model of that fingerprint.

    Raises:
        ProbeFileError: A file is missing, damaged, or says what cannot be.
        ProbeMismatchError: It was fitted for another language model.
    """
    try:
        said = json.loads((directory / CARD).read_text(encoding="utf-8"))
        weights = (directory / WEIGHTS).read_bytes()
    except (OSError, ValueError) as error:
        raise _damaged(directory, str(error)) from error
    try:
        if said["format"] != _FORMAT:
            raise _damaged(directory, f"format {said['format']!r} is not known")
        if hashlib.sha256(weights).hexdigest() != said["weights_sha256"]:
            raise _damaged(directory, "the weights are not those that were saved")
        if said["language_model"] != language_model:
            msg = (
                f"The probe in {directory} was fitted for the language model "
                f"{said['language_model'][:12]} and {language_model[:12]} is running. "
                "Fit one for this model: manage.py train_probe."
            )
            raise ProbeMismatchError(msg)
        settings = FitSettings(
            **{**said["settings"], "kind": Kind(said["settings"]["kind"])}
        )
        network = _filled(int(said["width"]), settings, load_tensors(weights))
        probe = AbstentionProbe(
            settings.kind,
            language_model,
            Tap(int(said["layer"]), Part(said["part"])),
            float(said["temperature"]),
            network,
        )
        card = ProbeCard(str(said["data_sha256"]), settings, dict(said["metrics"]))
    except (
        AttributeError, KeyError, RuntimeError, SafetensorError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise _damaged(directory, f"{type(error).__name__}: {error}") from error
    return probe, card


def _filled(
    width: int, settings: FitSettings, tensors: Mapping[str, torch.Tensor]
) -> SequenceClassifier:
    sizes = (width, settings.hidden, settings.projected)
    if not all(0 < size <= _LARGEST for size in sizes):
        msg = f"sizes {sizes} are not between 1 and {_LARGEST}"
        raise ValueError(msg)
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
        msg = "a weight is not finite"
        raise ValueError(msg)
    # Its first weights are thrown away, and must not touch anybody's random numbers.
    with torch.random.fork_rng(devices=[]):
        network = new_network(width, settings)
    network.load_state_dict(dict(tensors))
    network.train(mode=False)
    return network


def _damaged(directory: Path, why: str) -> ProbeFileError:
    return ProbeFileError(
        f"The probe in {directory} cannot be used: {why}. Put back the files that "
        "train_probe wrote, or fit it again."
    )
