"""Typing errors: words that differ from others by one letter."""

import re
from collections.abc import Callable, Iterable
from typing import Final

_LENGTH: Final = 6  # shorter words differ by one letter from too many others
_WORD: Final = re.compile(rf"[^\W\d_]{{{_LENGTH},}}")


def is_slip(one: str, other: str) -> bool:
    """Return whether two words differ by one letter changed, lost, added or swapped.

    The first letters must agree: a prefix that reverses the meaning is not a slip.
    """
    if min(len(one), len(other)) < _LENGTH or one[0] != other[0]:
        return False
    if len(one) == len(other):
        apart = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        if len(apart) == 1:
            return True
        return (
            len(apart) == 2
            and apart[1] == apart[0] + 1
            and one[apart[0]] == other[apart[1]]
            and one[apart[1]] == other[apart[0]]
        )
    shorter, longer = sorted((one, other), key=len)
    return len(longer) == len(shorter) + 1 and any(
        longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer))
    )


def respelt(text: str, by: Iterable[str], *, is_word: Callable[[str], bool]) -> str:
    """Return a text with each slip replaced by the only similar word of other texts.

    Existing words stay: "employer" is not a slip for "employee".

    Args:
        by: The texts whose words are taken as correct.
        is_word: Returns whether a lower-case word exists.
    """
    if all(is_word(word.lower()) for word in _WORD.findall(text)):
        return text  # the usual case, in which `by` is not read
    known = {found.lower() for other in by for found in _WORD.findall(other)}

    def right(match: re.Match[str]) -> str:
        word = match[0].lower()
        if word in known or is_word(word):
            return match[0]
        near = [each for each in known if is_slip(word, each)]
        return near[0] if len(near) == 1 else match[0]

    return _WORD.sub(right, text)
