"""Signals measured on a pair of sentences: numbers, and the places that clash."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from kb.text.quantities import Quantity
from kb.text.sentences import Sentence
from kb.text.vocabulary import (
    ANTONYMS,
    DENYING_PREFIXES,
    FRONTING,
    LIMITING,
    POPULATIONS,
    SCOPES,
)
from kb.text.words import Span, Word

from .values import Clash

_OPPOSITE: Final = frozenset(frozenset(pair.split()) for pair in ANTONYMS)
_OTHER_SCOPE: Final = frozenset(frozenset(pair.split()) for pair in SCOPES)
_PREDICATE_PAIRS: Final = frozenset(
    frozenset(pair.split())
    for pair in ("before after", "above below", "inside outside", "with without")
)


@dataclass(frozen=True, slots=True)
class Measured:
    numbers: dict[str, float]
    clashes: tuple[Clash, ...] = field(default=())


def measure(first: Sentence, second: Sentence) -> Measured:
    """Measure a pair of sentences.

    The numbers `overlap`, `containment`, `slots`, `names`, `subjects`, `fronts`,
    `scopes`, `shared_dimension`, `lone_dimension` and `length` show whether both have
    the same subject; `value`, `count`, `agreeing`, `negation`, `axis` and `antonym`
    whether they say the same about it.
    """
    ours, theirs = first.stems, second.stems
    only_ours = [at for at in first.content if first.words[at].stem not in theirs]
    only_theirs = [at for at in second.content if second.words[at].stem not in ours]
    antonyms = list(_antonyms(first, second, only_ours, only_theirs))
    turned = {position for pair in antonyms for position in (pair[0],)}
    values, agreeing = _compared(first.quantities, second.quantities)
    poles, agreeing_poles = _axes(first, second)
    denied = first.is_denied != second.is_denied
    limits = _limits(first, only_theirs) or _limits(second, only_ours)
    overlap, containment = _overlaps(ours, theirs)
    dimensions = _dimensions(first), _dimensions(second)
    numbers = {
        "overlap": overlap,
        "containment": containment,
        "slots": float(min(_slots(first, second, only_ours, only_theirs, turned), 2)),
        "names": float(_names(first, only_ours) and _names(second, only_theirs)),
        "subjects": float(_other_subject(first, second)),
        "fronts": float(_other_front(first, second) + _other_front(second, first)),
        "scopes": float(min(_scopes(first, second), 2)),
        "shared_dimension": float(bool(dimensions[0] & dimensions[1])),
        "exchanged": 1 - overlap
        if _is_exchange(first, second, only_ours, only_theirs)
        else 0.0,
        "lone_dimension": float(len(dimensions[0] ^ dimensions[1]) > 0),
        "length": _length(first, second),
        "value": float(min(sum(q.dimension != "count" for q, _ in values), 2)),
        "count": float(min(sum(q.dimension == "count" for q, _ in values), 2)),
        "agreeing": float(min(agreeing, 2)),
        "negation": float(denied),
        "axis": float(min(len(poles), 2)),
        "axis_agreeing": float(min(agreeing_poles, 2)),
        "antonym": float(min(len(antonyms), 2)),
        "renamed": float(_is_one_name_apart(first, second)),
    }
    clashes = [
        *(_value_clash(a, b) for a, b in values),
        *(_pair_clash("antonym", first, second, a, b) for a, b in antonyms),
        *(_pair_clash("axis", first, second, a, b) for a, b in poles),
        *([_negation_clash(first, second)] if denied else []),
        *([_limit_clash(first, second)] if limits else []),
    ]
    return Measured(numbers, tuple(clashes))


def _compared(
    ours: Sequence[Quantity], theirs: Sequence[Quantity]
) -> tuple[list[tuple[Quantity, Quantity]], int]:
    """Return the clashing pairs of quantities, and how many quantities agree."""
    left, right = list(ours), list(theirs)
    agreeing = 0
    for one in ours:
        match = next(
            (o for o in right if o.dimension == one.dimension and one.agrees(o)), None
        )
        if match is not None:
            left.remove(one)
            right.remove(match)
            agreeing += 1
    clashing: list[tuple[Quantity, Quantity]] = []
    for one in left:
        other = next((o for o in right if _comparable(one, o)), None)
        if other is not None:
            right.remove(other)
            clashing.append((one, other))
    return clashing, agreeing


def _comparable(one: Quantity, other: Quantity) -> bool:
    if one.dimension != other.dimension:
        return False
    if one.dimension == "count":
        return one.counted == other.counted or not (one.counted and other.counted)
    return True


def _axes(first: Sentence, second: Sentence) -> tuple[list[tuple[int, int]], int]:
    """Return the positions of the poles that clash, and how many axes agree."""
    both = first.poles.keys() & second.poles.keys()
    apart = [a for a in both if first.poles[a][0] != second.poles[a][0]]
    places = sorted((first.poles[a][1], second.poles[a][1]) for a in apart)
    return places, len(both) - len(apart)


def _antonyms(
    first: Sentence, second: Sentence, ours: Sequence[int], theirs: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield positions of opposite words, including "before meals" and "after meals"."""
    for a in ours:
        for b in theirs:
            if _opposite(first.words[a], second.words[b]):
                yield a, b
    for a, b in _prepositions(first, second):
        if frozenset((first.words[a].said, second.words[b].said)) in _PREDICATE_PAIRS:
            yield a, b


def _opposite(one: Word, other: Word) -> bool:
    if frozenset((one.said, other.said)) in _OPPOSITE:
        return True
    shorter, longer = sorted((one.stem, other.stem), key=len)
    shortest, longest = sorted((one.said, other.said), key=len)
    return any(
        long.endswith(short) and long.removesuffix(short) in DENYING_PREFIXES
        for short, long in ((shorter, longer), (shortest, longest))
    )


def _prepositions(first: Sentence, second: Sentence) -> Iterator[tuple[int, int]]:
    """Yield positions of differing prepositions before a shared word, not in fronts."""
    if [word.said for word in first.words] == [word.said for word in second.words]:
        return  # "before meals or after meals" does not contradict itself
    for a, b in _neighbours(first, second):
        if a - 1 in first.front or b - 1 in second.front or not a or not b:
            continue
        one, other = first.words[a - 1].said, second.words[b - 1].said
        if one != other and one in _DIRECTING and other in _DIRECTING:
            yield a - 1, b - 1


_DIRECTING: Final = FRONTING | {"without"}


def _neighbours(first: Sentence, second: Sentence) -> Iterator[tuple[int, int]]:
    """Yield positions of shared content words, or of the articles before them."""
    for a in first.content:
        for b in second.content:
            if first.words[a].stem == second.words[b].stem:
                yield _before_article(first, a), _before_article(second, b)


def _before_article(sentence: Sentence, at: int) -> int:
    while at and sentence.words[at - 1].said in {"the", "a", "an", "their", "your"}:
        at -= 1
    return at


def _overlaps(ours: frozenset[str], theirs: frozenset[str]) -> tuple[float, float]:
    shared = len(ours & theirs)
    union = len(ours | theirs)
    fewest = min(len(ours), len(theirs))
    return (shared / union if union else 0.0, shared / fewest if fewest else 0.0)


def _is_exchange(
    first: Sentence, second: Sentence, ours: Sequence[int], theirs: Sequence[int]
) -> bool:
    """Return whether each has a word of which the other has no form.

    "repay" and "repaid" are forms of one word, and so are "lend" and "lent".
    """
    left = [first.words[at].stem for at in ours]
    right = [second.words[at].stem for at in theirs]

    def is_alone(word: str, others: Sequence[str]) -> bool:
        start = word[:_ROOT] if len(word) > _ROOT else word[: _ROOT - 1]
        return not any(other.startswith(start) for other in others)

    return any(is_alone(word, right) for word in left) and any(
        is_alone(word, left) for word in right
    )


_ROOT: Final = 4  # letters that all forms of a word share


def _slots(
    first: Sentence,
    second: Sentence,
    ours: Sequence[int],
    theirs: Sequence[int],
    turned: set[int],
) -> int:
    """Count different words in the same place: "Gold card" and "Silver card"."""
    left = {
        _slot(first, at, step) for at in ours if at not in turned for step in (-1, 1)
    }
    right = {_slot(second, at, step) for at in theirs for step in (-1, 1)}
    return len((left & right) - {None})


def _slot(sentence: Sentence, at: int, step: int) -> tuple[int, str] | None:
    beside = at + step
    if not 0 <= beside < len(sentence.words) or beside not in sentence.content:
        return None
    return step, sentence.words[beside].stem


def _names(sentence: Sentence, positions: Sequence[int]) -> bool:
    words = sentence.words
    return any(words[at].is_name or words[at].is_number for at in positions)


def _limits(sentence: Sentence, others: Sequence[int]) -> bool:
    """Return whether one limits itself with "only" while the other names more."""
    return bool(others) and any(word.said in LIMITING for word in sentence.words)


def _is_one_name_apart(first: Sentence, second: Sentence) -> bool:
    """Return whether the same words differ in exactly one name: "hall A", "hall B"."""
    if len(first.words) != len(second.words):
        return False
    both = zip(first.words, second.words, strict=True)
    apart = [(one, other) for one, other in both if one.stem != other.stem]
    return len(apart) == 1 and all(word.is_name for word in apart[0])


def _other_subject(first: Sentence, second: Sentence) -> bool:
    """Return whether the first thing that each names does not occur in the other."""
    one, other = _subject(first), _subject(second)
    return bool(one and other) and one not in second.stems and other not in first.stems


def _subject(sentence: Sentence) -> str:
    inner = [at for at in sentence.content if at not in sentence.front]
    return sentence.words[inner[0]].stem if inner else ""


def _other_front(one: Sentence, other: Sentence) -> bool:
    """Return whether it begins with a condition that the other does not mention."""
    said = {other.words[at].stem for at in range(len(other.words))}
    values = [q for q in one.quantities if q.words[0] in one.front]
    words = [one.words[at] for at in one.front if at in one.content]
    missing = [word for word in words if word.stem not in said]
    apart = [
        q
        for q in values
        if not any(q.dimension == o.dimension and q.agrees(o) for o in other.quantities)
    ]
    return bool(missing or apart) and one.words[0].said not in {"to", "for_all"}


def _scopes(first: Sentence, second: Sentence) -> int:
    """Count words that name a different group, season, way or limit."""
    ours = {word.said for word in first.words}
    theirs = {word.said for word in second.words}
    pairs = sum(
        bool(pair & (ours - theirs)) and bool(pair & (theirs - ours))
        for pair in _OTHER_SCOPE
    )
    groups = (ours & POPULATIONS, theirs & POPULATIONS)
    return pairs + (bool(groups[0]) and bool(groups[1]) and not groups[0] & groups[1])


def _dimensions(sentence: Sentence) -> frozenset[str]:
    return frozenset(
        q.dimension if q.dimension != "count" else f"count {q.counted}"
        for q in sentence.quantities
    )


def _length(first: Sentence, second: Sentence) -> float:
    shortest, longest = sorted((len(first.words), len(second.words)))
    return 1 - shortest / longest


def _value_clash(one: Quantity, other: Quantity) -> Clash:
    kinds = {
        "clock": "times",
        "date": "dates",
        "weekday": "weekdays",
        "duration": "durations",
        "percent": "shares",
        "ordinal": "positions",
    }
    kind = kinds.get(
        one.dimension, "amounts" if one.dimension.startswith("money") else "numbers"
    )
    return Clash("value", one.span, other.span, f"Different {kind}.")


def _pair_clash(
    signal: str, first: Sentence, second: Sentence, a: int, b: int
) -> Clash:
    return Clash(
        signal, first.words[a].span, second.words[b].span, "They say the opposite."
    )


def _negation_clash(first: Sentence, second: Sentence) -> Clash:
    return Clash(
        "negation", _denial(first), _denial(second), "One denies what the other says."
    )


def _limit_clash(first: Sentence, second: Sentence) -> Clash:
    one, other = (
        next((word.span for word in each.words if word.said in LIMITING), None)
        for each in (first, second)
    )
    return Clash("only", one, other, "One says only some of what the other says.")


def _denial(sentence: Sentence) -> Span | None:
    return sentence.words[sentence.denials[0]].span if sentence.denials else None
