"""What an answer came to that was watched while it was written."""

from kb.text.terms import terms
from kb.types import Evidence

from .agree import judge_agreement
from .gates import Gate, Reason, Signal
from .language_model import Citation
from .monitored import Monitored
from .policy import Policy
from .self_knowledge import HAS_DRAFT
from .soft_gate import best_sentence, unsupported_facts
from .values import (
    Agreement,
    Boundary,
    Calibration,
    Clock,
    Outcome,
    Question,
    Retriever,
    Segment,
)


def conclude_monitored(
    question: Question,
    monitored: Monitored,
    *,
    retriever: Retriever,
    policy: Policy,
    clock: Clock,
) -> Outcome:
    """Return the outcome: refused where a segment stayed in doubt, else answered.

    An answer that its evidence carries throughout cites it, and is held to it as every
    answer from evidence is: it must not add facts, and sources must agree. One of which
    any segment rests on nothing is labelled as unsourced as a whole.
    """
    citations = () if monitored.refused else _citations(question, monitored)
    agreement = judge_agreement(
        monitored.evidence,
        tuple(citation.entry_id for citation in citations),
        retriever=retriever,
        policy=policy,
    )
    added = _added(question, monitored)
    gate, reason = _decision(monitored, added, agreement, citations, policy)
    is_answered = reason is None
    opposed = {entry for each in agreement.contradictions for entry in each.entries}
    signals = (
        *_signals(monitored, added, policy, is_answered=is_answered),
        *(agreement.decision.signals if citations else ()),  # else nothing to compare
    )
    return Outcome(
        question=question,
        policy=policy,
        answered=is_answered,
        gate=gate,
        reason=reason,
        shown_reason=reason,
        answer=monitored.answer if is_answered else "",
        reasoning="",
        citations=citations if is_answered else (),
        evidence=monitored.evidence,
        near_misses=tuple(
            piece
            for piece in monitored.evidence
            if not is_answered
            and (piece.distance <= policy.horizon or piece.entry_id in opposed)
        ),
        signals=signals,
        times=clock.times,
        calibration=_calibration(monitored, policy),
        embedder="",
        language_model="",
        contradictions=agreement.contradictions,
        boundary=Boundary(
            is_known=is_answered,
            fingerprint=monitored.fingerprint,
            examples=(),
            signals=signals,
            is_answered=is_answered,
            segments=monitored.segments,
        ),
    )


def holds_for(monitored_by: str, policy: Policy) -> bool:
    """Tell whether the policy's threshold was set for this writer, or for none."""
    set_for = policy.calibrated_own_knowledge.split()
    return not set_for or monitored_by in set_for


def _decision(
    monitored: Monitored,
    added: tuple[str, ...],
    agreement: Agreement,
    citations: tuple[Citation, ...],
    policy: Policy,
) -> tuple[Gate | None, Reason | None]:
    """Return where it was decided, and why it was refused, if it was."""
    is_stale = not holds_for(monitored.fingerprint, policy)
    doubts = (
        (is_stale and policy.refuse_when_stale, Reason.POLICY_STALE),
        (policy.support_check and bool(added), Reason.UNSUPPORTED),
    )
    reason = monitored.refused or next((why for holds, why in doubts if holds), None)
    if reason:
        return Gate.BOUNDARY, reason
    if agreement.decision.reason:
        return Gate.AGREEMENT, agreement.decision.reason
    cited = {citation.entry_id for citation in citations}
    is_carried = all(
        segment.is_sourced and any(p.entry_id in cited for p in segment.evidence)
        for segment in monitored.segments
    )
    return (None if is_carried else Gate.BOUNDARY), None


def _calibration(monitored: Monitored, policy: Policy) -> Calibration:
    if not holds_for(monitored.fingerprint, policy):
        return Calibration.STALE
    is_calibrated = policy.is_calibrated and bool(policy.calibrated_own_knowledge)
    return Calibration.CURRENT if is_calibrated else Calibration.HAND_SET


def _signals(
    monitored: Monitored, added: tuple[str, ...], policy: Policy, *, is_answered: bool
) -> tuple[Signal, ...]:
    gate = Gate.BOUNDARY
    (name, weakest), *others = monitored.signals
    return (
        # Below its threshold evidence was looked for: nothing was refused by it yet.
        Signal(gate, name, weakest, policy.min_token_confidence, None),
        *(Signal(gate, other, value, None, None) for other, value in others),
        Signal(gate, HAS_DRAFT, float(is_answered), 1.0, is_answered),
        Signal(
            gate,
            "monitored_added_facts",
            float(len(added)),
            0.0,
            not added if policy.support_check else None,
        ),
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
    asked = set(terms(question.text).words)
    found: dict[int, Citation] = {}
    for segment in monitored.segments:
        for piece in segment.evidence:
            quote = _quote(piece, segment, asked)
            if quote:
                cited = Citation(piece.entry_id, piece.revision_id, quote)
                found.setdefault(piece.entry_id, cited)
    return tuple(found.values())


def _quote(piece: Evidence, segment: Segment, asked: set[str]) -> str:
    """Return the sentence that fits best; "" where none shares a word that is new."""
    best = best_sentence(piece, segment.text)
    said = terms(segment.text)
    own = terms(best)
    shared = (set(said.words) & set(own.words)) - asked
    return best if shared or said.numbers & own.numbers else ""
