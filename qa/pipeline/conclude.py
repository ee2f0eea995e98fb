"""The outcome of a question, summed up from everything measured on the way."""

from collections.abc import Sequence

from kb.types import Evidence

from .gates import Gate
from .language_model import Citation
from .staleness import closed_book_calibration, current_calibration
from .values import Boundary, Calibration, Outcome, StageTime, Trace


def conclude(trace: Trace) -> Outcome:
    """Return the outcome: refused by the first gate that refused, else answered."""
    refusal = trace.refusal
    matches = () if refusal else trace.matches
    citations = () if refusal else _citations(trace)
    opposed = {entry for each in trace.contradictions for entry in each.entries}
    generation, boundary = trace.generation, trace.boundary
    return Outcome(
        question=trace.question,
        policy=trace.policy,
        answered=refusal is None,
        gate=refusal.gate if refusal else _answering_gate(trace),
        reason=refusal.reason if refusal else None,
        shown_reason=refusal.shown_reason if refusal else None,
        answer="" if refusal else _text(trace),
        reasoning=generation.reasoning if generation else "",
        citations=citations,
        evidence=_evidence(trace, matches, opposed),
        near_misses=tuple(
            piece
            for piece in trace.retrieval.evidence
            if refusal
            and (piece.distance <= trace.policy.horizon or piece.entry_id in opposed)
        ),
        signals=trace.signals,
        times=_with_parts(trace),
        calibration=_calibration(trace),
        embedder=trace.retrieval.embedder,
        language_model=trace.language_model,
        generation=generation,
        confidence=trace.confidence,
        probes=f"{trace.probes or ''} {trace.verifier}".strip(),
        contradictions=trace.contradictions,
        boundary=boundary,
    )


def _answering_gate(trace: Trace) -> Gate | None:
    if trace.verbatim.evidence:
        return Gate.VERBATIM
    if trace.entries:
        return Gate.ENTRY
    boundary = trace.boundary
    rests_on_model = boundary is not None and boundary.is_answered
    return Gate.BOUNDARY if rests_on_model and not _is_carried(trace) else None


def _is_carried(trace: Trace) -> bool:
    """Return whether a monitored answer's citations support all its sentences."""
    segments = trace.boundary.segments if trace.boundary else ()
    cited = {citation.entry_id for citation in trace.citations}
    return bool(segments) and all(
        segment.is_sourced and any(p.entry_id in cited for p in segment.evidence)
        for segment in segments
    )


def _text(trace: Trace) -> str:
    if len(trace.matches) == 1:
        return trace.matches[0].text
    if trace.matches:
        shown = enumerate(trace.matches, start=1)
        return "\n\n".join(f"{piece.text} [{number}]" for number, piece in shown)
    if trace.boundary and trace.boundary.segments:
        return " ".join(segment.text for segment in trace.boundary.segments)
    return trace.generation.answer.strip() if trace.generation else ""


def _evidence(
    trace: Trace, matches: Sequence[Evidence], opposed: set[int]
) -> tuple[Evidence, ...]:
    """Return what a model read, or the entries shown and those that contradict them."""
    found = trace.retrieval.evidence
    if matches:
        others = opposed - {piece.entry_id for piece in matches}
        return (*matches, *(piece for piece in found if piece.entry_id in others))
    is_read = trace.generation or (trace.boundary and trace.boundary.segments)
    return found if is_read else ()


def _citations(trace: Trace) -> tuple[Citation, ...]:
    if matches := trace.matches:
        telling = trace.telling or ("",) * len(matches)
        return tuple(
            Citation(piece.entry_id, piece.revision_id, said or piece.text)
            for piece, said in zip(matches, telling, strict=True)
        )
    return trace.citations


def _calibration(trace: Trace) -> Calibration:
    boundary: Boundary | None = trace.boundary
    if boundary and (boundary.is_answered or boundary.segments):
        return closed_book_calibration(trace.policy, boundary.fingerprint)
    return current_calibration(
        trace.policy, trace.retrieval, trace.language_model, probes=trace.probes
    )


def _with_parts(trace: Trace) -> tuple[StageTime, ...]:
    """Insert the parts of retrieval after it; its own time already includes them."""
    parts = (
        StageTime("retrieve.embed", trace.retrieval.embed_milliseconds),
        StageTime("retrieve.sql", trace.retrieval.sql_milliseconds),
    )
    return tuple(
        shown
        for time in trace.clock.times
        for shown in ((time, *parts) if time.stage == "retrieve" else (time,))
    )
