"""The quantities of a sentence: amounts with their units, points in time, counts.

Two quantities can be compared if they have the same dimension: money of one currency,
percent, durations, frequencies, masses, clock times, days, weekdays, or counts of the
same thing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from . import vocabulary
from .terms import canonical_number
from .words import Span, Word, starts_with_digit

_SAME: Final = 0.04  # of the larger value: 30 days are one month, 4 weeks are not
_BY_DAYS: Final = frozenset({"duration", "frequency"})
_MAX_DIGITS: Final = 16  # longer numbers are not compared
_NOON: Final = {"noon": 720.0, "midday": 720.0, "mittag": 720.0}
_HALVES: Final = {
    "am": 0, "a.m": 0, "morning": 0, "pm": 12, "p.m": 12, "afternoon": 12, "evening": 12,
}  # fmt: skip
_RANGE: Final = frozenset({"to", "and", "until", "till", "or", "bis"})


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with its dimension.

    Attributes:
        dimension: Such as "money:euro", "percent", "duration" (days), "frequency" (times
            a day), "clock" (minutes since midnight), "weekday" (0 is Monday), "date",
            "ordinal", "count".
        value: In the dimension's common unit. A date is year * 10,000 + month * 100 +
            day, with 0 for missing parts.
        counted: Stem of what is counted, "" for other dimensions.
        words: Positions of its words.
    """

    dimension: str
    value: float
    counted: str
    span: Span
    words: tuple[int, ...]

    def agrees(self, other: "Quantity") -> bool:
        """Return whether both are equal, given the same dimension."""
        if self.dimension == "date":
            return _same_date(int(self.value), int(other.value))
        largest = max(abs(self.value), abs(other.value))
        tolerance = _SAME if self.dimension in _BY_DAYS else 1e-9
        return abs(self.value - other.value) <= tolerance * largest


def find_quantities(words: Sequence[Word]) -> list[Quantity]:
    found: list[Quantity] = []
    at = 0
    while at < len(words):
        quantity = next(
            (q for read in _READERS for q in [read(words, at)] if q is not None), None
        )
        if quantity is None:
            at += 1
            continue
        found.append(quantity)
        at = max(quantity.words) + 1
    return found


def parse_number(said: str) -> float | None:
    """Return the number in a token: "1,000.50", "1.000,50" and "ten" alike."""
    if said in vocabulary.NUMBER_WORDS:
        return vocabulary.NUMBER_WORDS[said]
    if (
        not said
        or not starts_with_digit(said)
        or ":" in said
        or said.count("-") == 2
        or len(said) > _MAX_DIGITS
    ):
        return None
    plain = said.replace("\u00a0", "").replace("\u202f", "").rstrip(".")
    return float(canonical_number(plain))


def _quantity(
    words: Sequence[Word],
    positions: Sequence[int],
    dimension: str,
    value: float,
    counted: str = "",
) -> Quantity:
    span = Span(words[positions[0]].span.start, words[positions[-1]].span.end)
    return Quantity(dimension, value, counted, span, tuple(positions))


def _word_at(words: Sequence[Word], at: int) -> str:
    return words[at].said if 0 <= at < len(words) else ""


def _date(words: Sequence[Word], at: int) -> Quantity | None:
    said = words[at].said
    if said.count("-") == 2 and starts_with_digit(said):
        year, month, day = (int(part) for part in said.split("-"))
        return _quantity(words, [at], "date", year * 10_000 + month * 100 + day)
    parts = said.split(".")
    if len(parts) == 3 and starts_with_digit(said) and int(parts[1]) <= 12:
        year = int(parts[2] or 0)
        year += 2_000 if 0 < year < 100 else 0
        number = year * 10_000 + int(parts[1]) * 100 + int(parts[0])
        return _quantity(words, [at], "date", number)
    return _written_date(words, at)


def _written_date(words: Sequence[Word], at: int) -> Quantity | None:
    """Read "31 July 2025", "July 31st" and "in July"; "may" alone is the verb."""
    before, after = _day(words, at), _month(words, at)
    if before and (month := _month(words, at + before[1])):
        positions = list(range(at, at + before[1] + 1))
        day = before[0]
    elif after and (later := _day(words, at + 1)) and _word_at(words, at) != "may":
        month, day = after, later[0]
        positions = list(range(at, at + 1 + later[1]))
    elif after and (words[at].is_name or words[at].said not in {"may", "march"}):
        month, day, positions = after, 0, [at]
    else:
        return _year(words, at)
    year = _word_at(words, positions[-1] + 1)
    if _is_year(year):
        positions.append(positions[-1] + 1)
    number = (int(year) * 10_000 if _is_year(year) else 0) + month * 100 + day
    return _quantity(words, positions, "date", number)


def _day(words: Sequence[Word], at: int) -> tuple[int, int] | None:
    said = _word_at(words, at).rstrip(".")
    if not (_is_plain(said) and 1 <= int(said) <= 31):
        return None
    length = 2 if _word_at(words, at + 1) in {"st", "nd", "rd", "th"} else 1
    return int(said), length + (_word_at(words, at + length) == "of")


def _month(words: Sequence[Word], at: int) -> int:
    return int(vocabulary.MONTHS.get(_word_at(words, at), 0))


def _is_plain(said: str) -> bool:
    return said.isascii() and said.isdigit() and len(said) < _MAX_DIGITS


def _is_year(said: str) -> bool:
    return _is_plain(said) and len(said) == 4 and 1900 <= int(said) <= 2100


def _year(words: Sequence[Word], at: int) -> Quantity | None:
    led = {"in", "since", "until", "before", "from", "after", "by", "seit", "bis", "ab"}
    if _is_year(words[at].said) and _word_at(words, at - 1) in led:
        return _quantity(words, [at], "date", int(words[at].said) * 10_000)
    return None


def _clock(words: Sequence[Word], at: int) -> Quantity | None:
    said, after = words[at].said, _word_at(words, at + 1)
    if said in _NOON:
        return _quantity(words, [at], "clock", _NOON[said])
    hours, minutes = _hours(said)
    if not (_is_plain(hours) and int(hours) <= 24) or (
        minutes and not (_is_plain(minutes) and len(minutes) == 2)
    ):
        return None
    half, last = _half(words, at)
    if half is None and after in {"uhr", "o'clock"}:
        last = at + 1
    elif half is None and ":" not in said:
        return None
    hour = int(hours) if half is None else int(hours) % 12 + half
    positions = range(at, last + 1)
    return _quantity(words, positions, "clock", hour * 60 + int(minutes or 0))


def _hours(said: str) -> tuple[str, str]:
    """Return the digits of hours and minutes: "9.30", "9:30", "nine"."""
    if said in vocabulary.NUMBER_WORDS:
        return f"{vocabulary.NUMBER_WORDS[said]:.0f}", ""
    hours, _, minutes = said.replace(".", ":").partition(":")
    return hours, minutes


def _half(words: Sequence[Word], at: int) -> tuple[int | None, int]:
    """Return 0 for a time before noon or 12 after it, and the last word's position.

    In "9 to 5 pm", the words after the second time decide both.
    """
    after = _word_at(words, at + 1)
    if after in _HALVES:
        return _HALVES[after], at + 1
    named = _word_at(words, at + 2), _word_at(words, at + 3)
    if after in {"in", "at"}:
        if named[0] == "the" and named[1] in _HALVES:
            return _HALVES[named[1]], at + 3
        return (12, at + 2) if named[0] == "night" else (None, at)
    if after in _RANGE and named[1] in {"am", "a.m", "pm", "p.m"}:
        both = _hours(words[at].said)[0], _hours(named[0])[0]
        if all(_is_plain(hours) and int(hours) <= 12 for hours in both):
            is_same = int(both[0]) % 12 <= int(both[1]) % 12
            return (_HALVES[named[1]] if is_same else 12 - _HALVES[named[1]]), at
    return None, at


def _weekday(words: Sequence[Word], at: int) -> Quantity | None:
    if words[at].said not in vocabulary.WEEKDAYS:
        return None
    return _quantity(words, [at], "weekday", vocabulary.WEEKDAYS[words[at].said])


def _ordinal(words: Sequence[Word], at: int) -> Quantity | None:
    said = words[at].said
    if said in vocabulary.ORDINALS:
        return _quantity(words, [at], "ordinal", vocabulary.ORDINALS[said])
    if _is_plain(said) and _word_at(words, at + 1) in {"st", "nd", "rd", "th"}:
        return _quantity(words, [at, at + 1], "ordinal", float(said))
    return None


def _frequency(words: Sequence[Word], at: int) -> Quantity | None:
    """Read "three times a day", "twice daily" and "every eight hours"."""
    said = words[at].said
    if said in {"every", "alle"}:
        step = _word_at(words, at + 1)
        every = 2.0 if step in {"other", "second"} else parse_number(step)
        last, times = at + 2, 1.0
    else:
        number = vocabulary.REPETITIONS.get(said) or parse_number(said)
        last, times, every = at + 1, number or 0.0, 1.0
        if said not in vocabulary.REPETITIONS:
            if _word_at(words, last) not in {"times", "mal"}:
                return None
            last += 1
        while _word_at(words, last) in {"a", "an", "in", "per", "each", "every", "pro"}:
            last += 1
    period = _days(_word_at(words, last))
    if not (period and every and times):
        return None
    positions = range(at, last + 1)
    return _quantity(words, positions, "frequency", times / (period * every))


def _days(said: str) -> float | None:
    """Return the length in days of a unit of time, "day" or "daily"."""
    dimension, days = vocabulary.UNITS.get(said, ("", 0.0))
    return days if dimension == "duration" else vocabulary.PERIODS.get(said)


def _amount(words: Sequence[Word], at: int) -> Quantity | None:
    """Read a number with the unit that follows it, or the currency before it."""
    positions = [at]
    currency = vocabulary.UNITS.get(words[at].said, ("", 0.0))
    if currency[0].startswith("money") and at + 1 < len(words):
        value = parse_number(_word_at(words, at + 1))
        if value is None:
            return None
        positions.append(at + 1)
    else:
        if _word_at(words, at - 1) in vocabulary.DESIGNATED:
            return None
        value = parse_number(words[at].said)
        currency = ("", 0.0)
    if value is None:
        return None
    if (scale := vocabulary.SCALES.get(_word_at(words, positions[-1] + 1))) is not None:
        value *= scale
        positions.append(positions[-1] + 1)
    if currency[0]:
        return _quantity(words, positions, currency[0], value)
    return _with_unit(words, positions, value)


def _with_unit(
    words: Sequence[Word], positions: list[int], value: float
) -> Quantity | None:
    after = _past_small_words(words, positions[-1] + 1)
    unit = vocabulary.UNITS.get(_word_at(words, after))
    if unit is not None:
        return _quantity(words, [*positions, after], unit[0], value * unit[1])
    if _word_at(words, after) in _RANGE and parse_number(_word_at(words, after + 1)):
        behind = _word_at(words, _past_small_words(words, after + 2))
        if unit := vocabulary.UNITS.get(behind):  # "two to three days"
            return _quantity(words, positions, unit[0], value * unit[1])
    said = words[positions[0]].said
    if said in {"half", "quarter", "halbe", "halben", "viertel"}:
        return _quantity(words, positions, "percent", value * 100)
    if said in {"twice", "zweimal", "thrice", "dreimal"}:
        return _quantity(words, positions, "times", value)
    return _quantity(words, positions, "count", value, _counted(words, positions))


def _past_small_words(words: Sequence[Word], at: int) -> int:
    while _word_at(words, at) in {"a", "an", "of", "working", "calendar"}:
        at += 1  # "half an hour", "five working days"
    return at


def _counted(words: Sequence[Word], positions: Sequence[int]) -> str:
    following = words[positions[-1] + 1 : positions[-1] + 4]
    empty = vocabulary.STOP_WORDS | vocabulary.DISTRIBUTIVES
    stems = (w.stem for w in following if w.said not in empty and not w.is_number)
    return next(stems, "")


def _same_date(one: int, other: int) -> bool:
    pairs: Iterator[tuple[int, int]] = zip(_parts(one), _parts(other), strict=True)
    both = [(a, b) for a, b in pairs if a and b]
    return bool(both) and all(a == b for a, b in both)


def _parts(date: int) -> tuple[int, int, int]:
    return date // 10_000, date // 100 % 100, date % 100


_READERS: Final = (_date, _clock, _weekday, _ordinal, _frequency, _amount)
