"""The white-box model that judges a language model's answers by its activations."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Protocol

from django.conf import settings

from probes.language_model import Tokens, WhiteBoxModel, load_model
from probes.language_model.second_pass import Passing
from probes.taps import Tap
from qa.inference import grounded_form
from qa.pipeline.language_model import LanguageModel, Prompt


class PassingForm(Protocol):
    """A module that lays out a prompt and its answer for a second pass."""

    @property
    def FORM(self) -> str:  # noqa: N802  # a module's constant
        """The form's name, as on the cards of probes."""

    def sequence_passing(
        self,
        tokens: Tokens,
        prompt: Prompt,
        answer: str,
        *,
        written: str = "",
        pieces: int | None = None,
    ) -> Passing:
        """Keep the prompt's last token, the answer's tokens and its end token."""

    def prompt_ids(
        self, tokens: Tokens, prompt: Prompt, *, pieces: int | None = None
    ) -> tuple[int, ...]:
        """Return the tokens up to the answer."""


def form_of(language_model: LanguageModel) -> PassingForm:
    """Return the form that this model's answers are read in, by default grounded."""
    form: PassingForm = getattr(language_model, "form", grounded_form)
    return form


def load_white_box(language_model: LanguageModel) -> WhiteBoxModel | None:
    """Return the model itself, or a server's surrogate; None if that is "none"."""
    own = getattr(language_model, "model", None)
    if isinstance(own, WhiteBoxModel):
        return own
    if settings.SURROGATE_MODEL == "none":
        return None
    return load_model(settings.SURROGATE_MODEL)


def default_tap(blocks: int) -> Tap:
    """Return the output of the block at two thirds of the depth.

    In the bundled model a linear probe reaches AUROC 0.77 there, 0.68 at the middle,
    which the paper reads, and 0.67 at the end.
    """
    return Tap(max(0, 2 * blocks // 3 - 1))


def middle_tap(blocks: int) -> Tap:
    return Tap(max(0, blocks // 2 - 1))


def token_texts(ids: Sequence[int], tokens: Tokens) -> tuple[str, ...]:
    """Return written tokens as text; a character counts with the last of its tokens."""
    whole = [tokens.decode(ids[:count]) for count in range(len(ids) + 1)]
    whole = [text.rstrip("\ufffd") for text in whole]
    return tuple(after[len(before) :] for before, after in pairwise(whole))


# In place of minus infinity, which JSON can't represent.
_MIN: Final = -1e6


def bounded_mean(values: Sequence[float]) -> float | None:
    """Return the mean, at least -1e6; None if there are no values."""
    return max(sum(values) / len(values), _MIN) if values else None
