"""Written tokens as pieces of text."""

from collections.abc import Sequence
from itertools import pairwise

from probes.language_model import Tokens


def pieces_of(ids: Sequence[int], tokens: Tokens) -> tuple[str, ...]:
    """Return written tokens as text, one each; joined they give it.

    A character may take several tokens; it stands with the last of them.
    """
    whole = [tokens.decode(ids[:count]) for count in range(len(ids) + 1)]
    whole = [text.rstrip("\ufffd") for text in whole]
    return tuple(after[len(before) :] for before, after in pairwise(whole))
