"""The question in a long message: the sentences that ask, with the context they need.

The verifier was trained on questions of up to forty tokens and reads no more, so that
it would see only the greeting of a polite letter; and what a letter says around its
question makes every entry seem irrelevant. Of 72 answerable questions to four
organisations, 51 were shown an answer when asked alone, and none within a letter of
sixty words, whether read up to its fortieth token or whole. Read by the sentences that
ask, it is 51 again.
"""

import re
from collections.abc import Sequence
from typing import Final

from kb.text.terms import terms

from .follow_up import words

MAX_WORDS: Final = 28
"""A message of up to this many words is read as it stands."""

_MIN_CONTENT: Final = 3  # words; with fewer, a question needs the sentence before it
_NAME_WORDS: Final = 4
_SENTENCE_END: Final = re.compile(r"(?<=[.!?\u2026])[\"'\u201d)]*\s+|\s*\n\s*")
_ASKS: Final = re.compile(r"\?[\"'\u201d)!?]*$")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
# Words that may precede the question word if there is no question mark.
_LEADS: Final = words.words("""
and so but now also then well please ok or und aber nun bitte
""")
_CLOSING: Final = re.compile(
    r"\b(?:thank|thanks|regards|sincerely|cheers|hear(?:ing)? from you|dank|danke|grü(?:ß|ss)en?)\b",
    re.IGNORECASE,
)
_JOINT: Final = re.compile(
    r"(?:[,;:]|\b(?:so|and|but|or|know|wondering|also|und|aber|wissen))\s+"
    rf"(?=(?:{'|'.join(sorted(words.QUESTION_WORDS | words.AUXILIARIES))})\b)",
    re.IGNORECASE,
)
# A question with one of these words may refer to the sentence before it.
_REFERS: Final = words.words("it that this these those them they one das dies diese es")


def question_in(message: str) -> str:
    """Return the sentences of a long message that ask; a short message as it is.

    These are the last ones that fit into `MAX_WORDS`. If they say little by themselves
    or refer back, the sentence before them is included too, provided that it fits.
    """
    if len(message.split()) <= MAX_WORDS:
        return message
    found = [each for each in _SENTENCE_END.split(message) if _WORD.search(each)]
    if not found:
        return message
    asking = _asking(found)
    kept = [asking[-1]]
    for at in reversed(asking[:-1]):
        if _length(found, [at, *kept]) > MAX_WORDS:
            break
        kept.insert(0, at)
    before = [kept[0] - 1, *kept]
    fits = kept[0] > 0 and _length(found, before) <= MAX_WORDS
    if fits and _leans(" ".join(found[at] for at in kept)):
        kept = before
    question = " ".join(found[at].strip() for at in kept)
    return _last_clause(question) if _length(found, kept) > MAX_WORDS else question


def _last_clause(sentence: str) -> str:
    """Return the clause that asks at the end of a long sentence, or its last words."""
    ends = [sentence[at.end() :] for at in _JOINT.finditer(sentence)]
    fitting = (each for each in ends if len(each.split()) <= MAX_WORDS)
    last_words = " ".join(sentence.split()[-MAX_WORDS:])
    return next((each for each in fitting if not _leans(each)), last_words)


def _asking(found: Sequence[str]) -> list[int]:
    """Return the indices of the sentences that ask, or of the last if none does."""
    marked = [at for at, each in enumerate(found) if _ASKS.search(each.rstrip())]
    begun = [at for at, each in enumerate(found) if _begins_to_ask(each)]
    return marked or begun or [_before_the_closing(found) - 1]


def _before_the_closing(found: Sequence[str]) -> int:
    """Return how many sentences precede thanks, regards and a name; at least 1."""
    end = len(found)
    while end > 1:
        last, before = found[end - 1], found[end - 2]
        is_name = len(last.split()) <= _NAME_WORDS and _CLOSING.search(before)
        if not (is_name or _CLOSING.search(last)):
            break
        end -= 1
    return end


def _begins_to_ask(sentence: str) -> bool:
    read = [each.lower() for each in _WORD.findall(sentence)]
    while read and read[0] in _LEADS:
        del read[0]
    return bool(read) and read[0] in words.QUESTION_WORDS | words.AUXILIARIES


def _leans(question: str) -> bool:
    said = {each.lower() for each in _WORD.findall(question)}
    few = len(terms(question).words) < _MIN_CONTENT
    return few or not said.isdisjoint(_REFERS)


def _length(found: Sequence[str], places: Sequence[int]) -> int:
    return sum(len(found[at].split()) for at in places)
