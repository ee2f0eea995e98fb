"""What passes between the steps of an import."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kb.importing import BadRow, Fact


class Action(StrEnum):
    """What comes of a fact; also the names of the counts."""

    CREATED = "created"
    CHANGED = "changed"
    RESTORED = "restored"
    RETIRED = "retired"
    UNCHANGED = "unchanged"
    REPEATED = "repeated"
    BAD = "bad"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The document that facts belong to.

    Attributes:
        headings: The path of every heading; None for a table, which has no tree.
        pairs: Entries whose fact was reworded, by the key that it has now.
    """

    name: str
    title: str
    headings: tuple[tuple[str, ...], ...] | None
    pairs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Located:
    """A fact with its document."""

    source: Source
    fact: Fact


@dataclass(frozen=True, slots=True)
class Known:
    """An entry that an earlier version of the document brought.

    Attributes:
        digest: Of what its source said last; empty once it no longer did.
        is_visible: Whether who imports may see it; what he may not is left alone.
    """

    id: int
    key: str
    digest: str
    text: str
    place: str
    section_id: int | None
    is_retired: bool
    is_visible: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done about one fact."""

    action: Action
    located: Located
    known: Known | None = None


Piece = Located | BadRow
"""What a file is a row of, after its documents were taken apart."""
