"""Splits prose into facts that can be understood alone."""

import re
from collections.abc import Iterator, Sequence

from sentencex import segment

from .vocabulary import IMPERATIVES, STOP_WORDS

PIECE_CHARACTERS = 400
"""Maximum characters of a paragraph that stays one fact: about sixty words."""

_MAX_CHARACTERS = 1_200  # of sentences joined; a longer one stays whole
_UNKNOWN_LANGUAGE = "en"  # its rules are the library's fallback for most languages
_SHORT_CHARACTERS = 25
_SHORT_WORDS = 6

_POINTING = (
    r"(?:it|its|this|that|these|those|they|their|them|he|she|his|her|hers|him|theirs|"
    r"such|the same|the (?:former|latter))"
)
_LEADING = (
    r"(?:if|when|whenever|once|where|while|until|unless|because|since|as|before|after|"
    r"during|for|from|in|on|at|by|with|without|within|under|of|to|like|besides|despite|"
    r"instead of|apart from|because of|all|any|both|each|either|neither|none|most|many|"
    r"some|few|one|two|only|even|also|and|but|or)"
)
# A sentence that begins so refers to the one before it: "If that doesn't settle it".
_LEANING = re.compile(
    rf"(?:(?:{_LEADING} (?:of )?){{0,2}}{_POINTING}|there|then|else|however|therefore|"
    r"hence|thus|otherwise|also|but|and|or|nor|so|if so|if not|if (?:necessary|needed)|"
    r"instead|afterwards|beforehand|until then|by then|since then|both|either|neither|"
    r"others?|another|likewise|similarly|moreover|furthermore|in addition|additionally|"
    r"besides|still|nevertheless|meanwhile|alternatively|conversely|consequently|"
    r"as a result|for example|for instance|in particular|note that|exceptions?|except|to \w+ "
    r"(?:it|one|them|this|that)|"
    r"er|sie|es|ihn|ihm|ihr|ihre\w*|sein\w*|dies\w*|jene\w*|das|da|dabei|dann|damit|dafür|"
    r"dazu|dort|danach|davor|davon|daran|darauf|darin|darüber|jedoch|aber|und|oder|sonst|"
    r"deshalb|daher|deswegen|trotzdem|stattdessen|außerdem|auch|beide\w*|hierfür|hierzu|"
    r"andernfalls|falls (?:ja|nein|nicht)|in diese[mn] fall|bis dahin|ansonsten|ebenso|"
    r"zum beispiel|bitte)\b",
    re.IGNORECASE,
)
# Refers to the sentence before: "The catalogue shows these with the code", "says so".
_OBJECT = re.compile(
    r"\b(?:as well|too)[.!]*$|\b(?:says?|said|does|do|did|done|doing|think|thinks) so\b"
    r"|\b(?:these|those|this|them)(?=[.,;:]|$| (?:with|without|under|in|on|at|by|for|from|to|"
    r"as|and|or|can|may|must|will|should|is|are|was|were|has|have|does|do)\b)",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"(?:please|always|never|do not|don't|don\u2019t)\b|\w+en Sie\b", re.IGNORECASE
)


def split_into_facts(text: str, language: str) -> Iterator[str]:
    """Yield the facts of a paragraph: all of it, or pieces of about `PIECE_CHARACTERS`.

    It is never cut before a sentence that depends on the one before it: alone, such a
    sentence means nothing, or something else.
    """
    piece = ""
    for unit in _units(sentences_of(text, language)):
        if piece and len(piece) + 1 + len(unit) > PIECE_CHARACTERS:
            yield piece
            piece = unit
        else:
            piece = f"{piece} {unit}".strip()
    if piece:
        yield piece


def _units(sentences: Sequence[str]) -> Iterator[str]:
    """Yield each sentence with those that depend on it."""
    unit = ""
    for sentence in sentences:
        joins = leans(sentence) or _is_short(unit)
        if unit and joins and len(unit) + 1 + len(sentence) <= _MAX_CHARACTERS:
            unit = f"{unit} {sentence}"
        else:
            if unit:
                yield unit
            unit = sentence
    if unit:
        yield unit


def leans(sentence: str) -> bool:
    """Return whether a sentence needs the one before it.

    It refers back by a pronoun or a connective, is an instruction without its object,
    or is too short to be understood alone.
    """
    return bool(
        _is_short(sentence)
        or _LEANING.match(sentence)
        or _OBJECT.search(sentence)
        or _TELLING.match(sentence)
        or _is_imperative(sentence)
    )


def _is_short(text: str) -> bool:
    return len(text) < _SHORT_CHARACTERS or len(text.split()) < _SHORT_WORDS


def _is_imperative(sentence: str) -> bool:
    """Recognize "Book at least six weeks ahead", but not "Book loans are free"."""
    first, second, *_ = [*sentence.lower().split(), "", ""]
    follows = second.strip(",.;:")
    return first in IMPERATIVES and (follows in STOP_WORDS or follows[:1].isdecimal())


def sentences_of(text: str, language: str) -> list[str]:
    known = language if language != "xx" else _UNKNOWN_LANGUAGE
    parts = (" ".join(part.split()) for part in segment(known, " ".join(text.split())))
    return [part for part in parts if part]
