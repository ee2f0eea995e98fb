"""The facts behind two-hop questions: PopQA's answers and true statements."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qa.evaluation.cases import read_lines
from qa.evaluation.knowledge import Fact, Source
from qa.evaluation.metrics.text import normalised
from qa.evaluation.suites.options import digest_of, find_file, misread
from studies.cbdr.timing.knowledge import true_statements

CITY: Final = " is a city in "
COUNTRY_OF: Final = re.compile(r"In what country is (.+)\?")
BORN: Final = re.compile(r"In what city was (.+) born\?")

_POPQA: Final = "popqa/popqa_longtail.jsonl"
_STATEMENTS: Final = ("capitals", "cities", "companies", "elements", "inventions")
# Abbreviations in the true statements.
_IN_FULL: Final = {"us": "United States", "uk": "United Kingdom"}
# Shorter names of countries ("it", "no", "in") also match ordinary words.
_MIN_NAME: Final = 3


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts read from the files.

    Attributes:
        popqa: Rows with an answer whose question occurs once.
        said: True statements by subject.
        capitals: {country: city}, without countries that have several.
        cities: {city: country}, without names that occur in several countries.
        digest: 64 hex digits over the files.
    """

    popqa: Sequence[Mapping[str, Any]]
    said: Mapping[str, Sequence[str]]
    capitals: Mapping[str, str]
    cities: Mapping[str, str]
    digest: str

    def capital(self, names: Iterable[str]) -> tuple[str, Fact] | None:
        """Return a country's capital under any of its names with its fact, or None."""
        for name in names:
            if city := self.capitals.get(name):
                return city, _capital_fact(name, city)
        return None

    def asked(
        self, question: re.Pattern[str]
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield PopQA's rows whose question matches, each with the name in it."""
        for row in self.popqa:
            if match := question.fullmatch(row["question"]):
                yield match[1], row

    def names_of_countries(self) -> dict[str, set[str]]:
        """Return {normalised name: all names} of the countries in PopQA's answers."""
        found: dict[str, set[str]] = defaultdict(set)
        for _, row in self.asked(COUNTRY_OF):
            for name in row["answers"]:
                found[normalised(name)] |= set(row["answers"])
        return found

    def sources(self) -> Iterator[Source]:
        """Yield all facts of the files, including those that no question needs."""
        yield Source("popqa", "Answers", [fact_of(row) for row in self.popqa])
        capitals = [_capital_fact(*pair) for pair in sorted(self.capitals.items())]
        yield Source("capitals", "Capitals", capitals)
        cities = {text for name in ("capitals", "cities") for text in self.said[name]}
        lying = [Fact(text) for text in sorted(cities) if CITY in text]
        yield Source("cities", "Cities", lying)
        for name in ("companies", "elements", "inventions"):
            stated = [Fact(text) for text in self.said[name]]
            yield Source(name, name.capitalize(), stated)


def read_facts(data: Path) -> Facts:
    """Read PopQA and the true statements below a directory of data sets.

    Raises:
        EvaluationDataError: A file is missing or laid out otherwise.
    """
    popqa = find_file("popqa", data, _POPQA)
    files = [
        find_file("true_false", data, f"true_false/{name}_true_false.csv")
        for name in _STATEMENTS
    ]
    rows = [row for _, row in read_lines(popqa, dict)]
    try:
        times = Counter(row["question"] for row in rows)
        rows = [row for row in rows if times[row["question"]] == 1 and row["answers"]]
    except (KeyError, TypeError) as error:
        raise misread(popqa, "PopQA") from error
    said = {
        name: sorted({sentence(text) for text in true_statements(file)})
        for name, file in zip(_STATEMENTS, files, strict=True)
    }
    # The file of capitals states each as "a city in" its country.
    by_country = defaultdict(set)
    for city, country in pairs(said["capitals"], CITY):
        by_country[country].add(city)
    capitals = {name: min(own) for name, own in by_country.items() if len(own) == 1}
    cities = unambiguous(pairs([*said["capitals"], *said["cities"]], CITY))
    return Facts(rows, said, capitals, cities, digest_of(popqa, *files))


def fact_of(row: Mapping[str, Any]) -> Fact:
    return Fact(row["answers"][0], question=row["question"])


def known_as(country: str, names: Mapping[str, set[str]]) -> tuple[str, ...]:
    """Return a country's name as stated, then its other names that are long enough."""
    short = normalised(country)
    others = names.get(short, set()) | {_IN_FULL.get(short, country)}
    long = {name for name in others if len(normalised(name)) >= _MIN_NAME}
    return (country, *sorted(long - {country}))


def pairs(said: Iterable[str], between: str) -> Iterator[tuple[str, str]]:
    """Yield the text before and after `between` in each statement that contains it."""
    for text in said:
        subject, found, rest = text.partition(between)
        if found:
            yield subject, rest.removesuffix(".")


def unambiguous(found: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the keys that have exactly one value, with that value."""
    values: dict[str, set[str]] = defaultdict(set)
    for key, value in found:
        values[key].add(value)
    return {key: min(own) for key, own in sorted(values.items()) if len(own) == 1}


def sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _capital_fact(country: str, city: str) -> Fact:
    return Fact(city, question=f"What is the capital of {country}?")
