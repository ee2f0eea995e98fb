"""Text into facts: one sentence, or a few that only stand together."""

import re
from collections.abc import Iterator

from sentencex import segment

LONGEST = 1_200
"""Characters of a group; a longer sentence stays whole."""

_UNKNOWN_LANGUAGE = "en"  # its rules are the library's fallback for most languages
# A sentence that begins so points at the one before it.
_LEANING = re.compile(
    r"(?:it|its|this|that|these|those|they|their|them|he|she|his|her|such|there|then|"
    r"however|therefore|otherwise|also|but|and|or|so|if so|if not|instead|in this case|"
    r"in that case|after that|for example|for instance|note that|"
    r"er|sie|es|dies\w*|das|dabei|dann|damit|dafür|dazu|jedoch|aber|und|oder|sonst|"
    r"deshalb|daher|außerdem|auch|hierfür|hierzu|andernfalls|in diesem fall|"
    r"zum beispiel)\b",
    re.IGNORECASE,
)
_SHORT = 25


def split_into_facts(text: str, language: str) -> Iterator[str]:
    """Yield the facts of a paragraph, each at most a few sentences.

    A sentence that leans on the one before it (by a pronoun or a connective), or is too
    short to say anything, is kept with it, up to `LONGEST` characters.

    Args:
        language: Two letters as of a knowledge base; others than those known are split
            by the most general rules.
    """
    group = ""
    for sentence in _sentences(text, language):
        leans = _LEANING.match(sentence) or min(len(sentence), len(group)) < _SHORT
        if group and leans and len(group) + 1 + len(sentence) <= LONGEST:
            group = f"{group} {sentence}"
        else:
            if group:
                yield group
            group = sentence
    if group:
        yield group


def _sentences(text: str, language: str) -> list[str]:
    known = language if language != "xx" else _UNKNOWN_LANGUAGE
    parts = (" ".join(part.split()) for part in segment(known, " ".join(text.split())))
    return [part for part in parts if part]
