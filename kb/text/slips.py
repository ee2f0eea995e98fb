"""Slips of the pen: words that are one letter off others."""

import re
from collections.abc import Callable, Iterable
from typing import Final

_LENGTH: Final = 6  # shorter words are one letter from too many others
_WORD: Final = re.compile(rf"[^\W\d_]{{{_LENGTH},}}")


def is_slip(one: str, other: str) -> bool:
    """Tell whether two words differ by one letter changed, lost, added or swapped.

    First letters must agree, so that a prefix that turns the meaning is no slip.
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
    """Return a text with each slip spelt as the one word of other texts that it is near.

    Words that exist stay: an employer is no slip of an employee.

    Args:
        by: The texts whose words are taken for right.
        is_word: Tells of a word in small letters whether it exists.
    """
    if all(is_word(word.lower()) for word in _WORD.findall(text)):
        return text  # as mostly: nothing else is read
    known = {found.lower() for other in by for found in _WORD.findall(other)}

    def right(match: re.Match[str]) -> str:
        word = match[0].lower()
        if word in known or is_word(word):
            return match[0]
        near = [each for each in known if is_slip(word, each)]
        return near[0] if len(near) == 1 else match[0]

    return _WORD.sub(right, text)
