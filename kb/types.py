"""What a search returns: plain frozen values, no rows."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import numpy as np


class Route(StrEnum):
    EXACT = "exact"
    HNSW = "hnsw"


class Exclusion(StrEnum):
    """Why an entry that is near the question may not be evidence."""

    EXPIRED = "expired"
    UNVERIFIED = "unverified"
    NOT_ENTITLED = "not_entitled"


class Past(StrEnum):
    """Whose knowledge of a moment gone by is looked through.

    ALLOWED_NOW leaves out what the asker may not see today: as of another moment nobody
    sees more. AS_THEN is for one who sees everything: an answer is decided again.
    """

    ALLOWED_NOW = "allowed_now"
    AS_THEN = "as_then"


@dataclass(frozen=True, slots=True, eq=False)
class QuestionVector:
    """A question embedded by one model: float32 of shape (dimensions,), unit length."""

    text: str
    values: np.ndarray
    model_id: int
    fingerprint: str
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Scope:
    """What may be evidence for one asker at one moment.

    Attributes:
        unverified_floor: Least confidence in (0, 1] of an unverified entry; 1 admits
            verified entries alone.
        enriched_floor: Least confidence in (0, 1) of what a language model proposed and
            nobody reviewed; None admits none.
        at: The moment against which expiry is judged.
        past: Set where knowledge counts as it was at that moment, not as it is.
    """

    knowledge_base_id: int
    audience_ids: tuple[int, ...]
    unverified_floor: float
    at: datetime
    enriched_floor: float | None = None
    past: Past | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """An entry that matched, from which a question may be answered.

    Attributes:
        distance: Euclidean L2 between the unit-length full-precision vectors of
            question and entry, in [0, 2]; lower is nearer. The least of all vectors of
            what the entry says.
        vector_rank: 1-based rank by the least distance of all vectors, that of its place
            among them; None if it is not among the nearest.
        text_rank: 1-based rank by full text; None if only the vector matched.
        wordings: Questions in other words that it answers, as an expert confirmed.
        denied: Questions that it does not answer, as an expert said.
        score: Nearness and words, each in standard deviations from the mean of what was
            fused, in a weighted sum; orders within one search, never decides.
    """

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
    wordings: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()

    @property
    def questions(self) -> tuple[str, ...]:
        """Return all questions that it is known to answer, its own first."""
        return (self.question, *self.wordings) if self.question else self.wordings

    @property
    def ratio(self) -> float:
        """Distance over confidence, what hard refusal compares with alpha."""
        return self.distance / self.confidence


@dataclass(frozen=True, slots=True)
class SearchResult:
    hits: tuple[Evidence, ...]  # best first by `score`; every one is inside the scope
    visible: int  # how many entries the scope holds, exact up to the routing limit
    route: Route
    embedder: str  # fingerprint of the embedding model that measured the distances
    deep: bool  # whether this was the second, deeper look
    vector: QuestionVector  # embedded again where the model was switched since
    embed_milliseconds: float
    sql_milliseconds: float


@dataclass(frozen=True, slots=True)
class Excluded:
    """The nearest entry outside the scope for one cause; never shown, only reasoned with."""

    cause: Exclusion
    distance: float
    confidence: float

    @property
    def ratio(self) -> float:
        return self.distance / self.confidence


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two entries that contradict each other, unresolved, and what each says of it."""

    conflict_id: int
    entries: tuple[int, int]
    quotes: tuple[str, str]
