"""Activations on disk, found again by what was read: a broken-off run goes on from them.

A folder for each model and place, in it files of a few hundred texts each. The folder
may be deleted at any time.
"""

import hashlib
import logging
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from probes.language_model.second_pass import Passing
from probes.language_model.taps import Activations, Tap

logger = logging.getLogger(__name__)

# float16 keeps 11 bits of a number up to here; bfloat16, in which models are run where
# that is fast, keeps 8.
_LARGEST_HALF: Final = float(np.finfo(np.float16).max)


class ActivationCache:
    """What one model held at one place."""

    def __init__(self, directory: Path, *, language_model: str, tap: Tap) -> None:
        """Look what is there.

        Args:
            directory: Of all models and places.
            language_model: The model's fingerprint.
            tap: The place in it.
        """
        self._folder = directory / language_model / f"{tap.layer}-{tap.part}"
        self._files: dict[str, Path] = {}
        for file in sorted(self._folder.glob("*.safetensors")):
            self._files.update(dict.fromkeys(_keys(file), file))

    def __contains__(self, key: str) -> bool:
        """Tell whether a text's activations are kept."""
        return key in self._files

    def read(self, keys: Iterable[str]) -> dict[str, Activations]:
        """Return what is kept of `keys`, each as float32 (positions, width)."""
        by_file: dict[Path, list[str]] = {}
        for key in keys:
            if key in self._files:
                by_file.setdefault(self._files[key], []).append(key)
        found: dict[str, Activations] = {}
        for file, wanted in by_file.items():
            with safe_open(file, framework="numpy") as opened:
                for key in wanted:
                    found[key] = opened.get_tensor(key).astype(np.float32)
        return found

    def keep(self, rows: Mapping[str, Activations]) -> None:
        """Write rows to a file of their own, which appears whole."""
        if not rows:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256("".join(sorted(rows)).encode()).hexdigest()
        file = self._folder / f"{name}.safetensors"
        part = self._folder / f"{name}.{os.getpid()}.{secrets.token_hex(4)}.part"
        try:
            save_file({key: _small(values) for key, values in rows.items()}, part)
            part.rename(file)
        finally:
            part.unlink(missing_ok=True)
        self._files.update(dict.fromkeys(rows, file))


def key_of(passing: Passing) -> str:
    """Return 64 hex digits: what is read and which positions are kept."""
    said = f"{passing.start} {passing.end} {' '.join(map(str, passing.ids))}"
    return hashlib.sha256(said.encode()).hexdigest()


def _keys(file: Path) -> list[str]:
    try:
        with safe_open(file, framework="numpy") as opened:
            return list(opened.keys())
    except (OSError, SafetensorError):
        logger.warning("%s is damaged and is made again.", file)
        file.unlink(missing_ok=True)
        return []


def _small(values: Activations) -> NDArray[np.floating]:
    is_small = bool((np.abs(values) < _LARGEST_HALF).all())
    kept = values.astype(np.float16 if is_small else np.float32)
    return np.ascontiguousarray(kept)
