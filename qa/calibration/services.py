"""Policy versions calibrated on labelled answers, with a certificate or by cost."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from qa.calibration.drift import distributions_of
from qa.calibration.models import Certificate
from qa.calibration.thresholds import (
    CALIBRATABLE,
    Certified,
    CostChoice,
    Method,
    NotCertified,
    calibrate,
    choose_by_cost,
)
from qa.calibration.thresholds.choice import measured_of
from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.models import EvaluationRun
from qa.evaluation.runs import labelled_of
from qa.exceptions import CalibrationError
from qa.pipeline.gates import CONFIDENCES
from qa.pipeline.policy import Policy as PolicyValue
from qa.pipeline.policy import Scope
from qa.policies.models import Policy
from qa.policies.services import CHANGEABLE, new_version

from .versions import current_fingerprints

# Settings that stored signals were measured under and that a replay cannot change.
_MEASURED_UNDER = (
    "top_k", "unverified_floor", "answer_from_enriched", "enriched_floor",
    "verbatim_distance", "scope", "retrieval_timing", "rerank", "debias_verdict",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Labels:
    """Labelled answers with the fingerprints of the models that measured them.

    Fingerprints of several language models or probes are separated by spaces.
    """

    answers: Sequence[LabelledAnswer]
    source: str
    policy: Policy
    embedder: str
    language_model: str
    retrieval: str
    probes: str = ""
    run: EvaluationRun | None = None

    @property
    def sha256(self) -> str:
        """Digest of ids, groups, labels and signals, whatever their order."""
        rows = sorted(
            (a.id, a.group, a.is_answerable, a.is_correct, sorted(a.signals.items()))
            for a in self.answers
        )
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def labels_of_run(run: EvaluationRun) -> Labels:
    if run.state != EvaluationRun.State.FINISHED:
        raise CalibrationError(f"Run {run.pk} ({run}) is not finished; resume it.")
    if run.policy is None or run.knowledge_base is None:
        raise CalibrationError(
            f"Run {run.pk} ({run}) did not ask a knowledge base under a policy, so its "
            "signals can't calibrate one. Evaluate another suite."
        )
    return Labels(
        answers=labelled_of(run),
        source=f"run {run.pk}: {run}",
        policy=run.policy,
        embedder=run.embedder,
        language_model=run.language_model,
        retrieval=run.retrieval,
        probes=run.probes,
        run=run,
    )


def certify(
    policy: Policy,
    labels: Labels,
    *,
    epsilon: float,
    delta: float,
    by: AbstractBaseUser | None,
    signals: Sequence[str] = CALIBRATABLE,
    method: Method = Method.LEARN_THEN_TEST,
    seed: int = 0,
    name: str = "",
) -> Policy | NotCertified:
    """Create an inactive version with a certificate, or return why none is earned.

    `epsilon` is the promised maximum share of wrong answers among the shown, `delta`
    the probability that the promise is broken, both in (0, 1). An empty `name` keeps
    the policy's name.
    """
    _check(policy, labels, signals)
    found = calibrate(
        labels.answers,
        base=policy.as_value(),
        epsilon=epsilon,
        delta=delta,
        signals=signals,
        method=method,
        seed=seed,
    )
    if isinstance(found, NotCertified):
        return found
    with transaction.atomic():
        made = _version(policy, labels, found.policy, by=by, name=name)
        _certificate(made, labels, found).save(force_insert=True)
    return made


def make_by_cost(
    policy: Policy,
    labels: Labels,
    *,
    wrong_cost: float,
    refused_cost: float,
    by: AbstractBaseUser | None,
    signals: Sequence[str] = CALIBRATABLE,
    seed: int = 0,
    name: str = "",
) -> tuple[Policy, CostChoice]:
    _check(policy, labels, signals)
    choice = choose_by_cost(
        labels.answers,
        base=policy.as_value(),
        wrong_cost=wrong_cost,
        refused_cost=refused_cost,
        signals=signals,
        seed=seed,
    )
    return _version(policy, labels, choice.policy, by=by, name=name), choice


def _version(
    policy: Policy,
    labels: Labels,
    chosen: PolicyValue,
    *,
    by: AbstractBaseUser | None,
    name: str,
) -> Policy:
    fields = PolicyValue.__dataclass_fields__.keys() & CHANGEABLE
    changes = {field: getattr(chosen, field) for field in fields} | {
        "calibrated_embedder": labels.embedder,
        "calibrated_language_model": labels.language_model,
        "calibrated_retrieval": labels.retrieval,
        "calibrated_probes": labels.probes if chosen.abstention else "",
        "is_calibrated": True,
        "name": name or policy.name,
    }
    return new_version(policy, by=by, **changes)


def _certificate(policy: Policy, labels: Labels, found: Certified) -> Certificate:
    tested = found.tested
    spread = distributions_of(measured_of(labels.answers), found.policy)
    return Certificate(
        policy=policy,
        run=labels.run,
        method=found.method.value,
        epsilon=found.epsilon,
        delta=found.delta,
        learnt=found.learnt,
        labelled=tested.labelled,
        shown=tested.shown,
        wrong=tested.wrong,
        bound=tested.bound,
        coverage=tested.coverage,
        groups=tested.groups,
        group_bound=tested.group_bound,
        warnings=list(found.warnings),
        thresholds=dict(found.thresholds),
        labels_sha256=labels.sha256,
        labels_source=labels.source[:200],
        signal_quantiles={name: each.as_json() for name, each in spread.items()},
        embedder=labels.embedder,
        language_model=labels.language_model,
        retrieval=labels.retrieval,
        probes=policy.calibrated_probes,
    )


def _check(policy: Policy, labels: Labels, signals: Sequence[str]) -> None:
    if policy.knowledge_base_id != labels.policy.knowledge_base_id:
        raise CalibrationError(
            f"The labelled answers belong to {labels.policy.knowledge_base} and "
            f"{policy} to {policy.knowledge_base}; name a policy of the former."
        )
    if policy.scope == Scope.ADAPTIVE:
        raise CalibrationError(
            f"{policy} also shows answers without evidence, which these thresholds do "
            "not decide, so nothing can be promised about all it shows. Calibrate a "
            "version of the scope knowledge_base; choose min_known with "
            "manage.py calibrate min_known."
        )
    running = current_fingerprints()
    for what, measured_by, runs in (
        ("embedding model", labels.embedder, running.embedder),
        ("way of searching", labels.retrieval, running.retrieval),
        ("language model", labels.language_model, running.language_model),
    ):
        if measured_by and runs and runs not in measured_by.split():
            raise CalibrationError(
                f"The labelled answers were measured by the {what} {measured_by}, and "
                f"{runs} runs now; evaluate the suite again and calibrate on that run."
            )
    is_by_probes = policy.abstention or not CONFIDENCES.keys().isdisjoint(signals)
    in_force = labels.probes if running.probes is None else running.probes
    if is_by_probes and not set(labels.probes.split()) <= set(in_force.split()):
        raise CalibrationError(
            "The labelled answers' confidences were measured by the probes "
            f"{labels.probes}, and {in_force or 'none'} are active now; evaluate the "
            "suite again and calibrate on that run."
        )
    for field in _MEASURED_UNDER:
        was, now = getattr(labels.policy, field), getattr(policy, field)
        if was != now:
            raise CalibrationError(
                f"The labelled answers were measured with {field} {was}, and {policy} "
                f"has {now}; calibrate {labels.policy}, or evaluate under {policy}."
            )
