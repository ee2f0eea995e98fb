"""What was found for a question, and how it is looked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from .gates import Reason


@dataclass(frozen=True, slots=True)
class Evidence:
    """An entry that supports an answer; `distance` is Euclidean L2 in [0, 2]."""

    entry_id: int
    revision_id: int
    text: str
    question: str
    confidence: float
    is_verified: bool
    distance: float
    vector_rank: int | None
    text_rank: int | None
    score: float
    document_title: str
    section: str
    verified_at: datetime | None
    valid_until: datetime | None

    @property
    def ratio(self) -> float:
        """Distance over confidence, what hard refusal compares with alpha."""
        return self.distance / self.confidence


@dataclass(frozen=True, slots=True)
class Withheld:
    """That an entry outside the asker's scope is near; it is never shown."""

    reason: Reason
    distance: float
    confidence: float

    @property
    def ratio(self) -> float:
        """Distance over confidence, on the same scale as the evidence's."""
        return self.distance / self.confidence


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What one look found, best first; `deep` marks the second look before a refusal.

    `method` names the way of searching and its metric: thresholds hold for one.
    """

    evidence: tuple[Evidence, ...]
    visible: int
    route: str
    method: str
    embedder: str
    deep: bool
    embed_milliseconds: float
    sql_milliseconds: float


@dataclass(frozen=True, slots=True)
class Contradiction:
    """That two entries contradict each other and nobody has settled which is right.

    Attributes:
        conflict_id: Under which curators find it.
        entries: Both entries' ids.
        quotes: What each of them says that the other contradicts, in the same order.
    """

    conflict_id: int
    entries: tuple[int, int]
    quotes: tuple[str, str]


class Retriever(Protocol):
    """Search on behalf of one asker: entitlement and expiry are inside it."""

    def look(self, question: str, *, top_k: int, deep: bool) -> Retrieval:
        """Return evidence best first; `deep` spends more for certainty of recall."""
        ...

    def withheld(self, question: str) -> Sequence[Withheld]:
        """Return the nearest entry outside the scope for each cause, if any."""
        ...

    def contradictions(self, entry_ids: Sequence[int]) -> Sequence[Contradiction]:
        """Return the unsettled contradictions between any two of these entries."""
        ...
