"""What a language model held inside while it read labelled drafts: a second pass."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from probes.language_model import WhiteBoxModel
from probes.language_model.second_pass import Passing
from probes.language_model.taps import Activations, Tap
from qa.language_models.grounded_prompt import passing_of

from .activation_cache import ActivationCache, key_of
from .labelled import LabelledDraft

# Texts whose activations are kept in one file: what a killed run reads again.
_TEXTS_AT_ONCE: Final = 64

OnProgress = Callable[[int, int], None]


class Insides:
    """Activations of drafts, in their order, read once and kept on disk.

    One pass gives both what stands at the prompt's last token, before any token of the
    answer, and what stands at the answer's tokens.

    Attributes:
        drafts: Those that fit the model's context.
        too_long: How many do not.
    """

    def __init__(
        self,
        model: WhiteBoxModel,
        drafts: Sequence[LabelledDraft],
        *,
        directory: Path,
        pieces: int | None = None,
    ) -> None:
        """Encode the drafts; nothing is read yet.

        Args:
            model: Reads them; others may use it meanwhile.
            drafts: What is to be read.
            directory: Where activations are kept.
            pieces: How many pieces of evidence are read; None for all.
        """
        self._model, self._directory = model, directory
        passings = [_passing(model, draft, pieces) for draft in drafts]
        fits = [len(passing.ids) <= model.context_length for passing in passings]
        self.drafts = tuple(d for d, fit in zip(drafts, fits, strict=True) if fit)
        self._passings = [p for p, fit in zip(passings, fits, strict=True) if fit]
        self.too_long = len(drafts) - len(self.drafts)

    def read(
        self, taps: Sequence[Tap], *, on_progress: OnProgress = lambda _done, _all: None
    ) -> None:
        """Read what is not kept yet at `taps`, the longest texts first.

        Raises:
            LayerError: A tap does not exist in this model.
        """
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
        """Return for each draft float32 (1, width) of its prompt's last token."""
        return [values[:1] for values in self.of_sequences(tap)]

    def of_sequences(self, tap: Tap) -> list[Activations]:
        """Return for each draft float32 (1 + its tokens + 1, width).

        Of its prompt's last token, its own tokens, and its end token.
        """
        self.read([tap])
        keys = [key_of(passing) for passing in self._passings]
        found = self._cache(tap).read(keys)
        return [found[key] for key in keys]

    def _cache(self, tap: Tap) -> ActivationCache:
        return ActivationCache(
            self._directory, language_model=self._model.fingerprint, tap=tap
        )


def _passing(model: WhiteBoxModel, draft: LabelledDraft, pieces: int | None) -> Passing:
    passing = passing_of(model.tokens, draft.prompt, draft.answer, pieces=pieces)
    return replace(passing, start=passing.start - 1)


def _batches(missing: dict[str, Passing]) -> Iterator[list[tuple[str, Passing]]]:
    rows = sorted(missing.items(), key=lambda row: -len(row[1].ids))
    for first in range(0, len(rows), _TEXTS_AT_ONCE):
        yield rows[first : first + _TEXTS_AT_ONCE]
