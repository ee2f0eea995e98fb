"""The two words that a model answers with, as one token each.

Which words they are moves what a model prefers before it has read anything, so a
deployment may choose them. Every tokenizer cuts words its own way: a pair is checked once,
when the model is there, and not found out by answers that make no sense.
"""

from dataclasses import dataclass
from typing import Final

from probes.language_model import Tokens
from qa.exceptions import LabelPairError

# Most tokenizers have a word with the space before it as one token, some only without.
_LEADS: Final = (" ", "")


@dataclass(frozen=True, slots=True)
class LabelPair:
    """What stands for "it is so" and for "it is not"."""

    known: str
    unknown: str

    def __str__(self) -> str:
        """Return it as the setting writes it."""
        return f"{self.known}/{self.unknown}"


@dataclass(frozen=True, slots=True)
class LabelTokens:
    """A pair as tokens of one model."""

    known: int
    unknown: int

    @property
    def options(self) -> tuple[int, int]:
        """Both, "unknown" first: a label's place among them is whether it is known."""
        return self.unknown, self.known


def read_pair(text: str) -> LabelPair:
    """Read a pair as the setting writes it: two different words with a slash between.

    Raises:
        LabelPairError: It is none.
    """
    words = [word.strip() for word in text.split("/")]
    if len(words) != 2 or not all(words) or words[0] == words[1]:
        raise LabelPairError(
            f"{text[:80]!r} is no pair of labels. Write two different words with a slash "
            'between them, such as "true/false": first the one for what is known.'
        )
    return LabelPair(*words)


def label_tokens(pair: LabelPair, tokens: Tokens, *, model: str) -> LabelTokens:
    """Return the pair's tokens, both with a space before them or both without.

    Args:
        model: The model's name, for the message.

    Raises:
        LabelPairError: They are not one token each, or the same one.
    """
    known: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()
    for lead in _LEADS:
        known = tokens.encode_text(f"{lead}{pair.known}")
        unknown = tokens.encode_text(f"{lead}{pair.unknown}")
        if len(known) == len(unknown) == 1 and known != unknown:
            return LabelTokens(known[0], unknown[0])
    raise LabelPairError(
        f'The labels "{pair}" are {len(known)} and {len(unknown)} tokens to {model}, '
        "and must be one each, and different ones. Set NESCIO_HISTORY_LABELS to words that this model knows whole, "
        'such as "true/false", "yes/no" or "A/B".'
    )
