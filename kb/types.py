"""The results of a search: plain frozen values, without database rows."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import numpy as np


class Route(StrEnum):
    EXACT = "exact"
    HNSW = "hnsw"


class Exclusion(StrEnum):
    """Why an entry close to the question may not be evidence."""

    EXPIRED = "expired"
    UNVERIFIED = "unverified"
    NOT_ENTITLED = "not_entitled"


class Past(StrEnum):
    """Whose view of a past moment is searched.

    ALLOWED_NOW leaves out what the asker may not see today: asking about the past shows
    nobody more. AS_THEN is for a user who sees everything, to decide an answer again.
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
            only verified entries.
        enriched_floor: Least confidence in (0, 1) of an unreviewed entry proposed by a
            language model; None admits none of them.
        at: The moment at which expiry is checked.
        past: Set if the knowledge is that of the moment `at` rather than of today.
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
        distance: Euclidean (L2) distance between the unit-length full-precision vectors
            of question and entry, in [0, 2]; lower is closer. The least over all the
            vectors of the entry's content.
        vector_rank: 1-based rank by the least distance of all vectors, including that
            of its place; None if it is not among the nearest.
        text_rank: 1-based rank by full text; None if only the vector matched.
        wordings: Alternative questions that it answers, confirmed by an expert.
        denied: Questions that it does not answer, according to an expert.
        score: Weighted sum of closeness and words, each in standard deviations from the
            mean of the fused entries; ranks within one search, never decides.
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
        """All questions that it is known to answer, its own first."""
        return (self.question, *self.wordings) if self.question else self.wordings

    @property
    def ratio(self) -> float:
        """Distance over confidence, which hard refusal compares with alpha."""
        return self.distance / self.confidence


@dataclass(frozen=True, slots=True)
class SearchResult:
    hits: tuple[Evidence, ...]  # best first by `score`; all within the scope
    visible: int  # number of entries in the scope, exact up to the routing limit
    route: Route
    embedder: str  # fingerprint of the embedding model that measured the distances
    deep: bool  # whether this was the second, deeper search
    vector: QuestionVector  # embedded again if the model was switched since
    embed_milliseconds: float
    sql_milliseconds: float


@dataclass(frozen=True, slots=True)
class Excluded:
    """The nearest entry outside the scope for one cause; a reason, but never shown."""

    cause: Exclusion
    distance: float
    confidence: float

    @property
    def ratio(self) -> float:
        return self.distance / self.confidence


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two entries in an open contradiction, and the clashing sentence of each."""

    conflict_id: int
    entries: tuple[int, int]
    quotes: tuple[str, str]
