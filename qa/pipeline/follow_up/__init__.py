"""A follow-up as a standalone question, using only words that its asker typed.

"And for the Business card?" after "How much does a Gold card cost?" becomes the earlier
question with the new noun phrase in place of the similar one; in "How long is it
valid?", "it" is replaced by what it refers to. This is rule-based resolution of
non-sentential utterances (Fernandez, Ginzburg and Lappin, 2007; Raghu et al., 2015).
Readings are ranked by form and, where forms are tied, by the distance of the nearest
known entry. If no reading is safe, the question is asked as typed.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kb.text.terms import language_of, stem

from . import words
from .fragments import same_verb, substituted
from .references import (
    about_the_same,
    asked_of,
    conditioned,
    is_bare,
    is_condition,
    is_thin,
    pronoun,
    referring,
)
from .text import END, TOKEN, Reading, Text

Distances = Callable[[Sequence[str]], Sequence[float]]
"""Returns for each question the distance of the nearest known entry; less is better."""

MAX_WORDS: Final = 14
"""A longer question is asked as typed: it states its own subject."""

MAX_CHARACTERS: Final = 300
"""The same limit in characters, for the follow-up and the earlier question alike."""

_SENTENCES = re.compile(r"[.?!;]\s")
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=\S)")
# Among readings whose form scores differ by less, the nearest known entry decides.
_TIE: Final = 0.8
# Below this form score, a reading is only used if known entries are nearer to it.
_SURE: Final = 3.3
# A question that may stand on its own is replaced only by a reading nearer by this
# much.
_CLEARLY_NEARER: Final = 0.1


@dataclass(frozen=True, slots=True)
class _Typed:
    """A follow-up split into its parts.

    Attributes:
        body: The text without courtesies, opening words and closing words.
        is_marked: Whether it began with "and", "what about" or the like.
        is_asked: Whether it ends with a question mark.
        is_fragment: Whether it has neither subject nor verb.
    """

    body: Text
    is_marked: bool
    is_asked: bool
    is_fragment: bool


def standalone(
    typed: str,
    earlier: str,
    *,
    asked_back: bool = False,
    distances: Distances | None = None,
) -> str:
    """Return a follow-up as a standalone question; `typed` if it already is one.

    Args:
        earlier: The standalone question before it.
        asked_back: Whether the asker was just asked what the question means, so that a
            few words may answer that.
        distances: Chooses between readings of equal form. Without it the first reading
            is taken, and a question that may stand on its own is left as it is.
    """
    said = _parse(typed)
    if said is None:
        return typed
    # A fragment takes the frame of the last sentence; "it" may refer to any sentence.
    last = _SENTENCE_END.split(earlier.strip())[-1]
    frame = last if said.is_fragment else earlier
    if len(frame) > MAX_CHARACTERS:
        return typed
    before = Text(frame)
    if not before.tokens:
        return typed
    is_reply = asked_back and said.is_fragment
    read = _reply(said, earlier) if is_reply else said
    found = _distinct(_readings(read, before), typed)
    if not found:
        return typed
    near = [each.text for each in found if each.form > found[0].form - _TIE]
    is_follow_up = _depends(said) or _is_other_number(said, before)
    lead = 0.0 if is_follow_up else _CLEARLY_NEARER
    is_sure = lead == 0.0 and found[0].form >= _SURE
    if is_sure and (distances is None or len(near) == 1):
        return near[0]
    if distances is None:
        return typed
    own, unsaid, *others = distances([typed, frame, *near])
    best = min(range(len(near)), key=lambda at: others[at])
    # A reply that says which entry is meant brings the question nearer to that entry.
    limit = min(own - lead, unsaid) if is_reply else own - lead
    return near[best] if is_sure or others[best] < limit else typed


def may_depend(typed: str, *, asked_back: bool = False) -> bool:
    """Return whether a question looks as if it might need the one before it."""
    said = _parse(typed)
    if said is None:
        return False
    if asked_back and said.is_fragment:
        return True
    is_thin_question = said.body.is_question and is_thin(said.body)
    is_asked = said.is_fragment and said.is_asked
    return _depends(said) or is_asked or is_thin_question


def depends(typed: str) -> bool:
    """Return whether a question certainly needs the one before it."""
    said = _parse(typed)
    return said is not None and _depends(said)


def is_grounded(text: str, typed: str, earlier: Sequence[str]) -> bool:
    """Return whether a rewritten question keeps all that was typed and adds nothing.

    Words are compared by their stems. Function words are ignored, except those that
    change the meaning ("not", "without", "under").
    """
    given = _stems(typed, free=words.FREE)
    allowed = given.union(*(_stems(each, free=words.FREE) for each in earlier))
    made = _stems(text, free=words.FREE)
    return bool(made) and made <= allowed and given - _UNSAID <= made


_UNSAID: Final = frozenset(map(stem, ["one", "ones", "same", "thing"]))


def _stems(text: str, *, free: Collection[str] = words.FUNCTION) -> set[str]:
    return {
        stem(part)
        for token in TOKEN.finditer(text.lower())
        for part in re.split("[-'\u2019/]", token[0])
        if part and part not in free and part not in {"s", "t"}
    }


def _parse(typed: str) -> _Typed | None:
    if len(typed) > MAX_CHARACTERS:
        return None
    text = " ".join(typed.split()).strip(END)
    if courtesy := words.COURTESY.match(text):
        text = text[courtesy.end() :]
    marker = words.MARKER.match(text)
    if marker:
        text = text[marker.end() :]
    body = Text(words.TRAILING.sub("", text).strip(END))
    if not body.tokens or len(body.tokens) > MAX_WORDS or _SENTENCES.search(body.text):
        return None
    is_asked = typed.rstrip().endswith("?")
    return _Typed(body, marker is not None, is_asked, _is_fragment(body))


def _is_fragment(body: Text) -> bool:
    lowers = body.lowers()
    if is_condition(lowers):
        return False
    verbs = words.AUXILIARIES | words.QUESTION_WORDS | words.PEOPLE
    return not any(word.partition("'")[0] in verbs or word in verbs for word in lowers)


def _reply(said: _Typed, earlier: str) -> _Typed:
    """Turn a reply such as "the Business card" into "for the Business card"."""
    if said.body.lowers()[0] in words.PREPOSITIONS:
        return replace(said, is_marked=True)
    joined = "für" if language_of(earlier) == "de" else "for"
    body = Text(f"{joined} {said.body.text}")
    return replace(said, body=body, is_marked=True)


def _depends(said: _Typed) -> bool:
    body, lowers = said.body, said.body.lowers()
    if said.is_fragment:
        begins = words.PREPOSITIONS | words.DETERMINERS
        return said.is_marked or (len(lowers) > 1 and lowers[0] in begins)
    if is_condition(lowers):
        return said.is_marked
    return is_bare(lowers) or pronoun(body) is not None


def _is_other_number(said: _Typed, before: Text) -> bool:
    """Return whether only a number was typed: "2024?" after a question about 2023."""
    tokens = said.body.tokens
    return (
        len(tokens) == 1
        and tokens[0].is_number
        and any(token.is_number for token in before.tokens)
    )


def _readings(said: _Typed, before: Text) -> Iterator[Reading]:
    lowers = said.body.lowers()
    if said.is_fragment:
        if said.is_marked or said.is_asked or lowers[0] in words.PREPOSITIONS:
            yield from substituted(said.body, before)
        if said.is_marked:
            yield from same_verb(said.body, before)
    elif is_bare(lowers):
        yield from asked_of(said.body, before)
    elif is_condition(lowers):
        asks = any(word in words.QUESTION_WORDS for word in lowers[1:])
        if said.is_marked and not asks and "," not in said.body.text:
            yield from conditioned(said.body, before)
    elif not said.body.is_question:
        return
    elif (at := pronoun(said.body)) is not None:
        yield from referring(said.body, before, at)
    elif said.is_marked or is_thin(said.body):
        yield from about_the_same(said.body, before)


def _distinct(found: Iterator[Reading], typed: str) -> list[Reading]:
    """Return the distinct readings, best first, without the question as typed."""
    best: dict[str, Reading] = {}
    for each in found:
        key = each.text.casefold().strip(END)
        if key not in best or best[key].form < each.form:
            best[key] = each
    best.pop(typed.casefold().strip(END), None)
    return sorted(best.values(), key=lambda each: -each.form)
