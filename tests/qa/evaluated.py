"""Labelled answers and logged traffic, written straight into the tables."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from qa.evaluation.cases import LabelledAnswer
from qa.models import Answer, EvaluationResult, EvaluationRun, Policy
from qa.policies.services import ensure_default_policy
from tests.factories import make_knowledge_base, make_user
from tests.qa.answer_rows import make_answer
from tests.qa.pipeline.values import EMBEDDER, MODEL

Measured = Mapping[str, float | None]


def measured(
    ratio: float = 0.5, verdict: float = 0.9, **changes: float | None
) -> Measured:
    """Return all that the gates measure of a question, as a run in shadow stores it."""
    return {
        "question_distance": None,
        "same_words": None,
        "distance_over_confidence": ratio,
        "verified_ratio": ratio,
        "unverified_ratio": None,
        "readable": 1.0,
        "answer_characters": 18.0,
        "verdict": 1.0,
        "verdict_probability": verdict,
        "not_a_refusal_in_prose": 1.0,
        "citations_verified": 1.0,
        "unsupported_facts": 0.0,
    } | changes


def kept_from_the_model(ratio: float) -> Measured:
    """Return what is measured of a question that hard refusal ended."""
    return {"distance_over_confidence": ratio, "verified_ratio": ratio, "unverified_ratio": None}  # fmt: skip


def labelled(
    key: str, signals: Measured, *, answerable: bool | None, correct: bool | None
) -> LabelledAnswer:
    """Return a labelled answer of a group of its own."""
    return LabelledAnswer(key, key, signals, answerable, correct)


def make_run(*answers: LabelledAnswer, **fields: Any) -> EvaluationRun:
    """Make a finished run in the default knowledge base that measured these answers."""
    knowledge_base = make_knowledge_base()
    values: dict[str, Any] = {
        "suite": "own questions",
        "key": f"key of {len(answers)}",
        "state": "finished",
        "knowledge_base": knowledge_base,
        "policy": ensure_default_policy(knowledge_base),
        "total": len(answers),
        "embedder": EMBEDDER,
        "language_model": MODEL,
        "finished_at": timezone.now(),
    }
    run = EvaluationRun.objects.create(**values | fields)
    EvaluationResult.objects.bulk_create(
        EvaluationResult(
            run=run,
            case_id=answer.id,
            group=answer.group,
            is_answerable=answer.is_answerable,
            is_correct=answer.is_correct,
            is_answered=True,
            signals=dict(answer.signals),
            milliseconds=1.0,
        )
        for answer in answers
    )
    return run


def make_logged(signals: Measured, **fields: Any) -> Answer:
    """Make a logged answer that was decided on these signals; a refusal by `reason`."""
    stored = [
        {"gate": "hard_refusal", "name": name, "value": value, "threshold": None, "passed": None}
        for name, value in signals.items()
    ]  # fmt: skip
    values: dict[str, Any] = {"signals": stored, "embedder": EMBEDDER}
    if "reason" not in fields:
        values |= {"outcome": "answered", "gate": "", "reason": "", "shown_reason": ""}
    return make_answer(fields.pop("asker", None) or make_user(), **values | fields)


def policy_of_default_base() -> Policy:
    """Return the default knowledge base's first policy."""
    return ensure_default_policy(make_knowledge_base())
