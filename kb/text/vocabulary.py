"""The English and German words by which texts are compared, from `vocabulary.toml`.

All word lists are there: the comparison of questions with evidence (`terms`), the
search for conflicts (`sentences`, `quantities`), the cutting of paragraphs (`facts`)
and the checks of proposals read the same ones.
"""

import tomllib
from pathlib import Path
from typing import Any, Final

_LISTS: Final[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)


def _words(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name].split())


def _numbered(name: str) -> dict[str, float]:
    return {
        word: float(number) for number, words in _LISTS[name] for word in words.split()
    }


STOP_WORDS_BY_LANGUAGE: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in _LISTS["stop_words"].items()
}
STOP_WORDS = frozenset().union(*STOP_WORDS_BY_LANGUAGE.values())
IMPERATIVES = _words("imperatives")
DISTRIBUTIVES = _words("distributives")
FILLERS = _words("fillers")  # common words that name nothing
NEGATIONS = _words("negations")
LEADS: dict[str, int] = _LISTS["leads"]
AXES: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    axis: (frozenset(poles["does"].split()), frozenset(poles["does_not"].split()))
    for axis, poles in _LISTS["axes"].items()
}
# Poles whose word is itself a denial, wherever it stands.
DENYING = frozenset().union(*(negative for _, negative in AXES.values()))
ANTONYMS: tuple[str, ...] = tuple(_LISTS["antonyms"])
DENYING_PREFIXES: tuple[str, ...] = tuple(_LISTS["denying_prefixes"])
SCOPES: tuple[str, ...] = tuple(_LISTS["scopes"])
POPULATIONS = _words("populations")
FRONTING = _words("fronting")
LIMITING = _words("limiting")
DESIGNATED = _words("designated")
QUESTION_KINDS: dict[str, str] = {
    phrase: kind
    for kind, phrases in _LISTS["question_kinds"].items()
    for phrase in phrases
}
DIRECTIONS = _words("directions")
OPPOSITES = frozenset(frozenset(pair.split()) for pair in _LISTS["opposites"])
REVERSALS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = tuple(
    (tuple(one), tuple(other)) for one, other in _LISTS["reversals"]
)
ORDERING = _words("ordering")
NUMBER_WORDS = _numbered("number_words")
REPETITIONS = _numbered("repetitions")
PERIODS = _numbered("periods")  # in days
SCALES: dict[str, float] = _LISTS["scales"]
ORDINALS = _numbered("ordinals")
MONTHS = _numbered("months")
WEEKDAYS = _numbered("weekdays")
ABBREVIATIONS = _words("abbreviations")
NOW: dict[str, list[str]] = _LISTS["now"]

# The first word of a unit is its name.
_UNITS = (
    ("money:euro", 1, "euro euros eur €"),
    ("money:dollar", 1, "dollar dollars usd $"),
    ("money:pound", 1, "pound pounds gbp £"),
    ("money:franc", 1, "franc francs franken chf"),
    ("money:pound", 1e-2, "pence p"),
    ("money:cent", 1, "cent cents"),
    ("percent", 1, "percent prozent %"),
    ("mass", 1e-6, "microgram micrograms mikrogramm mcg µg"),
    ("mass", 1e-3, "milligram milligrams milligramm mg"),
    ("mass", 1, "gram grams gramm g"),
    ("mass", 1e3, "kilogram kilograms kilogramm kilo kilos kg"),
    ("volume", 1e-3, "millilitre millilitres milliliter milliliters ml"),
    ("volume", 1, "litre litres liter liters l"),
    ("length", 1e-2, "centimetre centimetres centimeter centimeters zentimeter cm"),
    ("length", 1, "metre metres meter meters m"),
    ("length", 1609.344, "mile miles"),
    ("length", 1e3, "kilometre kilometres kilometer kilometers km"),
    ("data", 1, "megabyte megabytes mb"),
    ("data", 1e3, "gigabyte gigabytes gb"),
    ("data", 1e6, "terabyte terabytes tb"),
    ("energy", 1, "kwh"),
    ("duration", 1 / 86_400, "seconds"),
    ("duration", 1 / 86_400, "sekunde sekunden"),
    ("duration", 1 / 1440, "minute minutes minuten min"),
    ("duration", 1 / 24, "hour hours h"),
    ("duration", 1 / 24, "stunde stunden"),
    ("duration", 1, "day days"),
    ("duration", 1, "tag tage tagen"),
    ("duration", 7, "week weeks"),
    ("duration", 7, "woche wochen"),
    ("duration", 30.4375, "month months"),
    ("duration", 30.4375, "monat monate monaten"),
    ("duration", 91.3125, "quarters"),
    ("duration", 91.3125, "quartal quartale"),
    ("duration", 365.25, "year years"),
    ("duration", 365.25, "jahr jahre jahren"),
    ("times", 1, "times mal"),
)
UNITS = {
    word: (dimension, float(scale))
    for dimension, scale, words in _UNITS
    for word in words.split()
}
"""Dimension and scale to its common unit, by word; durations are in days."""
UNIT_NAMES = {
    word: words.split()[0] for _, _, words in _UNITS for word in words.split()
}
CURRENCIES = frozenset(
    UNIT_NAMES[word] for word in UNITS if UNITS[word][0].startswith("money")
)
