"""On-disk cache of activations, keyed by what was read, so that a killed run resumes.

There is one folder per model and tap, which may be deleted at any time.
"""

import logging
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from accounts.ids import digest
from probes.language_model import WhiteBoxModel
from probes.language_model.second_pass import Passing
from probes.taps import Activations, Tap
from qa.inference import grounded_form
from qa.inference.white_box import PassingForm

from .labels import LabelledDraft

logger = logging.getLogger(__name__)

# float16 keeps 11 significant bits up to this value; bfloat16, in which models run
# where it is fast, keeps 8.
_MAX_HALF: Final = float(np.finfo(np.float16).max)


class ActivationCache:
    def __init__(self, directory: Path, *, language_model: str, tap: Tap) -> None:
        self._folder = directory / language_model / f"{tap.layer}-{tap.part}"
        self._files: dict[str, Path] = {}
        for file in sorted(self._folder.glob("*.safetensors")):
            self._files.update(dict.fromkeys(_keys(file), file))

    def __contains__(self, key: str) -> bool:
        return key in self._files

    def read(self, keys: Iterable[str]) -> dict[str, Activations]:
        """Return the cached ones of `keys`, each as float32 (positions, width)."""
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
        """Write rows to a new file, atomically."""
        if not rows:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        name = digest(*sorted(rows))
        file = self._folder / f"{name}.safetensors"
        part = self._folder / f"{name}.{os.getpid()}.{secrets.token_hex(4)}.part"
        try:
            save_file({key: _small(values) for key, values in rows.items()}, part)
            part.rename(file)
        finally:
            part.unlink(missing_ok=True)
        self._files.update(dict.fromkeys(rows, file))


def key_of(passing: Passing) -> str:
    """Return a key of 64 hex digits for the tokens read and the positions kept."""
    kept = passing.positions
    said = f"{kept[0]} {passing.start} {passing.end} {' '.join(map(str, passing.ids))}"
    return digest(said)


def _keys(file: Path) -> list[str]:
    try:
        with safe_open(file, framework="numpy") as opened:
            return list(opened.keys())
    except (OSError, SafetensorError):
        logger.warning("%s is damaged and will be recreated.", file)
        file.unlink(missing_ok=True)
        return []


def _small(values: Activations) -> NDArray[np.floating]:
    is_small = bool((np.abs(values) < _MAX_HALF).all())
    kept = values.astype(np.float16 if is_small else np.float32)
    return np.ascontiguousarray(kept)


# Texts per file: the most that a killed run has to read again.
_TEXTS_AT_ONCE: Final = 64

OnProgress = Callable[[int, int], None]


class DraftActivations:
    """Activations of the drafts that fit the context, in order, cached on disk.

    One pass reads both the prompt's last token, before any token of the answer, and the
    answer's tokens.
    """

    def __init__(
        self,
        model: WhiteBoxModel,
        drafts: Sequence[LabelledDraft],
        *,
        directory: Path,
        form: PassingForm = grounded_form,
        pieces: int | None = None,
    ) -> None:
        """Encode the drafts in a form, each with at most `pieces` of evidence."""
        self._model, self._directory = model, directory
        passings = [_passing(model, form, draft, pieces) for draft in drafts]
        fits = [len(passing.ids) <= model.context_length for passing in passings]
        self.drafts = tuple(d for d, fit in zip(drafts, fits, strict=True) if fit)
        self._passings = [p for p, fit in zip(passings, fits, strict=True) if fit]
        self.too_long = len(drafts) - len(self.drafts)

    def read(
        self, taps: Sequence[Tap], *, on_progress: OnProgress = lambda _done, _all: None
    ) -> None:
        """Read what is not cached at `taps`, the longest texts first."""
        caches = {tap: self._cache(tap) for tap in taps}
        by_key = {key_of(passing): passing for passing in self._passings}
        missing = {
            key: passing
            for key, passing in by_key.items()
            if not all(key in cache for cache in caches.values())
        }
        total = len(self._passings)
        done = total - len(missing)
        on_progress(done, total)
        for batch in _batches(missing):
            found = self._model.read_activations([p for _, p in batch], taps)
            for tap, cache in caches.items():
                rows = zip(batch, found, strict=True)
                cache.keep({key: held[tap] for (key, _), held in rows})
            done += len(batch)
            on_progress(done, total)

    def of_prompts(self, tap: Tap) -> list[Activations]:
        """Return the activations of each prompt's last token, float32 (1, width)."""
        return [values[:1] for values in self.of_sequences(tap)]

    def of_sequences(self, tap: Tap) -> list[Activations]:
        """Return float32 (1 + tokens + 1, width) each, with prompt and end token."""
        self.read([tap])
        keys = [key_of(passing) for passing in self._passings]
        found = self._cache(tap).read(keys)
        return [found[key] for key in keys]

    def _cache(self, tap: Tap) -> ActivationCache:
        return ActivationCache(
            self._directory, language_model=self._model.fingerprint, tap=tap
        )


def _passing(
    model: WhiteBoxModel, form: PassingForm, draft: LabelledDraft, pieces: int | None
) -> Passing:
    return form.sequence_passing(
        model.tokens, draft.prompt, draft.answer, written=draft.written, pieces=pieces
    )


def _batches(missing: dict[str, Passing]) -> Iterator[list[tuple[str, Passing]]]:
    rows = sorted(missing.items(), key=lambda row: -len(row[1].ids))
    for first in range(0, len(rows), _TEXTS_AT_ONCE):
        yield rows[first : first + _TEXTS_AT_ONCE]
