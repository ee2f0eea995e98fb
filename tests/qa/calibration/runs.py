"""Finished evaluations of drawn answers, as if asked with every gate in shadow."""

from typing import Any

import numpy as np
from django.utils import timezone

from kb.embedding.services import active_model
from kb.search import METHOD
from qa.calibration.services import certify, labels_of_run
from qa.models import EvaluationResult, EvaluationRun, Policy
from qa.policies.services import new_version
from tests.qa.calibration.labelled_answers import draw

MODEL = "m" * 64


def make_run(policy: Policy, /, count: int = 1500, **fields: Any) -> EvaluationRun:
    """Store a finished run under a version of `policy` whose gates are in shadow."""
    values = {
        "suite": "drawn",
        "key": f"key{EvaluationRun.objects.count()}",
        "state": EvaluationRun.State.FINISHED,
        "knowledge_base": policy.knowledge_base,
        "policy": new_version(
            policy, by=None, hard_refusal=False, soft_refusal=False, support_check=False
        ),
        "total": count,
        "embedder": active_model().fingerprint,
        "language_model": MODEL,
        "retrieval": METHOD,
        "finished_at": timezone.now(),
    }
    run = EvaluationRun.objects.create(**{**values, **fields})
    EvaluationResult.objects.bulk_create(
        EvaluationResult(
            run=run,
            case_id=answer.id,
            group=answer.group,
            is_answerable=answer.is_answerable,
            is_answered=True,
            is_correct=answer.is_correct,
            signals=answer.signals,
            milliseconds=1.0,
        )
        for answer in draw(np.random.default_rng(1), count, per_group=3)
    )
    return run


def certified_version(policy: Policy) -> Policy:
    """Make a version with a certificate of 15 % at 95 %."""
    labels = labels_of_run(make_run(policy))
    made = certify(policy, labels, epsilon=0.15, delta=0.05, by=None)
    assert isinstance(made, Policy)
    return made
