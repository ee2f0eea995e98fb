"""What a source lists, by key, and what earlier checks know of it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import F

from kb.exceptions import InvalidKnowledgeError
from kb.sources.kinds import Bounds, Listed, current_key
from kb.sources.models import FollowedDocument, FollowedSource
from kb.text.cleaning import SOURCE_LIMIT


@dataclass(slots=True)
class Listing:
    documents: dict[str, Listed] = field(default_factory=dict)
    misnamed: int = 0
    same_key: int = 0

    def add(self, found: Listed) -> None:
        if not (found.key.isprintable() and 0 < len(found.key) <= SOURCE_LIMIT):
            self.misnamed += 1
            return
        first = self.documents.setdefault(found.key, found)
        # A list may name the same document twice.
        if (first.title, first.marker) != (found.title, found.marker):
            self.same_key += 1

    @property
    def note(self) -> str:
        """A note on the documents that were left out."""
        notes = []
        if self.misnamed:
            notes.append(
                f"{self.misnamed} documents were left out: their names are longer than "
                f"{SOURCE_LIMIT} characters, or not printable."
            )
        if self.same_key:
            notes.append(
                f"{self.same_key} documents were left out: another one has the same "
                "address or id."
            )
        return " ".join(notes)


def read_list(found: Iterator[Listed], bounds: Bounds) -> Listing:
    listing = Listing()
    for each in found:
        listing.add(each)
        if len(listing.documents) + listing.misnamed > bounds.documents:
            raise InvalidKnowledgeError(
                "address",
                f"The source has more than {bounds.documents:,} documents; follow a "
                "part of it, or raise NESCIO_SOURCE_MAX_DOCUMENTS.",
            )
        bounds.seconds_left()
    return listing


def known_documents(source: FollowedSource) -> dict[str, FollowedDocument]:
    """Return a source's documents by their current keys, updating outdated ones."""
    known: dict[str, FollowedDocument] = {}
    kept = FollowedDocument.State.KEPT
    rows = source.documents.order_by(F("changed_at").asc(nulls_first=True))
    # If several rows get the same key, the last one counts.
    for row in sorted(
        rows,
        key=lambda row: (
            row.state == kept,
            row.key == current_key(source.kind, row.key),
        ),
    ):
        known[current_key(source.kind, row.key)] = row
    for key, row in known.items():
        if row.key != key:
            _change_key(row, key)
    return known


@transaction.atomic
def _change_key(row: FollowedDocument, key: str) -> None:
    # A row that has the key already is gone or was never read, or it would have won.
    FollowedDocument.objects.filter(source=row.source_id, key=key).delete()
    row.key = key
    row.save(update_fields=["key"])
