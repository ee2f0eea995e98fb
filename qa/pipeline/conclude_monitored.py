"""What an answer came to that was watched while it was written."""

from .boundary import STANDS
from .clock import Clock
from .evidence import Evidence
from .gates import Gate, Reason, Signal
from .generation import Citation
from .monitored import Monitored
from .outcome import Boundary, Calibration, Outcome, Question
from .policy import Policy
from .segment import Segment
from .support import best_sentence, unsupported_facts
from .terms import terms


def conclude_monitored(
    question: Question, monitored: Monitored, *, policy: Policy, clock: Clock
) -> Outcome:
    """Return the outcome: refused where a segment stayed in doubt, else answered.

    An answer of which any segment rests on no evidence is labelled as unsourced as a
    whole; one that its evidence carries throughout cites it, and is held to it as every
    answer from evidence is.
    """
    unsupported = _unsupported(question, monitored) if policy.support_check else ()
    refused = monitored.refused or (Reason.UNSUPPORTED if unsupported else None)
    signals = _signals(monitored, unsupported, policy)
    is_calibrated = policy.is_calibrated and bool(policy.calibrated_own_knowledge)
    return Outcome(
        question=question,
        policy=policy,
        answered=refused is None,
        gate=None if refused is None and monitored.is_sourced else Gate.BOUNDARY,
        reason=refused,
        shown_reason=refused,
        answer="" if refused else monitored.answer,
        reasoning="",
        citations=() if refused else _citations(monitored),
        evidence=monitored.evidence,
        near_misses=tuple(
            piece
            for piece in monitored.evidence
            if refused and piece.distance <= policy.horizon
        ),
        signals=signals,
        times=clock.times,
        calibration=Calibration.CURRENT if is_calibrated else Calibration.HAND_SET,
        embedder="",
        language_model=monitored.fingerprint,
        boundary=Boundary(
            is_known=refused is None,
            fingerprint=monitored.fingerprint,
            examples=(),
            signals=signals,
            is_answered=refused is None,
            segments=monitored.segments,
        ),
    )


def _signals(
    monitored: Monitored, unsupported: tuple[str, ...], policy: Policy
) -> tuple[Signal, ...]:
    gate, refused = Gate.BOUNDARY, monitored.refused
    (name, weakest), *others = monitored.signals
    return (
        # Below its threshold evidence was looked for: nothing was refused by it yet.
        Signal(gate, name, weakest, policy.min_token_confidence, None),
        *(Signal(gate, other, value, None, None) for other, value in others),
        Signal(gate, STANDS, float(refused is None), 1.0, refused is None),
        Signal(
            gate,
            "monitored_unsupported",
            float(len(unsupported)),
            0.0,
            not unsupported if policy.support_check else None,
        ),
    )


def _unsupported(question: Question, monitored: Monitored) -> tuple[str, ...]:
    """Return what segments say that were written by evidence which does not say it."""
    return tuple(
        fact
        for segment in monitored.segments
        if segment.is_sourced
        for fact in unsupported_facts(question.text, segment.text, segment.evidence)
    )


def _citations(monitored: Monitored) -> tuple[Citation, ...]:
    """Return the pieces that segments stand in, each once."""
    found: dict[int, Citation] = {}
    for segment in monitored.segments:
        for piece in segment.evidence if segment.is_sourced else ():
            quote = _quote(piece, segment)
            if quote:
                cited = Citation(piece.entry_id, piece.revision_id, quote)
                found.setdefault(piece.entry_id, cited)
    return tuple(found.values())


def _quote(piece: Evidence, segment: Segment) -> str:
    """Return the sentence that fits the segment best; "" where none shares a word."""
    best = best_sentence(piece, segment.text)
    shared = set(terms(segment.text).words) & set(terms(best).words)
    return best if shared else ""
