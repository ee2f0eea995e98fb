"""The adaptive scope: answers from the model's own knowledge, monitored or not."""

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

# Reasons for a refusal after which the model's own knowledge may answer: no entry
# stands in its way, not even one that is expired, unverified or for another audience.
_UNCOVERED = frozenset({Reason.NOTHING_KNOWN, Reason.TOO_FAR, Reason.NOT_ANSWERED})


@dataclass(frozen=True, slots=True)
class ClosedBookModels:
    """Loaders of the closed-book model and of the writer of monitored answers."""

    knowledge: Callable[[], SelfKnowledge]
    writer: Callable[[], SegmentWriter]


def answer_closed_book(
    trace: Trace, models: ClosedBookModels, retriever: Retriever
) -> Generator[StageValue, None, Trace]:
    """Ask the model without evidence: yield its boundary and return the new trace."""
    trace = _ask_itself(trace, models, retriever)
    if trace.boundary:
        yield trace.boundary
    return trace


def is_uncovered(trace: Trace) -> bool:
    """Return whether, as far as the asker may know, no entry covers the question."""
    return trace.refusal is not None and trace.refusal.shown_reason in _UNCOVERED


def answer_uncovered(
    trace: Trace, models: ClosedBookModels, retriever: Retriever
) -> Generator[StageValue, None, Trace]:
    """Ask the model about a refused question; the refusal stands unless it may answer.

    If entries that the asker may not see cover the question, the model is asked all the
    same and its answer discarded: not asking it would reveal that they exist.
    """
    bare = replace(trace, decisions=(), retrieval=NOTHING_FOUND)
    own = _ask_itself(bare, models, retriever)
    refusal, boundary = trace.refusal, own.boundary
    if refusal is None or boundary is None:
        return trace
    if boundary.is_answered and refusal.reason in _UNCOVERED:
        trace = replace(
            own,
            retrieval=replace(trace.retrieval, evidence=own.retrieval.evidence),
            decisions=(*trace.decisions, *own.decisions),
        )
    else:
        trace = replace(trace, boundary=_set_aside(boundary, trace.policy))
    if trace.boundary:
        yield trace.boundary
    return trace


def _set_aside(boundary: Boundary, policy: Policy) -> Boundary:
    """Return a boundary with its measurements, but without its answer."""
    none = judge(Gate.BOUNDARY, {HAS_DRAFT: 0.0}, policy).signals
    signals = tuple(
        signal
        for each in boundary.signals
        for signal in (none if each.name == HAS_DRAFT else (each,))
    )
    return replace(boundary, is_answered=False, segments=(), signals=signals)


def _ask_itself(trace: Trace, models: ClosedBookModels, retriever: Retriever) -> Trace:
    question, policy, clock = trace.question, trace.policy, trace.clock
    if policy.retrieval_timing is RetrievalTiming.MONITORED:
        writer = clock.time("boundary_load", models.writer)
        # With a threshold set for another writer, every word is in doubt.
        watched = (
            policy
            if holds_for(writer.fingerprint, policy)
            else replace(policy, min_token_confidence=math.inf)
        )
        monitored = clock.time(
            "monitored", answer_monitored, question,
            writer=writer, retriever=retriever, policy=watched,
        )  # fmt: skip
        return judge_monitored(trace, monitored, retriever=retriever)
    own = clock.time("boundary_load", models.knowledge)
    estimate, boundary = clock.time(
        "boundary", consider, question, own=own, policy=policy
    )
    draft, boundary = clock.time("recall", recall, estimate, boundary, policy=policy)
    return replace(trace, boundary=boundary, generation=draft)


def judge_monitored(
    trace: Trace, monitored: Monitored, *, retriever: Retriever
) -> Trace:
    """Return the trace with the monitored answer, refused if a segment stayed in doubt.

    An answer that its evidence supports throughout cites it and meets the checks of any
    answer from evidence: it must not add facts, and its sources must agree. If a
    segment has no support, the answer as a whole is labelled as unsourced.
    """
    question, policy = trace.question, trace.policy
    citations = () if monitored.refused else _citations(question, monitored)
    contradictions, agreement = judge_agreement(
        monitored.evidence,
        tuple(citation.entry_id for citation in citations),
        odds=trace.odds,
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
        # A value below this threshold triggers a search, never a refusal.
        Signal(Gate.BOUNDARY, name, weakest, policy.min_token_confidence, None),
        *judge(Gate.BOUNDARY, values, policy).signals,
    )


def _added(question: Question, monitored: Monitored) -> tuple[str, ...]:
    """Return the facts that segments written from evidence add to their evidence."""
    return tuple(
        fact
        for segment in monitored.segments
        if segment.evidence
        for fact in unsupported_facts(question.text, segment.text, segment.evidence)
    )


def _citations(question: Question, monitored: Monitored) -> tuple[Citation, ...]:
    """Return a citation for each piece that a segment shares a new word with.

    This includes segments that are only partly supported: whoever may not see a piece
    must not see what the answer may repeat of it.
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
    """Return the best-fitting sentence; "" if it shares only the question's words."""
    best = best_sentence(piece, segment.text)
    said = terms(segment.text)
    own = terms(best)
    shared = (set(said.words) & set(own.words)) - question_words
    return best if shared or said.numbers & own.numbers else ""
