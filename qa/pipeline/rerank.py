"""Stage: what was found, in the order in which it helps the model that will answer.

References:
    CBDR, sections 3.2 and 3.3: a cross-encoder tuned on the model's confidence shift.
"""

from collections.abc import Callable, Sequence
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
    question: Question,
    found: Retrieval,
    *,
    reranker: Callable[[], Reranker | None] | None,
    policy: Policy,
) -> tuple[Retrieval, str]:
    """Return the best `policy.top_k` pieces, best first; equal ones keep their order.

    One that passed hard refusal is always among them, last if need be: what the model
    reads covers the question.

    Args:
        reranker: Loads it; the order is kept without one, or where it gives none.

    Returns:
        What is kept, and the reranker's fingerprint, "" without one.
    """
    ranked, fingerprint = list(found.evidence), ""
    by = reranker() if reranker and ranked else None
    if by:
        texts = [f"{piece.question} {piece.text}".strip() for piece in ranked]
        pairs = zip(by.score(question.text, texts), ranked, strict=True)
        ranked = [piece for _, piece in sorted(pairs, key=lambda pair: -pair[0])]
        fingerprint = by.fingerprint
    kept = ranked[: policy.top_k]
    covering = [piece for piece in ranked if piece.ratio < policy.alpha_of(piece)]
    if covering and not any(piece in covering for piece in kept):
        kept = [*kept[:-1], covering[0]]
    return replace(found, evidence=tuple(kept)), fingerprint
