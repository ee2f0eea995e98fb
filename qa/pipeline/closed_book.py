"""The adaptive scope: the model answers closed-book, monitored or not."""

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

# What a refusal says where no entry stands in the way of the model's own knowledge: not an
# expired one, nor one that nobody has verified yet or that is for another audience.
_UNCOVERED = frozenset({Reason.NOTHING_KNOWN, Reason.TOO_FAR, Reason.NOT_ANSWERED})


@dataclass(frozen=True, slots=True)
class ClosedBookModels:
    """Loaders of the closed-book model, and of the one that writes while monitored."""

    knowledge: Callable[[], SelfKnowledge]
    writer: Callable[[], SegmentWriter]


def answer_closed_book(
    trace: Trace, models: ClosedBookModels, retriever: Retriever
) -> Generator[StageValue, None, Trace]:
    """Yield whether the model answers by itself, and return the trace with it."""
    trace = _ask_itself(trace, models, retriever)
    if trace.boundary:
        yield trace.boundary
    return trace


def is_uncovered(trace: Trace) -> bool:
    """Tell whether it was refused because nothing covers it, as far as the asker may know."""
    return trace.refusal is not None and trace.refusal.shown_reason in _UNCOVERED


def answer_uncovered(
    trace: Trace, models: ClosedBookModels, retriever: Retriever
) -> Generator[StageValue, None, Trace]:
    """Do the same for what was looked for and refused; that refusal stays otherwise.

    Where knowledge covers it that the asker may not see, the model is asked all the same
    and its answer never stands: that it was not asked would tell that there is some.
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
    """Return what was measured, of an answer that is none."""
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
