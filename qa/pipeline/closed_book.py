"""The adaptive scope before any search: the model answers closed-book, monitored or not."""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from kb.text.terms import terms
from kb.types import Evidence

from .answer_gates import judge_agreement
from .gates import Decision, Gate, Reason, Signal, judge
from .language_model import Citation
from .monitored import Monitored, SegmentWriter, answer_monitored
from .policy import Policy, RetrievalTiming
from .self_knowledge import HAS_DRAFT, SelfKnowledge, consider, recall
from .soft_gate import best_sentence, unsupported_facts
from .staleness import holds_for
from .values import (
    NOTHING_FOUND,
    Boundary,
    Question,
    Retriever,
    Segment,
    StageValue,
    Support,
    Trace,
)


@dataclass(frozen=True, slots=True)
class ClosedBookModels:
    """Loaders of the closed-book model, and of the one that writes while monitored."""

    knowledge: Callable[[], SelfKnowledge]
    writer: Callable[[], SegmentWriter]


def answer_closed_book(
    trace: Trace, models: ClosedBookModels, retriever: Retriever
) -> Generator[StageValue, None, Trace]:
    """Yield whether the model answers by itself, and return the trace with it."""
    question, policy, clock = trace.question, trace.policy, trace.clock
    if policy.retrieval_timing is RetrievalTiming.MONITORED:
        writer = clock.time("boundary_load", models.writer)
        # What another writer was watched by says nothing of this one's words.
        watched = (
            policy
            if holds_for(writer.fingerprint, policy)
            else replace(policy, min_token_confidence=math.inf)
        )
        monitored = clock.time(
            "monitored", answer_monitored, question,
            writer=writer, retriever=retriever, policy=watched,
        )  # fmt: skip
        trace = judge_monitored(trace, monitored, retriever=retriever)
        if trace.boundary:
            yield trace.boundary
        return trace
    own = clock.time("boundary_load", models.knowledge)
    estimate, boundary = clock.time(
        "boundary", consider, question, own=own, policy=policy
    )
    draft, boundary = clock.time("recall", recall, estimate, boundary, policy=policy)
    yield boundary
    return replace(trace, boundary=boundary, generation=draft)


def judge_monitored(
    trace: Trace, monitored: Monitored, *, retriever: Retriever
) -> Trace:
    """Return the trace with the answer: refused where a segment stayed in doubt.

    An answer that its evidence carries throughout cites it, and is held to it as every
    answer from evidence is: it must not add facts, and sources must agree. One of which
    any segment rests on nothing is labelled as unsourced as a whole.
    """
    question, policy = trace.question, trace.policy
    citations = () if monitored.refused else _citations(question, monitored)
    contradictions, agreement = judge_agreement(
        monitored.evidence,
        tuple(citation.entry_id for citation in citations),
        retriever=retriever,
        policy=policy,
    )
    added = _added(question, monitored)
    is_stale = not holds_for(monitored.fingerprint, policy)
    doubts = (
        (is_stale and policy.refuse_when_stale, Reason.POLICY_STALE),
        (policy.support_check and bool(added), Reason.UNSUPPORTED),
    )
    reason = monitored.refused or next((why for holds, why in doubts if holds), None)
    is_answered = reason is None and not agreement.refused
    return replace(
        trace,
        boundary=Boundary(
            is_known=is_answered,
            fingerprint=monitored.fingerprint,
            examples=(),
            signals=_signals(monitored, added, policy, is_answered=is_answered),
            is_answered=is_answered,
            segments=monitored.segments,
        ),
        retrieval=replace(NOTHING_FOUND, evidence=monitored.evidence),
        support=Support(citations, 0, added, None, None),
        decisions=(
            Decision(Gate.BOUNDARY, reason, reason, ()),
            *([agreement] if citations else []),  # else nothing to compare
        ),
        contradictions=contradictions,
    )


def _signals(
    monitored: Monitored, added: tuple[str, ...], policy: Policy, *, is_answered: bool
) -> tuple[Signal, ...]:
    (name, weakest), *others = monitored.signals
    values = {
        **dict(others),
        HAS_DRAFT: float(is_answered),
        "monitored_added_facts": float(len(added)),
    }
    return (
        # Below its threshold evidence was looked for: nothing was refused by it yet.
        Signal(Gate.BOUNDARY, name, weakest, policy.min_token_confidence, None),
        *judge(Gate.BOUNDARY, values, policy).signals,
    )


def _added(question: Question, monitored: Monitored) -> tuple[str, ...]:
    """Return what segments say that were written by evidence which does not say it."""
    return tuple(
        fact
        for segment in monitored.segments
        if segment.evidence
        for fact in unsupported_facts(question.text, segment.text, segment.evidence)
    )


def _citations(question: Question, monitored: Monitored) -> tuple[Citation, ...]:
    """Return the pieces that segments were written by and share a word with, each once.

    Of a segment that does not stand in them wholly too: what it may repeat of a piece is
    shown to nobody who may not see that piece.
    """
    question_words = set(terms(question.text).words)
    found: dict[int, Citation] = {}
    for segment in monitored.segments:
        for piece in segment.evidence:
            quote = _quote(piece, segment, question_words)
            if quote:
                cited = Citation(piece.entry_id, piece.revision_id, quote)
                found.setdefault(piece.entry_id, cited)
    return tuple(found.values())


def _quote(piece: Evidence, segment: Segment, question_words: set[str]) -> str:
    """Return the sentence that fits best; "" where none shares a word that is new."""
    best = best_sentence(piece, segment.text)
    said = terms(segment.text)
    own = terms(best)
    shared = (set(said.words) & set(own.words)) - question_words
    return best if shared or said.numbers & own.numbers else ""
