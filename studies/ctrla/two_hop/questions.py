"""Two-hop questions from public facts: neither of the two entries alone answers them.

One fact links what the question names to something else (the bridge), and the other
states the answer about the bridge: "What is the capital of the country that Kuoppa is
in?". Facts and answers come from PopQA and from the True-False set's true statements;
only the questions are composed here.

References:
    Ho et al., "Constructing a Multi-hop QA Dataset" (2WikiMultihopQA, COLING 2020),
    whose compositional questions are made from two triples in the same way. Mallen et
    al. (PopQA, ACL 2023). Azaria and Mitchell (True-False, EMNLP 2023).
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

# Limit per family and answer: without it, a third of the answers would be the United
# States.
_MAX_OF_AN_ANSWER: Final = 5

_HEADQUARTERS: Final = " has headquarters in "
_INVENTED: Final = " invented the "
_LIVED: Final = " lived in "
_SYMBOL: Final = " has the symbol "
_NUMBER: Final = " has the atomic number of "
# Not a single thing, or not made by the person named.
_VAGUE: Final = re.compile(
    r"[(/]|discovery|theor|law|concept|multiple|first|early|improve|innovat|conservat|explor"
)


@dataclass(frozen=True, slots=True)
class TwoHop:
    """A question and the two entries that together answer it.

    Attributes:
        references: A right answer contains one of these.
        first: Links what the question names to the bridge.
        second: States the answer about the bridge.
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
    """All questions in asking order, all facts, and a digest of 64 hex digits."""

    questions: tuple[TwoHop, ...]
    sources: tuple[Source, ...]
    digest: str


def read_two_hop(data: Path, *, seed: int) -> TwoHopData:
    """Make all questions that the files allow, alternating between the families.

    The order within a family depends only on the ids and the seed, so the first n
    questions are the same however many are asked.

    Raises:
        EvaluationDataError: A file is missing or malformed, or no two facts can be
            linked.
    """
    facts = read_facts(data)
    families = [
        _bounded(sorted(family(facts), key=lambda one: _lot(one.id, seed)))
        for family in (_places, _births, _companies, _inventors, _elements)
    ]
    in_turn = [one for row in zip_longest(*families) for one in row if one]
    if not in_turn:
        raise EvaluationDataError(
            f"{data}: no two facts of PopQA and the true statements can be linked."
        )
    return TwoHopData(tuple(in_turn), tuple(facts.sources()), facts.digest)


def _places(facts: Facts) -> Iterator[TwoHop]:
    """PopQA's place, its country, the country's capital."""
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
    """PopQA's person, the city of birth, the city's country."""
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
    """A company, the country of its headquarters, the country's capital."""
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
    """An invention, its inventor, the country where the inventor lived."""
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
    """A symbol, its element, the element's atomic number."""
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
