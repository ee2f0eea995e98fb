"""Stage 3: a question in a verified entry's own words gets its answer unchanged.

An entry is matched by its own question, if it has one, and by other wordings that
experts confirmed. A small distance alone does not tell "gold card fee" from "silver
card fee", so the words must agree too. Nor does a large distance mean another question:
a typo or a plural moves a short question's vector far, so the same words in the same
order count as distance 0. Of "info on swimming lessons, please" only the words of the
topic count.
"""

import re
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from kb.text.slips import is_slip
from kb.text.terms import Terms, question_kind, stem, terms
from kb.text.vocabulary import OPPOSITES, ORDERING
from kb.text.words import tokens
from kb.types import Evidence

from .gates import QUESTION_RATIO, Gate, judge
from .policy import Policy
from .values import Question, Retrieval, VerbatimMatch


def match_verbatim(
    question: Question, retrieval: Retrieval, *, policy: Policy
) -> VerbatimMatch:
    """Return the nearest verified question-and-answer entry that asks the same.

    An entry that hard refusal would not pass is never returned: a smaller alpha can
    only refuse more.
    """
    texts = tuple(dict.fromkeys((question.text, _without_frame(question.text))))
    asked = [(text, _stems(text)) for text in texts]
    pairs = sorted(
        (
            (_distance(asked, piece, policy), piece)
            for piece in retrieval.evidence
            if piece.questions and piece.is_verified
        ),
        key=itemgetter(0),
    )
    match = next((p for p in pairs if _may_match(texts, *p, policy)), None)
    distance, shown = match or next(iter(pairs), (None, None))
    values = {
        "question_distance": distance,
        "same_words": float(_asks_for(texts, shown)) if shown else None,
    }
    if shown and distance != shown.ratio:  # what a replay compares with another alpha
        values[QUESTION_RATIO] = shown.ratio
    found = match[1] if match else None
    return VerbatimMatch(found, judge(Gate.VERBATIM, values, policy).signals)


def asks_the_same(question: str, known: str) -> bool:
    """Return whether two questions use the same content words, numbers and negation.

    Word order, articles, courtesies and one typo in a long word do not matter; an extra
    or missing word, another kind of question ("when" for "where") or an opposite
    ("before" for "after") does.
    """
    ours, theirs = terms(question), terms(known)
    return (
        bool(ours.words)
        and ours.numbers == theirs.numbers
        and ours.is_negated == theirs.is_negated
        and question_kind(question) == question_kind(known)
        and not _oppose(ours.directions, theirs.directions)
        and _same_words(ours, theirs)
    )


def is_denied(question: str, piece: Evidence) -> bool:
    """Return whether an expert rejected the piece as an answer to this question."""
    return any(asks_the_same(question, denied) for denied in piece.denied)


def _may_match(
    texts: Sequence[str], distance: float, piece: Evidence, policy: Policy
) -> bool:
    return (
        0 < policy.verbatim_distance >= distance
        and piece.ratio < policy.alpha
        and _asks_for(texts, piece)
        and not any(is_denied(text, piece) for text in texts)
    )


def _distance(
    asked: Sequence[tuple[str, Sequence[str]]], piece: Evidence, policy: Policy
) -> float:
    """Return a piece's distance; 0 if nothing but endings and a typo differ.

    A piece that hard refusal would not pass keeps its distance, by which a replay can
    tell from the log that it did not match.

    Args:
        asked: The question, as it is and without its frame, each with its stems,
            function words included.
    """
    if piece.ratio >= policy.alpha:
        return piece.distance
    is_same = any(
        len(known) == len(stems)
        and all(a == b or is_slip(a, b) for a, b in zip(stems, known, strict=True))
        and asks_the_same(text, other)
        for other in piece.questions
        for known in (_stems(other),)
        for text, stems in asked
    )
    return 0.0 if is_same else piece.distance


# Phrases before and after a topic that only say that somebody asks.
_INFORMATION: Final = "(?:infos?|information|details|informationen)"
_FRAME: Final = re.compile(
    rf"""^\W*(?:(?:hi|hello|hey|hallo|please|bitte)\b\W*)*
        (?:(?:(?:tell\ me|(?:i\ )?(?:need|want)|looking\ for)\s+)?
           (?:(?:more|some|any)\s+)?
           (?:{_INFORMATION}\s+(?:on|about|for|zu|über)|about|regarding|concerning)\s+)?
      |(?:\W+(?:infos?|information|informationen))?(?:\W+(?:please|pls|thanks|thank\ you|bitte|danke))*\W*$""",
    re.IGNORECASE | re.VERBOSE,
)


def _without_frame(question: str) -> str:
    return _FRAME.sub("", question) or question


def _stems(text: str) -> list[str]:
    return [stem(said) for said, _ in tokens(text)]


def _asks_for(texts: Sequence[str], piece: Evidence) -> bool:
    return any(
        asks_the_same(text, known) for text in texts for known in piece.questions
    )


def _same_words(ours: Terms, theirs: Terms) -> bool:
    if ORDERING & ours.directions & theirs.directions:
        first, second = ours.words, theirs.words
    else:
        first, second = tuple(sorted(set(ours.words))), tuple(sorted(set(theirs.words)))
    if len(first) != len(second):
        return False
    left = [word for word in first if word not in second]
    right = [word for word in second if word not in first]
    if not left and not right:
        return first == second
    return len(left) == len(right) == 1 and is_slip(left[0], right[0])


def _oppose(ours: frozenset[str], theirs: frozenset[str]) -> bool:
    """Return whether a word only in one is the opposite of a word only in the other."""
    only_ours, only_theirs = ours - theirs, theirs - ours
    return any(
        (pair & only_ours) and (pair & only_theirs) and len(pair & ours & theirs) == 0
        for pair in OPPOSITES
    )
