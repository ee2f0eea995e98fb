"""Retrievers of the comparison: one records searches, one returns fixed evidence."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kb.types import Contradiction, Evidence, Excluded
from qa.evaluation.knowledge import Fact
from qa.pipeline.values import NOTHING_FOUND, Retrieval, Retriever

from .questions import TwoHop


class WatchedRetriever:
    """`Retriever` that records what was searched for and what was found."""

    def __init__(self, inner: Retriever) -> None:
        self._inner = inner
        self.looked: dict[str, None] = {}
        self.found: dict[int, Evidence] = {}

    def look(self, question: str, *, top_k: int, deep: bool) -> Retrieval:
        looked = self._inner.look(question, top_k=top_k, deep=deep)
        self.looked[question] = None
        self.found |= {piece.entry_id: piece for piece in looked.evidence}
        return looked

    def withheld(self, question: str) -> Sequence[Excluded]:
        return self._inner.withheld(question)

    def contradictions(self, entry_ids: Sequence[int]) -> Sequence[Contradiction]:
        return self._inner.contradictions(entry_ids)

    def not_compared(self, entry_ids: Sequence[int]) -> Sequence[int]:
        return list(self._inner.not_compared(entry_ids))


class GivenRetriever:
    """`Retriever` that returns the same pieces for every question."""

    def __init__(self, pieces: Sequence[Evidence] = ()) -> None:
        self._found = replace(
            NOTHING_FOUND, evidence=tuple(pieces), visible=len(pieces), route="exact"
        )

    def look(self, question: str, *, top_k: int, deep: bool) -> Retrieval:
        return self._found

    def withheld(self, question: str) -> Sequence[Excluded]:
        return ()

    def contradictions(self, entry_ids: Sequence[int]) -> Sequence[Contradiction]:
        return ()

    def not_compared(self, entry_ids: Sequence[int]) -> Sequence[int]:
        return ()


def given(one: TwoHop) -> GivenRetriever:
    return GivenRetriever(
        [_piece(n, fact) for n, fact in enumerate(one.facts, start=1)]
    )


def _piece(number: int, fact: Fact) -> Evidence:
    return Evidence(
        entry_id=number, revision_id=number, text=fact.text, question=fact.question,
        confidence=1.0, is_verified=True, distance=0.0, vector_rank=number,
        text_rank=None, score=0.0, document_title="", section="", verified_at=None,
        valid_until=None,
    )  # fmt: skip


def among(one: TwoHop, pieces: Iterable[Evidence]) -> list[bool]:
    there = {(piece.question, piece.text) for piece in pieces}
    return [(fact.question, fact.text) in there for fact in one.facts]
