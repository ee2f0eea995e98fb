"""Stage: what was found, in the order in which it helps the model that will answer.

References:
    CBDR, sections 3.2 and 3.3: a cross-encoder tuned on the model's confidence shift.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from .evidence import Retrieval
from .outcome import Question
from .policy import Policy


class Reranker(Protocol):
    """Scores texts by how much they help to answer a question."""

    @property
    def fingerprint(self) -> str:
        """What tells two rerankers apart."""
        ...

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score for each text, the higher the better; all in one batch."""
        ...


def rerank(
    question: Question, found: Retrieval, *, reranker: Reranker, policy: Policy
) -> Retrieval:
    """Return the best `policy.top_k` pieces, best first; equal ones keep their order."""
    texts = [f"{piece.question} {piece.text}".strip() for piece in found.evidence]
    scores = reranker.score(question.text, texts) if texts else ()
    ranked = sorted(zip(scores, found.evidence, strict=True), key=lambda pair: -pair[0])
    return replace(found, evidence=tuple(p for _, p in ranked[: policy.top_k]))
