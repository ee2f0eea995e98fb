"""Storing the whole outcome of a question, so that it can be explained and replayed."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Q
from django.dispatch import Signal
from django.utils import timezone

from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.exceptions import AnswerDecidedError
from qa.pipeline.language_model import Confidence, Generation
from qa.pipeline.values import Boundary, Outcome, Segment
from qa.policies.ask_prefetch import prefetched
from qa.policies.models import Policy, RefusalWording
from qa.policies.wording import refusal_text

# Enough for shading; an answer may have hundreds of tokens.
_ALONG_DECIMALS = 4

answer_stored = Signal()
"""Sent with `answer` after a question was answered, refused or stored as failed."""

OPEN = (Answer.Outcome.PENDING, Answer.Outcome.FAILED)


def record_outcome(answer: Answer, outcome: Outcome, policy: Policy) -> None:
    """Write the decided row and its evidence in one transaction.

    A question that was not stored before is inserted as decided; a stored one is
    completed, once.
    """
    fields = _fields(answer, outcome, policy)
    rows = list(evidence_rows(answer, outcome))
    if not rows:  # one statement needs no transaction, and nothing is left to fetch
        _write(answer, fields)
        answer.pieces, answer.is_withheld = [], False
        answer_stored.send_robust(Answer, answer=answer)
        return
    is_new = answer._state.adding
    try:
        with transaction.atomic():
            _write(answer, fields)
            AnswerEvidence.objects.bulk_create(rows)
    except DatabaseError:
        answer._state.adding = is_new  # the insert was rolled back
        raise
    answer_stored.send_robust(Answer, answer=answer)


def fill_in(answer: Answer, outcome: Outcome, policy: Policy) -> None:
    """Set the outcome's fields on a row, without writing it."""
    _set(answer, _fields(answer, outcome, policy))


def record_failure(answer: Answer, error: Exception | str) -> None:
    """Store a question that could not be decided with the reason, to be retried."""
    _write(answer, {"outcome": Answer.Outcome.FAILED, "error": str(error)})
    answer_stored.send_robust(Answer, answer=answer)


def shown_text(answer: Answer, outcome: Outcome) -> str:
    """Return the text shown to the asker: the answer, or the refusal's wording.

    One query, or none if the wordings were prefetched with the knowledge base.
    """
    if outcome.shown_reason is None:
        return outcome.answer
    reason = outcome.shown_reason
    languages = [answer.refusal_language or answer.language, answer.language]
    found = prefetched(answer.knowledge_base)
    if found:
        return refusal_text(reason, *languages, overrides=found.wordings)
    own = RefusalWording.objects.filter(
        Q(reason=reason.value) | Q(reason=""),
        knowledge_base_id=answer.knowledge_base_id,
        language__in=languages,
    ).values_list("language", "reason", "text")
    overrides = {(language, name): text for language, name, text in own}
    return refusal_text(reason, *languages, overrides=overrides)


def _write(answer: Answer, fields: dict[str, Any]) -> None:
    is_new = answer._state.adding
    if not is_new:
        rows = Answer.objects.filter(
            pk=answer.pk, outcome__in=OPEN, claimed_at=answer.claimed_at
        )
        if not rows.update(**fields):
            raise AnswerDecidedError(
                f"Question {answer.pk} was decided by another request meanwhile."
            )
    _set(answer, fields)
    if is_new:
        answer.save(force_insert=True)


def _set(answer: Answer, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        setattr(answer, name, value)


def _fields(answer: Answer, outcome: Outcome, policy: Policy) -> dict[str, Any]:
    is_answered = outcome.answered
    return {
        "outcome": Answer.Outcome.ANSWERED if is_answered else Answer.Outcome.REFUSED,
        "gate": outcome.gate.value if outcome.gate else "",
        "reason": outcome.reason.value if outcome.reason else "",
        "shown_reason": outcome.shown_reason.value if outcome.shown_reason else "",
        "text": shown_text(answer, outcome),
        "reasoning": outcome.reasoning if is_answered else "",
        "policy": policy,
        "calibration": outcome.calibration.value,
        "signals": [asdict(signal) for signal in outcome.signals],
        "milliseconds": {t.stage: round(t.milliseconds, 3) for t in outcome.times},
        "generation": _generation(outcome.generation),
        "confidence": _confidence(outcome.confidence),
        "contradictions": [
            {
                "conflict_id": each.conflict_id,
                "entries": list(each.entries),
                "quotes": list(each.quotes),
            }
            for each in outcome.contradictions
        ],
        "boundary": _boundary(outcome.boundary),
        "scope": answer.scope,
        "embedder": outcome.embedder,
        "language_model": outcome.language_model,
        "probes": outcome.probes,
        "error": "",
        "decided_at": timezone.now(),
    }


def _generation(generation: Generation | None) -> dict[str, Any]:
    """Return everything that the model returned, except the arrays of its trace."""
    if generation is None:
        return {}
    fields = asdict(replace(generation, trace=None))
    fields.pop("trace")
    return fields


def _confidence(confidence: Confidence | None) -> dict[str, Any]:
    if confidence is None:
        return {}
    along = [round(value, _ALONG_DECIMALS) for value in confidence.along]
    return {"along": along, "missing": confidence.missing}


def _boundary(boundary: Boundary | None) -> dict[str, Any]:
    if boundary is None:
        return {}
    return {
        "fingerprint": boundary.fingerprint,
        "examples": list(boundary.examples),
        "segments": [_segment(segment) for segment in boundary.segments],
    }


def _segment(segment: Segment) -> dict[str, Any]:
    fields = asdict(replace(segment, evidence=()))
    confidences = [round(value, _ALONG_DECIMALS) for value in segment.confidences]
    return {
        **fields,
        "confidences": confidences,
        "evidence": [piece.entry_id for piece in segment.evidence],
    }


def evidence_rows(answer: Answer, outcome: Outcome) -> Iterator[AnswerEvidence]:
    """Yield one row for each piece that was read or is near, best first.

    A refusal cites nothing. Of evidence beyond the horizon, a hard refusal stores only
    the distances, among the signals.
    """
    quotes = {citation.entry_id: citation.quote for citation in outcome.citations}
    # Pieces read and near misses overlap if the model was asked and then refused.
    read = outcome.evidence if outcome.answered or outcome.generation else ()
    pieces = {piece.entry_id: piece for piece in (*read, *outcome.near_misses)}
    near = {piece.entry_id for piece in outcome.near_misses}
    role = AnswerEvidence.Role
    for rank, piece in enumerate(pieces.values(), start=1):
        what = role.NEAR_MISS if piece.entry_id in near else role.UNUSED
        yield AnswerEvidence(
            answer=answer,
            entry_id=piece.entry_id,
            revision_id=piece.revision_id,
            rank=rank,
            role=role.CITED if piece.entry_id in quotes else what,
            quote=quotes.get(piece.entry_id, ""),
            distance=piece.distance,
            confidence=piece.confidence,
        )
