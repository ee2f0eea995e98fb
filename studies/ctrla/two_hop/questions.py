"""Two-hop questions of public facts: each takes two entries, and neither alone answers it.

A question names something of which one fact tells what it belongs to (the bridge), and
another fact tells of that what is asked: "What is the capital of the country that Kuoppa is
in?". Facts and answers come from PopQA and from the True-False set's true statements; no
text is written but the questions.

References:
    Ho et al., "Constructing a Multi-hop QA Dataset" (2WikiMultihopQA, COLING 2020), whose
    compositional questions are made of two triples in the same way. Mallen et al. (PopQA,
    ACL 2023). Azaria and Mitchell (True-False, EMNLP 2023).
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final

from qa.evaluation.knowledge import Fact, Source
from qa.exceptions import EvaluationDataError

from .facts import (
    BORN,
    CITY,
    COUNTRY_OF,
    Facts,
    fact_of,
    known_as,
    pairs,
    read_facts,
    sentence,
    unambiguous,
)

# Of one family those with the same answer: without a bound it would be the United States
# for a third of them.
_MAX_OF_AN_ANSWER: Final = 5

_HEADQUARTERS: Final = " has headquarters in "
_INVENTED: Final = " invented the "
_LIVED: Final = " lived in "
_SYMBOL: Final = " has the symbol "
_NUMBER: Final = " has the atomic number of "
# No single thing, or not made by the one who is named.
_VAGUE: Final = re.compile(
    r"[(/]|discovery|theor|law|concept|multiple|first|early|improve|innovat|conservat|explor"
)


@dataclass(frozen=True, slots=True)
class TwoHop:
    """A question, and the two entries that answer it together.

    Attributes:
        references: What a right answer contains one of.
        first: Tells the bridge of what the question names.
        second: Tells the answer of the bridge.
    """

    id: str
    family: str
    question: str
    references: tuple[str, ...]
    first: Fact
    second: Fact

    @property
    def answer(self) -> str:
        return self.references[0]

    @property
    def facts(self) -> tuple[Fact, Fact]:
        return self.first, self.second


@dataclass(frozen=True, slots=True)
class TwoHopData:
    """All questions in the order of asking, all facts, and 64 hex digits over the files."""

    questions: tuple[TwoHop, ...]
    sources: tuple[Source, ...]
    digest: str


def read_two_hop(data: Path, *, seed: int) -> TwoHopData:
    """Make all questions that the files allow, the families in turn.

    The seed orders each family by ids alone, so that the first n are the same however
    many are asked.

    Raises:
        EvaluationDataError: A file is missing or laid out otherwise, or no fact leads to
            another one.
    """
    facts = read_facts(data)
    families = [
        _bounded(sorted(family(facts), key=lambda one: _lot(one.id, seed)))
        for family in (_places, _births, _companies, _inventors, _elements)
    ]
    in_turn = [one for row in zip_longest(*families) for one in row if one]
    if not in_turn:
        raise EvaluationDataError(
            f"{data}: no fact of PopQA or of the true statements leads to another one."
        )
    return TwoHopData(tuple(in_turn), tuple(facts.sources()), facts.digest)


def _places(facts: Facts) -> Iterator[TwoHop]:
    """PopQA's place, its country, the capital of that."""
    for name, row in facts.asked(COUNTRY_OF):
        if found := facts.capital(row["answers"]):
            city, second = found
            yield TwoHop(
                f"place:{row['id']}",
                "place, country, capital",
                f"What is the capital of the country that {name} is in?",
                (city,),
                fact_of(row),
                second,
            )


def _births(facts: Facts) -> Iterator[TwoHop]:
    """PopQA's person, the city of birth, the country of that."""
    names = facts.names_of_countries()
    for name, row in facts.asked(BORN):
        city = next((one for one in row["answers"] if one in facts.cities), None)
        if city:
            country = facts.cities[city]
            yield TwoHop(
                f"birth:{row['id']}",
                "person, city, country",
                f"In which country is the city where {name} was born?",
                known_as(country, names),
                fact_of(row),
                Fact(sentence(f"{city}{CITY}{country}")),
            )


def _companies(facts: Facts) -> Iterator[TwoHop]:
    """A company, the country of its headquarters, the capital of that."""
    at_home = unambiguous(pairs(facts.said["companies"], _HEADQUARTERS))
    for name, country in at_home.items():
        if found := facts.capital([country]):
            city, second = found
            yield TwoHop(
                f"company:{name}",
                "company, country, capital",
                f"What is the capital of the country where {name} has its headquarters?",
                (city,),
                Fact(sentence(f"{name}{_HEADQUARTERS}{country}")),
                second,
            )


def _inventors(facts: Facts) -> Iterator[TwoHop]:
    """An invention, who made it, the country that they lived in."""
    names, said = facts.names_of_countries(), facts.said["inventions"]
    lived = unambiguous(pairs(said, _LIVED))
    made = unambiguous((what, who) for who, what in pairs(said, _INVENTED))
    for what, who in made.items():
        country = lived.get(who)
        if country and not _VAGUE.search(f"{what} {country}"):
            yield TwoHop(
                f"invention:{what}",
                "invention, inventor, country",
                f"In which country did the inventor of the {what} live?",
                known_as(country, names),
                Fact(sentence(f"{who}{_INVENTED}{what}")),
                Fact(sentence(f"{who}{_LIVED}{country}")),
            )


def _elements(facts: Facts) -> Iterator[TwoHop]:
    """A symbol, its element, the atomic number of that."""
    said = facts.said["elements"]
    numbers = unambiguous(pairs(said, _NUMBER))
    for name, symbol in unambiguous(pairs(said, _SYMBOL)).items():
        if number := numbers.get(name):
            yield TwoHop(
                f"element:{name}",
                "symbol, element, atomic number",
                f"What is the atomic number of the element with the symbol {symbol}?",
                (number,),
                Fact(sentence(f"{name}{_SYMBOL}{symbol}")),
                Fact(sentence(f"{name}{_NUMBER}{number}")),
            )


def _bounded(family: Iterable[TwoHop]) -> list[TwoHop]:
    times: Counter[str] = Counter()
    kept = []
    for one in family:
        times[one.answer] += 1
        if times[one.answer] <= _MAX_OF_AN_ANSWER:
            kept.append(one)
    return kept


def _lot(name: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}/{name}".encode()).digest()
