"""Versions with certificates, made from an evaluation's labelled answers."""

from typing import Any

import pytest

from kb.embedding.services import active_model
from kb.search import METHOD
from qa.calibration.services import certify, labels_of_run, make_by_cost
from qa.calibration.thresholds import NotCertified
from qa.calibration.versions import Running, calibration_state, current_fingerprints
from qa.exceptions import CalibrationError, PolicyError
from qa.models import Certificate, EvaluationRun, Policy
from qa.pipeline.policy import RetrievalTiming, Scope
from qa.pipeline.values import Calibration
from qa.policies.services import activate, ensure_default_policy, new_version
from tests.factories import make_knowledge_base, make_user
from tests.qa.answer_rows import make_answer
from tests.qa.calibration.labelled_answers import risk_of
from tests.qa.calibration.runs import MODEL, certified_version, make_run
from tests.qa.pipeline.values import PROBES

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def policy() -> Policy:
    return ensure_default_policy(make_knowledge_base())


def test_a_certified_version_is_new_inactive_and_has_its_certificate(policy):
    by = make_user()
    labels = labels_of_run(make_run(policy))

    made = certify(policy, labels, epsilon=0.15, delta=0.05, by=by, name="careful")

    assert isinstance(made, Policy)
    assert (made.name, made.is_active, made.is_calibrated) == ("careful", False, True)
    assert made.created_by == by
    assert made.calibrated_embedder == active_model().fingerprint
    assert made.calibrated_language_model == MODEL
    assert made.calibrated_retrieval == METHOD
    kept = made.certificate
    assert (kept.run, kept.epsilon, kept.delta) == (labels.run, 0.15, 0.05)
    assert kept.bound <= 0.15
    assert kept.learnt + kept.labelled == 1500
    assert kept.coverage == pytest.approx(kept.shown / kept.labelled)
    assert kept.thresholds == {"alpha": made.alpha, "min_verdict": made.min_verdict}
    assert kept.groups < kept.labelled
    assert kept.group_bound
    assert kept.bound < kept.group_bound <= 0.15
    assert any("unverified_ratio" in warning for warning in kept.warnings)
    assert len(kept.signal_quantiles["verdict_probability"]["quantiles"]) == 201
    # The rest is as it was, and gates whose thresholds were chosen refuse.
    assert (made.top_k, made.verbatim_distance) == (policy.top_k, 0.35)
    assert made.hard_refusal
    assert made.soft_refusal
    assert risk_of(made.alpha, made.min_verdict) <= 0.15


def test_a_certificate_names_the_probes_that_its_thresholds_are_for(policy):
    run = make_run(policy, probes=PROBES)
    for row in run.results.all():
        row.signals["joint_confidence"] = 0.9 if row.is_correct else 0.2
        row.save(update_fields=["signals"])
    labels = labels_of_run(run)
    asked: dict[str, Any] = {"epsilon": 0.05, "delta": 0.05, "by": None}

    made = certify(policy, labels, **asked)
    without = certify(policy, labels, signals=("verified_ratio",), **asked | {"epsilon": 0.25})  # fmt: skip

    assert isinstance(made, Policy)
    assert isinstance(without, Policy)
    assert made.abstention
    assert 0.2 < made.min_joint_confidence <= 0.9
    assert made.certificate.thresholds["min_joint_confidence"] > 0.2
    assert made.calibrated_probes == made.certificate.probes == PROBES
    assert (without.abstention, without.calibrated_probes) == (False, "")


def test_confidences_of_probes_that_are_in_force_no_more_are_not_calibrated_on(policy):
    labels = labels_of_run(make_run(policy, probes=PROBES))
    make_answer(make_user(), language_model=MODEL, probes="c" * 64)
    asked: dict[str, Any] = {"epsilon": 0.25, "delta": 0.05, "by": None}

    with pytest.raises(CalibrationError, match="evaluate the suite again"):
        certify(policy, labels, **asked)

    assert isinstance(certify(policy, labels, signals=("verified_ratio",), **asked), Policy)  # fmt: skip


def test_the_digest_is_of_the_labels_whatever_their_order(policy):
    run = make_run(policy, 30)
    labels, same = labels_of_run(run), labels_of_run(run)
    other = labels_of_run(make_run(policy, 31))

    assert labels.sha256 == same.sha256
    assert labels.sha256 != other.sha256


def test_too_little_data_makes_no_version_and_says_what_it_takes(policy):
    before = Policy.objects.count()
    labels = labels_of_run(make_run(policy, 60))

    found = certify(policy, labels, epsilon=0.05, delta=0.05, by=None)

    assert isinstance(found, NotCertified)
    assert found.needed == 59
    assert "59" in found.explanation
    assert Policy.objects.count() == before + 1  # the run's own, in shadow
    assert not Certificate.objects.exists()


def test_a_name_that_is_none_leaves_neither_version_nor_certificate(policy):
    labels = labels_of_run(make_run(policy))
    before = Policy.objects.count()

    with pytest.raises(PolicyError, match="name"):
        certify(policy, labels, epsilon=0.15, delta=0.05, by=None, name="x" * 101)

    assert (Policy.objects.count(), Certificate.objects.count()) == (before, 0)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"embedder": "0" * 64}, "embedding model"),
        ({"retrieval": "cosine/1"}, "way of searching"),
        ({"language_model": "0" * 64}, "language model"),
    ],
)
def test_labels_measured_by_other_models_than_those_running_are_refused(
    policy, fields, said
):
    make_answer(make_user(), language_model=MODEL)
    labels = labels_of_run(make_run(policy, 30, **fields))

    with pytest.raises(CalibrationError, match=f"{said}.*evaluate the suite again"):
        certify(policy, labels, epsilon=0.1, delta=0.1, by=None)


@pytest.mark.parametrize(
    "changes",
    [
        {"top_k": 2},
        {"unverified_floor": 0.9},
        {"verbatim_distance": 0.1},
        {"debias_verdict": True},
    ],
)
def test_labels_measured_under_another_retrieval_policy_are_refused(policy, changes):
    labels = labels_of_run(make_run(policy, 30))
    other = new_version(policy, by=None, **changes)

    with pytest.raises(CalibrationError, match=next(iter(changes))):
        certify(other, labels, epsilon=0.1, delta=0.1, by=None)


def test_nothing_is_promised_of_a_policy_that_shows_what_no_evidence_carries(policy):
    labels = labels_of_run(make_run(policy, 30))
    adaptive = new_version(
        policy,
        by=None,
        scope=Scope.ADAPTIVE,
        retrieval_timing=RetrievalTiming.BOUNDARY,
    )

    with pytest.raises(CalibrationError, match="answers without evidence"):
        certify(adaptive, labels, epsilon=0.1, delta=0.1, by=None)
    with pytest.raises(CalibrationError, match="answers without evidence"):
        make_by_cost(adaptive, labels, wrong_cost=1, refused_cost=1, by=None)


def test_labels_of_another_knowledge_base_are_refused(policy):
    labels = labels_of_run(make_run(policy, 30))
    other = ensure_default_policy(make_knowledge_base("loans"))

    with pytest.raises(CalibrationError, match="Cards"):
        certify(other, labels, epsilon=0.1, delta=0.1, by=None)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"state": EvaluationRun.State.RUNNING}, "not finished"),
        ({"policy": None}, "did not ask a knowledge base"),
        ({"knowledge_base": None}, "did not ask a knowledge base"),
    ],
)
def test_an_unfinished_run_and_one_that_asked_no_knowledge_base_have_no_labels(
    policy, fields, said
):
    with pytest.raises(CalibrationError, match=said):
        labels_of_run(make_run(policy, 3, **fields))


def test_the_cheapest_version_is_calibrated_and_has_no_certificate(policy):
    labels = labels_of_run(make_run(policy))

    made, choice = make_by_cost(
        policy, labels, wrong_cost=5.0, refused_cost=1.0, by=None
    )

    assert made.is_calibrated
    assert not Certificate.objects.exists()
    assert made.min_verdict == choice.thresholds["min_verdict"]


@pytest.mark.parametrize(
    "changes",
    [
        {"alpha": 0.4},
        {"top_k": 2},
        {"unverified_floor": 0.75},
        {"support_check": False},
    ],
)
def test_a_version_made_by_hand_from_a_certified_one_loses_the_certificate(
    policy, changes
):
    certified = certified_version(policy)

    made = new_version(certified, by=None, **changes)

    assert not made.is_calibrated
    assert not hasattr(made, "certificate")
    assert calibration_state(made) is Calibration.HAND_SET
    certified.refresh_from_db()
    assert certified.is_calibrated
    assert calibration_state(certified) is Calibration.CURRENT


def test_rolling_back_to_a_certified_version_brings_its_certificate_back(policy):
    certified = certified_version(policy)
    activate(certified)
    activate(new_version(certified, by=None, alpha=0.4))

    activate(certified)

    active = Policy.objects.get(is_active=True)
    assert active.certificate == certified.certificate


def test_a_version_is_stale_under_whatever_else_runs(policy):
    certified = certified_version(policy)
    runs = {"embedder": active_model().fingerprint, "retrieval": METHOD}

    same = Running(**runs, language_model=MODEL)
    assert calibration_state(certified, same) is Calibration.CURRENT
    for changed in ("embedder", "retrieval", "language_model"):
        other = Running(**{**runs, "language_model": MODEL, changed: "another"})
        assert calibration_state(certified, other) is Calibration.STALE


def test_a_version_that_probes_decide_for_is_stale_under_other_probes(policy):
    by_probes = new_version(policy, by=None, abstention=True, calibrated_probes=PROBES)
    runs = {"embedder": "", "retrieval": METHOD, "language_model": ""}

    for probes in (None, PROBES, f"{PROBES} other"):
        same = Running(**runs, probes=probes)
        assert calibration_state(by_probes, same) is Calibration.HAND_SET
    for probes in ("", PROBES.split()[1]):
        other = Running(**runs, probes=probes)
        assert calibration_state(by_probes, other) is Calibration.STALE


def test_what_runs_is_told_without_loading_a_model(policy, django_assert_num_queries):
    active_model()
    make_answer(make_user(), language_model="")
    make_answer(make_user(), language_model=MODEL)
    make_answer(make_user(), language_model=MODEL, probes=PROBES)
    make_answer(make_user(), language_model="")

    with django_assert_num_queries(2):
        running = current_fingerprints()

    assert (running.language_model, running.probes) == (MODEL, PROBES)
    assert running.embedder == active_model().fingerprint
