"""What of an entry is embedded: its question, its text piece by piece, and its place.

An embedder cuts off what exceeds its window, and one vector of many sentences is near to
none of them; so a text of several pieces has a vector of each. Title and heading say what
a sentence is about that doesn't name it.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import prefetch_related_objects

from kb.embedding.models import EntryEmbedding
from kb.entries.models import Entry
from kb.text.words import sentences

_Part = EntryEmbedding.Part
_PIECE_LETTERS = 200  # short sentences are put together up to so many
_MAX_PIECES = 64  # of longer texts the rest goes with the last

# For an entry `e`: `Embedded.digest`, and the tables that it wants. The title of a
# document that another audience reads is left out: who sees an entry may not see it.
PLACE_SQL = """
    LEFT JOIN kb_document d ON d.id = e.document_id AND d.audience_id = e.audience_id
    LEFT JOIN kb_section s ON s.id = e.section_id AND s.document_id = d.id
"""
DIGEST_SQL = """encode(sha256(convert_to(concat_ws(E'\\n',
    coalesce(d.title, ''), coalesce(s.heading, ''), e.question, e.text), 'UTF8')), 'hex')"""


@dataclass(frozen=True, slots=True)
class Embedded:
    """What is embedded of an entry; all but the text may be empty."""

    title: str
    heading: str
    question: str
    text: str

    @property
    def digest(self) -> str:
        """Return 64 hex digits; `DIGEST_SQL` says the same in SQL."""
        said = "\n".join((self.title, self.heading, self.question, self.text))
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def parts(self) -> Mapping[int, str]:
        """Return the texts that are embedded, by part; none twice."""
        first = self.question or self.text
        pieces = list(_pieces(self.text))
        if not self.question and len(pieces) == 1:
            pieces = []
        said = f"{self.question} {self.text}".strip()
        place = " > ".join(filter(None, (self.title, self.heading)))
        parts = dict(enumerate((first, *pieces), _Part.FIRST))
        if place or said != first:
            parts[_Part.PLACE] = f"{place}\n{said}".strip()
        return parts


def embedded(entries: Sequence[Entry]) -> list[Embedded]:
    """Return what is embedded of each entry, with two queries at most."""
    prefetch_related_objects(list(entries), "document", "section")
    return [_embedded(entry) for entry in entries]


def _embedded(entry: Entry) -> Embedded:
    document = entry.document
    if document is None or document.audience_id != entry.audience_id:
        return Embedded("", "", entry.question, entry.text)
    heading = entry.section.heading if entry.section else ""
    return Embedded(document.title, heading, entry.question, entry.text)


def _pieces(text: str) -> Iterator[str]:
    piece, number = "", 1
    for sentence in sentences(text):
        is_full = len(piece) + len(sentence) >= _PIECE_LETTERS
        if piece and is_full and number < _MAX_PIECES:
            yield piece
            piece, number = "", number + 1
        piece = f"{piece} {sentence}".strip()
    if piece:
        yield piece
