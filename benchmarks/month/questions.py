"""The questions of the month: ones that the demonstration answers, and near misses.

Each line of `facts.jsonl` is one entry of the demonstration with two questions that it
answers and two on the same subject that nothing in the knowledge base answers. Each is
asked twice, in the customer's words and as an agent passes it on.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FACTS: Final = Path(__file__).with_name("facts.jsonl")
_PASSED_ON: Final = (
    "A customer asks: {}",
    "{} That is what the customer wants to know.",
    "Hello, {} Thank you.",
)


@dataclass(frozen=True, slots=True)
class MonthQuestion:
    """One question, and how to recognize a right answer.

    Attributes:
        entry: The key of the entry that it is about.
        contains: A right answer contains one of these; empty if no answer is right.
    """

    text: str
    entry: str
    contains: tuple[str, ...]
    is_passed_on: bool = False

    def is_right(self, text: str) -> bool:
        """Return whether `text` is a right answer, by the known truth."""
        said = " ".join(text.casefold().split())
        return any(part.casefold() in said for part in self.contains)


def questions(file: Path = FACTS) -> list[MonthQuestion]:
    """Return all questions, first in the customers' words, then as passed on."""
    plain = [*_plain(file)]
    again = [
        MonthQuestion(
            _PASSED_ON[number % len(_PASSED_ON)].format(one.text),
            one.entry,
            one.contains,
            is_passed_on=True,
        )
        for number, one in enumerate(plain)
    ]
    return plain + again


@dataclass(frozen=True, slots=True)
class Parts:
    """The questions asked during the weeks, and those held out.

    Attributes:
        asked: One question and one near miss about each of three quarters of the
            entries, in the customer's words and passed on.
        other_words: The other question and near miss about these entries, in the
            customer's words.
        other_entries: All questions about the last quarter, in the customer's words.
    """

    asked: list[MonthQuestion]
    other_words: list[MonthQuestion]
    other_entries: list[MonthQuestion]


def parted(given: Sequence[MonthQuestion]) -> Parts:
    entries = sorted({one.entry for one in given})
    unasked = set(entries[::4])
    met: set[tuple[str, bool, bool]] = set()
    parts = Parts([], [], [])
    for one in given:
        kind = (one.entry, bool(one.contains), one.is_passed_on)
        if one.entry not in unasked and kind not in met:
            met.add(kind)
            parts.asked.append(one)
        elif not one.is_passed_on:
            held_out = (
                parts.other_entries if one.entry in unasked else parts.other_words
            )
            held_out.append(one)
    return parts


def _plain(file: Path) -> Iterator[MonthQuestion]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            fact = json.loads(line)
            for text in fact["known"]:
                yield MonthQuestion(text, fact["entry"], tuple(fact["contains"]))
            for text in fact["unknown"]:
                yield MonthQuestion(text, fact["entry"], ())
