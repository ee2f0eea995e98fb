"""Stage 10: what a question came to, from everything that was measured on the way."""

from kb.types import Evidence

from .gates import Decision, Gate
from .language_model import Citation, Confidence, Generation
from .policy import Policy
from .staleness import calibration_of
from .values import (
    Agreement,
    Boundary,
    Outcome,
    Question,
    Retrieval,
    StageTime,
    Support,
    VerbatimMatch,
)


def conclude(
    question: Question,
    retrieval: Retrieval,
    verbatim: VerbatimMatch,
    hard: Decision,
    generation: Generation | None = None,
    support: Support | None = None,
    soft: Decision | None = None,
    confidence: Confidence | None = None,
    abstention: Decision | None = None,
    agreement: Agreement | None = None,
    boundary: Boundary | None = None,
    *,
    policy: Policy,
    language_model: str = "",
    probes: str | None = None,
    times: tuple[StageTime, ...],
) -> Outcome:
    """Return the outcome: refused by the first gate that refused, else answered."""
    agreed = agreement.decision if agreement else None
    decisions = [gate for gate in (hard, soft, abstention, agreed) if gate]
    refusal = next((gate for gate in decisions if gate.refused), None)
    match = verbatim.evidence if refusal is None else None
    contradictions = agreement.contradictions if agreement else ()
    opposed = {entry for each in contradictions for entry in each.entries}
    seen = retrieval.evidence if generation else ()
    if match:
        seen = (match, *_others(retrieval, opposed - {match.entry_id}))
    return Outcome(
        question=question,
        policy=policy,
        answered=refusal is None,
        gate=refusal.gate if refusal else Gate.VERBATIM if match else None,
        reason=refusal.reason if refusal else None,
        shown_reason=refusal.shown_reason if refusal else None,
        answer="" if refusal else match.text if match else _answer(generation),
        reasoning=generation.reasoning if generation else "",
        citations=() if refusal else _citations(verbatim, support),
        evidence=seen,
        near_misses=tuple(
            piece
            for piece in retrieval.evidence
            if refusal
            and (piece.distance <= policy.horizon or piece.entry_id in opposed)
        ),
        signals=(
            *(boundary.signals if boundary else ()),
            *verbatim.signals,
            *(signal for gate in decisions for signal in gate.signals),
        ),
        times=_with_parts(times, retrieval),
        calibration=calibration_of(policy, retrieval, language_model, probes=probes),
        embedder=retrieval.embedder,
        language_model=language_model,
        generation=generation,
        confidence=confidence,
        probes=probes or "",
        contradictions=contradictions,
        boundary=boundary,
    )


def _others(retrieval: Retrieval, entry_ids: set[int]) -> tuple[Evidence, ...]:
    return tuple(p for p in retrieval.evidence if p.entry_id in entry_ids)


def _with_parts(
    times: tuple[StageTime, ...], retrieval: Retrieval
) -> tuple[StageTime, ...]:
    """Put the parts of retrieving behind it; they are in its time, not beside it."""
    parts = (
        StageTime("retrieve.embed", retrieval.embed_milliseconds),
        StageTime("retrieve.sql", retrieval.sql_milliseconds),
    )
    return tuple(
        shown
        for time in times
        for shown in ((time, *parts) if time.stage == "retrieve" else (time,))
    )


def _answer(generation: Generation | None) -> str:
    return generation.answer.strip() if generation else ""


def _citations(
    verbatim: VerbatimMatch, support: Support | None
) -> tuple[Citation, ...]:
    if verbatim.evidence:
        piece = verbatim.evidence
        return (Citation(piece.entry_id, piece.revision_id, piece.text),)
    return support.citations if support else ()
