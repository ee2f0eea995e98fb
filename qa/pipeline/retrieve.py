"""Stage 2: retrieve evidence, searching twice before a refusal, and rerank it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from kb.types import Evidence

from .hard_gate import covers, passes
from .policy import Policy
from .values import Question, Retrieval, Retriever

_EXACT = "exact"


def retrieve(question: Question, *, retriever: Retriever, policy: Policy) -> Retrieval:
    """Search once, and again more deeply if the result would end in a refusal.

    An index that gave up early must never look like missing knowledge. A first search
    that compared every visible entry can't have missed one and is not repeated.
    """
    first = retriever.look(question.text, top_k=policy.retrieved, deep=False)
    if passes(first, policy) or first.route == _EXACT:
        return first
    second = retriever.look(question.text, top_k=policy.retrieved, deep=True)
    return replace(
        second,
        deep=True,
        embed_milliseconds=first.embed_milliseconds + second.embed_milliseconds,
        sql_milliseconds=first.sql_milliseconds + second.sql_milliseconds,
    )


def first_pieces(
    found: Retrieval, policy: Policy, matches: Sequence[Evidence] = ()
) -> Retrieval:
    """Return the retrieval with only the pieces that `keep` keeps."""
    return replace(found, evidence=tuple(keep(found.evidence, policy, matches)))


def keep(
    ranked: Sequence[Evidence],
    policy: Policy,
    matches: Sequence[Evidence] = (),
    *,
    most: int | None = None,
) -> list[Evidence]:
    """Return the first `most` pieces, by default those that are handed on.

    They always include, last if need be, the entries that are the answer, or else a
    piece that passes hard refusal: a verified one if there is any, so that unverified
    ones can't crowd it out. If none passes, the piece that came nearest to passing is
    included.
    """
    most = policy.handed_on if most is None else most
    kept = list(ranked[:most])
    if matches:
        missing = [piece for piece in matches if piece not in kept]
        return kept[: most - len(missing)] + missing
    covering = [piece for piece in ranked if covers(piece, policy)]
    verified = [piece for piece in covering if piece.is_verified]
    wanted = verified or covering or sorted(ranked, key=lambda piece: piece.ratio)[:1]
    if wanted and not any(piece in wanted for piece in kept):
        kept[-1] = wanted[0]
    return kept


class Reranker(Protocol):
    """A model that scores texts by how much they help to answer a question."""

    @property
    def fingerprint(self) -> str:
        """Identifier that differs between any two rerankers."""

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score for each text, higher is better, in one batch."""


def rerank(
    question: Question,
    found: Retrieval,
    *,
    reranker: Callable[[], Reranker | None] | None,
    policy: Policy,
) -> tuple[Retrieval, str]:
    """Keep the best `policy.top_k` pieces, best first; equal ones keep their order.

    Returns what is kept, and the reranker's fingerprint, "" without one.
    """
    ranked, fingerprint = list(found.evidence), ""
    by = reranker() if reranker and ranked else None
    if by:
        texts = [f"{piece.question} {piece.text}".strip() for piece in ranked]
        pairs = zip(by.score(question.text, texts), ranked, strict=True)
        ranked = [piece for _, piece in sorted(pairs, key=lambda pair: -pair[0])]
        fingerprint = by.fingerprint
    return replace(
        found, evidence=tuple(keep(ranked, policy, most=policy.top_k))
    ), fingerprint
