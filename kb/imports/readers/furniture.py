"""Lines about the document itself, which make no entry.

The rules are narrow: a line left out by mistake is knowledge that nobody finds.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from kb.text.facts import sentences_of

# Matches whole sentences or lines only: one that merely begins like this ("Version 7
# needs a new licence") is a fact.
_DATE = (
    r"(?=.*(?:\b(?:19|20)\d\d\b|\d[./-]\d))"
    r"(?:\w+\.? )?\d{1,4}(?:st|nd|rd|th|\.)?(?:[ ,./-]+\w+\.?){0,2}"
)
_NAME = r"[^.,;:]{1,60}"
_AT_THE_EDGES = re.compile(
    rf"(?:version|revision|issue|edition|fassung|ausgabe) \d[\w.-]{{0,11}}"
    rf"(?:, (?:for|of|from|vom|für) {_NAME}|,? (?:of|dated|from|vom) {_DATE})?"
    rf"|(?:maintained|written|edited|compiled|prepared|published) by {_NAME}"
    rf"|(?:gepflegt|verfasst|herausgegeben) von {_NAME}"
    rf"|created by {_NAME}(?: on {_DATE})?"
    rf"(?:,? (?:last )?(?:updated|modified)(?: by {_NAME})? on {_DATE})?"
    r"|(?:home|startseite)(?: ?[>\u203a\u00bb] ?[^>\u203a\u00bb]{1,80}){1,8}"
    rf"|(?:last |zuletzt )?(?:updated|revised|modified|edited|reviewed|changed|geändert|"
    rf"aktualisiert)(?: on| in| am)?:? {_DATE}"
    rf"|stand: {_DATE}"
    rf"|(?:(?:document|page|content) )?(?:owner|author|editor|version|revision|autor): {_NAME}",
    re.IGNORECASE,
)
_ANYWHERE = re.compile(
    r"(?:page|seite) \d{1,4}(?: ?(?:of|von|/) ?\d{1,4})?"
    rf"|(?:this )?page (?:was )?(?:last )?(?:updated|reviewed|changed)(?: on)?:? {_DATE}"
    r"|(?:was|is|war|ist) (?:this|diese[rs]?) (?:page|article|answer|information|seite|artikel|antwort)"
    r" (?:helpful|useful|hilfreich|nützlich)(?: (?:to|for|für) (?:you|sie|dich))?\W*"
    r"(?:(?:yes|no|ja|nein)\W*){0,2}"
    r"|(?:©|\(c\)|copyright (?:©|\(c\)|\d{4})).{0,100}|all rights reserved",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\s[|\u00b7\u2022]\s")


def is_of_its_page(line: str) -> bool:
    """Return whether a line is a page number, a request for feedback or a copyright."""
    return _ANYWHERE.fullmatch(line.strip(" .")) is not None


def trimmed(
    lines: Sequence[str], language: str, *, from_end: bool
) -> tuple[tuple[str, ...], list[str]]:
    """Return a document's first or last paragraph trimmed, and the lines removed."""
    order = -1 if from_end else 1
    taken = list(_leading(lines[::order]))
    rest = tuple(lines[::order][len(taken) :][::order])
    said = sentences_of(" ".join(rest), language)[::order]
    if first := list(_leading(said)):
        rest = tuple(said[len(first) :][::order])
    return rest, [line.strip() for line in (*taken, *first)]


def _leading(said: Iterable[str]) -> Iterator[str]:
    return takewhile(_tells_of_itself, said)


def _tells_of_itself(said: str) -> bool:
    # A line may hold several, such as a page's owner and when it was changed.
    parts = [part.strip(" .") for part in _BETWEEN.split(said)]
    return all(is_of_its_page(p) or _AT_THE_EDGES.fullmatch(p) for p in parts)
