"""Which of some entries say the same as another one, now: nothing is written down."""

from collections.abc import Collection
from typing import Final

from accounts.prepared import execute
from kb.embedding.services import active_model
from kb.entries.models import Entry
from kb.text.terms import same_numbers_and_denial

from .finding import MAX_DISTANCE, to_statement
from .judgement import judge
from .values import Kind

# So near, two texts are the same in other words, if they have the same numbers and deny
# the same.
_SAME_WORDS: Final = 0.2

_DISTANCES = """
SELECT other.entry_id, own.vector <-> other.vector
FROM kb_entryembedding own
JOIN kb_entryembedding other ON other.model_id = own.model_id AND other.part = own.part
WHERE own.entry_id = %(entry)s AND own.model_id = %(model)s AND own.part = 1
      AND other.entry_id = ANY(%(among)s)
"""


def duplicates_among(entry: Entry, among: Collection[int]) -> frozenset[int]:
    """Return which entries of these ids say what `entry` does.

    They have its text, or are near enough and judged to be its duplicates. An entry that
    contradicts it is none.
    """
    others = [other for other in among if other != entry.pk]
    parameters = {
        "entry": entry.pk,
        "model": active_model().pk,
        "among": others,
    }
    distances: dict[int, float] = dict(execute(_DISTANCES, parameters))
    rows = Entry.objects.defer("search_vector").in_bulk(distances)
    return frozenset(
        pk for pk, other in rows.items() if _says_same(entry, other, distances[pk])
    )


def _says_same(entry: Entry, other: Entry, distance: float) -> bool:
    if _plain(entry.text) == _plain(other.text):
        return True
    if distance > MAX_DISTANCE:
        return False
    if distance <= _SAME_WORDS and same_numbers_and_denial(entry.text, other.text):
        return True
    judged = judge(to_statement(entry), to_statement(other), distance=distance)
    return judged.kind is Kind.DUPLICATE


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
