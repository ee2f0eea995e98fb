"""What an adapter's files say of it; nothing here needs torch or peft."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from probes.exceptions import AdapterFileError

WEIGHTS: Final = "adapter_model.safetensors"
CONFIGURATION: Final = "adapter_config.json"
CARD: Final = "adapter.json"
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class AdapterCard:
    """What an adapter's files say of it, beside its weights.

    Attributes:
        base: Name of the language model that it changes.
        base_sha256: Digest of that model's weights, as files.
        form: The form of prompt that it was fitted on.
        data_sha256: Digest of its training data.
        groups: Names of the data's groups (articles) that it was fitted on; whatever is
            measured on them says nothing.
        settings: How it was fitted.
        metrics: What was measured on groups that it was not fitted on, by name.
        weights_sha256: Digest of the weights' file.
    """

    base: str
    base_sha256: str
    form: str
    data_sha256: str
    groups: tuple[str, ...]
    settings: Mapping[str, Any]
    metrics: Mapping[str, float]
    weights_sha256: str = ""


def read_card(directory: Path) -> AdapterCard:
    """Read what an adapter's files say, checked against its weights."""
    try:
        said = json.loads((directory / CARD).read_text(encoding="utf-8"))
        if said.pop("format") != FORMAT:
            raise damaged(directory, f"its format is not {FORMAT}")
        card = AdapterCard(**{**said, "groups": tuple(said["groups"])})
        found = sha256_of(directory / WEIGHTS)
        json.loads((directory / CONFIGURATION).read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(directory, f"{type(error).__name__}: {error}") from error
    if found != card.weights_sha256:
        raise damaged(directory, "the weights are not those that were saved")
    return card


def sha256_of(file: Path) -> str:
    """Return a file's digest, 64 hex digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def damaged(directory: Path, why: str) -> AdapterFileError:
    """Return the error that says why an adapter's files cannot be used."""
    return AdapterFileError(
        f"The adapter in {directory} cannot be used: {why}. Put back the files that "
        "train adapter wrote, fit it again, or set NESCIO_LANGUAGE_ADAPTER to 'none'."
    )
