"""What is asked in the month: questions that the demonstration answers, and near misses.

Each line of `facts.jsonl` is one entry of the demonstration with two questions that it
answers and two about the same thing that nothing in the knowledge base answers. Each is
asked twice, in the customer's words and as an agent passes them on.
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
    """One question, and what a right answer holds.

    Attributes:
        entry: The key of the entry that it is about.
        contains: A right answer holds one of these; empty where none is right.
    """

    text: str
    entry: str
    contains: tuple[str, ...]

    def is_right(self, text: str) -> bool:
        """Tell whether showing `text` would show something right: the known truth."""
        said = " ".join(text.casefold().split())
        return any(part.casefold() in said for part in self.contains)


def questions(file: Path = FACTS) -> list[MonthQuestion]:
    """Return all questions, those in the customers' words first."""
    plain = [*_plain(file)]
    again = [
        MonthQuestion(
            _PASSED_ON[number % len(_PASSED_ON)].format(one.text),
            one.entry,
            one.contains,
        )
        for number, one in enumerate(plain)
    ]
    return plain + again


def parted(
    given: Sequence[MonthQuestion],
) -> tuple[list[MonthQuestion], list[MonthQuestion]]:
    """Return the questions about every fourth entry, and the others."""
    entries = sorted({one.entry for one in given})
    kept = set(entries[::4])
    held_out = [one for one in given if one.entry in kept]
    return held_out, [one for one in given if one.entry not in kept]


def _plain(file: Path) -> Iterator[MonthQuestion]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            fact = json.loads(line)
            for text in fact["known"]:
                yield MonthQuestion(text, fact["entry"], tuple(fact["contains"]))
            for text in fact["unknown"]:
                yield MonthQuestion(text, fact["entry"], ())
