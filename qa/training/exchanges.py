"""Questions with one thing exchanged, so that their answer no longer fits.

A third of SQuAD 2.0 was made unanswerable by people in this way (Rajpurkar et al.,
2018): with another name, another number, an opposite or a negation. If the exchanged
term is in the entry, exchanging it there too gives an entry that answers again; without
such entries, an exchanged question could be recognised by how odd it sounds.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final

from .knowledge_sets import (
    KnowledgeSet,
    SourceEntry,
    SourceQuestion,
    whole_words,
)

_PAIRS: Final = """
above below, more fewer, more less, highest lowest, largest smallest, biggest smallest,
most least, before after, increase decrease, increased decreased, increases decreases,
first last, first second, north south, northern southern, east west, eastern western,
minimum maximum, with without, early late, earliest latest, older younger, oldest youngest,
best worst, better worse, higher lower, greater smaller, larger smaller, longer shorter,
open close, open cancel, start stop, begin end, began ended, started stopped, gain lose,
gained lost, won lost, win lose, buy sell, bought sold, import export, internal external,
inside outside, upper lower, positive negative, strong weak, stronger weaker, rich poor,
public private, male female, men women, father mother, son daughter, king queen,
husband wife, allow forbid, allowed forbidden, accept reject, accepted rejected,
support oppose, supported opposed, create destroy, created destroyed, enter leave,
join leave, joined left, arrive depart, born buried, birth death, present absent,
always never, hot cold, hottest coldest, light dark, fast slow, faster slower, major minor,
majority minority, add remove, activate deactivate, enable disable, lock unlock,
block unblock, send receive, borrow lend, lent borrowed, deposit withdraw,
upgrade downgrade, arrival departure, incoming outgoing, domestic international,
online offline, summer winter, old new, lost found, free paid, monthly yearly,
daily weekly, same different, single double, debit credit, landlord tenant,
employer employee, buyer seller
"""
_NUMBER: Final = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)")
_YEAR: Final = re.compile(r"1\d{3}|20\d\d")
_NAME: Final = re.compile(
    r"(?<!^)(?<![.?!] )\b[A-Z][\w'\u2019-]*[a-z0-9]"
    r"(?: (?:of the |of |the )?[A-Z][\w'\u2019-]*[a-z0-9])*"
)
_AUXILIARY: Final = re.compile(
    r"\b(is|are|was|were|did|does|do|can|could|has|have|had|will|would|should)\b"
)
_ASKS: Final = re.compile(r"(what|which|who|where|when|how)\b", re.IGNORECASE)
_YEARS_APART: Final = (1, 2, 3, 5, 10, 20, 50, 100)
_MIN_NAME_LENGTH: Final = 4  # characters
_TRIES: Final = 30
# Probabilities of using an opposite that is not in the entry, and a negation: too many
# are possible.
_UNNAMED, _NEGATED = 0.3, 0.15


class Kind(StrEnum):
    NAME = "name"
    NUMBER = "number"
    OPPOSITE = "opposite"
    NEGATION = "negation"


@dataclass(frozen=True, slots=True)
class Exchange:
    """An exchanged question that the entries of the original do not answer.

    Attributes:
        entry: One that does, with the same thing exchanged; None if it cannot be made.
    """

    kind: Kind
    text: str
    entry: SourceEntry | None


class Exchanges:
    """Makes exchanged questions of a knowledge set, with its own names and numbers."""

    def __init__(self, known: KnowledgeSet, chance: random.Random) -> None:
        self._known, self._chance = known, chance
        numbers, self._names = set(), defaultdict[str, set[str]](set)
        for entry in known.entries:
            numbers |= {found.group() for found in _NUMBER.finditer(entry.text)}
            for found in _NAME.finditer(entry.text):
                if len(found.group()) >= _MIN_NAME_LENGTH:
                    self._names[entry.title].add(found.group())
        self._numbers = sorted(numbers)

    def exchange(self, question: SourceQuestion) -> Exchange | None:
        """Return an answerable question with one thing exchanged, or None."""
        answering = [self._known.entries[at] for at in sorted(question.answered_by)]
        said = " ".join(f"{e.title} {e.question} {e.text}" for e in answering)
        places = [*self._places(question.text, said)]
        if not places:
            return None
        kind, found = self._chance.choice(places)
        old = found.group()
        new = self._other(kind, old, answering[0].title, f"{said} {question.text}")
        if new is None:
            return None
        text = question.text[: found.start()] + new + question.text[found.end() :]
        return Exchange(kind, text, self._changed(kind, answering[0], old, new))

    def _places(self, text: str, said: str) -> Iterator[tuple[Kind, re.Match[str]]]:
        low, chance = said.lower(), self._chance
        for found in _NUMBER.finditer(text):
            if found.group() in said:
                yield Kind.NUMBER, found
        for found in _NAME.finditer(text):
            if found.group() in said:
                yield from [(Kind.NAME, found)] * 2
        for found in re.finditer(r"\w+", text):
            word = found.group().lower()
            if word in OPPOSITES and (word in low or chance.random() < _UNNAMED):
                yield from [(Kind.OPPOSITE, found)] * 2
        negated = _AUXILIARY.search(text) if _ASKS.match(text) else None
        if negated and chance.random() < _NEGATED:
            yield Kind.NEGATION, negated

    def _other(self, kind: Kind, old: str, title: str, said: str) -> str | None:
        """Return a replacement that does not occur in `said`, or None."""
        chance = self._chance
        if kind == Kind.NEGATION:
            return f"{old} not"
        if kind == Kind.NUMBER and _YEAR.fullmatch(old):
            apart = chance.choice(_YEARS_APART) * chance.choice((-1, 1))
            new = str(int(old) + apart)
        elif kind == Kind.NUMBER:
            new = chance.choice(self._numbers)
        elif kind == Kind.OPPOSITE:
            new = chance.choice(OPPOSITES[old.lower()])
            new = new.capitalize() if old[0].isupper() else new
        else:
            return next(self._fitting(old, title, said), None)
        is_there = whole_words(new).search(said)
        return None if is_there else new

    def _fitting(self, old: str, title: str, said: str) -> Iterator[str]:
        """Yield names of the same title, of similar length, that are not in `said`."""
        pool = sorted(self._names[title])
        for name in self._chance.sample(pool, min(len(pool), _TRIES)):
            if name not in said and len(name.split()) <= len(old.split()) + 1:
                yield name

    def _changed(
        self, kind: Kind, entry: SourceEntry, old: str, new: str
    ) -> SourceEntry | None:
        if kind == Kind.NEGATION:
            return None
        is_exact = re.NOFLAG if kind == Kind.NAME else re.IGNORECASE
        pattern = whole_words(old, is_exact)
        put = partial(pattern.sub, lambda at: _as_large(new, at.group()))
        changed = replace(
            entry,
            title=put(entry.title),
            question=put(entry.question),
            text=put(entry.text),
        )
        has_it = (changed.question, changed.text) != (entry.question, entry.text)
        return changed if has_it else None


def _as_large(new: str, old: str) -> str:
    return new[:1].upper() + new[1:] if old[0].isupper() else new


def _opposites(pairs: str) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for pair in pairs.split(","):
        one, other = pair.split()
        found[one].append(other)
        found[other].append(one)
    return dict(found)


OPPOSITES: Final = _opposites(_PAIRS)
