"""Drift: live signals against labelled ones, in numbers and on stored answers."""

import logging

import numpy as np
import pytest
from scipy import stats

from jobs.run import run_job
from jobs.services import enqueue
from nescio.celery import schedules
from qa.calibration.drift import (
    STEPS,
    Distribution,
    check_drift,
    compare,
    distribution_from,
    distribution_of,
    distributions_of,
    ks_distance,
    psi,
)
from qa.models import Answer, DriftReading, Policy
from qa.policies.services import activate, ensure_default_policy
from tests.factories import make_knowledge_base, make_user
from tests.qa.calibration.labelled_answers import draw, make_labelled
from tests.qa.calibration.runs import certified_version
from tests.qa.pipeline.values import make_policy
from workers.registry import HANDLERS

pytestmark = pytest.mark.slow


def spread(values, missing: int = 0) -> Distribution:
    return distribution_of(np.asarray(values, np.float64), missing)


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.5])
def test_the_distance_is_kolmogorovs_and_smirnovs(shift):
    rng = np.random.default_rng(1)
    reference, live = rng.normal(size=2_000), rng.normal(size=700) + shift

    expected = stats.ks_2samp(reference, live).statistic
    assert ks_distance(spread(reference), live) == pytest.approx(
        expected, abs=1.5 / STEPS
    )


def test_values_that_are_often_the_same_are_no_distance():
    values = np.repeat([0.0, 0.5, 1.0], [300, 200, 500])

    assert ks_distance(spread(values), values) == pytest.approx(0.0, abs=1 / STEPS)
    index, _ = psi(spread(values), values, 0)
    assert index < 0.001
    half = np.repeat([0.0, 0.5, 1.0], [150, 350, 500])
    assert ks_distance(spread(values), half) == pytest.approx(0.15, abs=1.5 / STEPS)


def test_the_stability_index_of_a_worked_example():
    """Tenths of the reference; live, the lowest tenth has doubled and the highest gone."""
    reference = np.arange(1_000) / 1_000
    live = np.concatenate([reference[:100], reference[:900]])

    index, bins = psi(spread(reference), live, 0)

    lost = np.log(0.1 * (1_000 + 0.5) / 0.5) * (0.1 - 0.0005)
    assert bins == 10
    assert index == pytest.approx(0.1 * np.log(2) + lost, rel=0.02)


def test_what_is_no_longer_measured_is_drift():
    index, bins = psi(spread(np.arange(500), missing=500), np.arange(900.0), 100)

    assert bins == 11
    assert index > 0.8


def test_drift_is_seldom_seen_where_there_is_none():
    rng = np.random.default_rng(3)
    policy = make_policy(alpha=0.8)
    references = distributions_of(draw(rng, 500), policy)
    seen = 0
    for _ in range(100):
        live = [
            answer.signals
            for answer in draw(rng, 400)
            if (answer.signals["verified_ratio"] or 0.0) < policy.alpha
        ]
        found = compare(
            {"verdict_probability": references["verdict_probability"]}, live
        )
        seen += found["verdict_probability"].has_drifted
    assert stats.binom.sf(seen - 1, 100, 0.01) > 1e-3


def test_a_later_gates_reference_is_of_what_the_policy_lets_through():
    labelled = [
        make_labelled("near", verified_ratio=0.3, verdict_probability=0.9),
        make_labelled("far", verified_ratio=1.1, verdict_probability=0.1),
    ]

    found = distributions_of(labelled, make_policy(alpha=0.8))

    assert found["verified_ratio"].measured == 2
    assert found["verdict_probability"].measured == 1
    assert found["verdict_probability"].quantiles.min() == 0.9
    assert "unverified_ratio" not in found


def test_a_distribution_is_the_same_after_it_was_kept():
    rng = np.random.default_rng(4)
    kept = spread(rng.random(300), missing=4)

    again = distribution_from(kept.as_json())

    assert (again.measured, again.missing) == (300, 4)
    assert again.quantiles.tolist() == kept.quantiles.tolist()


@pytest.fixture
def certified(db) -> Policy:
    made = certified_version(ensure_default_policy(make_knowledge_base()))
    return activate(made)


def store_live(
    policy: Policy, count: int, *, shift: float = 0.0, channel: str = "api"
) -> None:
    """Store answers that `policy` decided, measured as its labelled ones were."""
    user = make_user()
    rows = []
    for answer in draw(np.random.default_rng(8), count):
        ratio = answer.signals["verified_ratio"] or 0.0
        ratio = min(ratio + shift, 2.0)
        measured = answer.signals if ratio < policy.alpha else {}
        signals = {**measured, "verified_ratio": ratio}
        rows.append(
            Answer(
                knowledge_base=policy.knowledge_base,
                asker=user,
                channel=channel,
                question="What does it cost?",
                outcome="answered",
                policy=policy,
                calibration="current",
                signals=[
                    {"gate": "", "name": name, "value": value}
                    for name, value in signals.items()
                ],
            )
        )
    Answer.objects.bulk_create(rows)


@pytest.mark.django_db
def test_live_answers_like_the_labelled_ones_have_not_drifted(certified):
    store_live(certified, 400)

    reading = check_drift(certified.certificate)

    assert (reading.answers, reading.has_drifted) == (400, False)
    assert reading.signals["verified_ratio"]["live"] == 400
    assert 0 < reading.signals["verdict_probability"]["live"] < 400
    assert reading.first_at is not None
    assert reading.last_at is not None
    assert reading.first_at <= reading.last_at


@pytest.mark.django_db
def test_shifted_answers_are_raised_and_the_signal_is_named(certified, caplog):
    store_live(certified, 400, shift=0.3)

    with caplog.at_level(logging.WARNING, logger="qa.calibration.drift"):
        reading = check_drift(certified.certificate)

    assert reading.has_drifted
    found = reading.signals["verified_ratio"]
    assert found["has_drifted"]
    assert found["distance"] == pytest.approx(0.3, abs=0.05)
    assert "verified_ratio" in caplog.text
    assert str(certified) in caplog.text


@pytest.mark.django_db
@pytest.mark.parametrize("count", [0, 99])
def test_few_answers_are_compared_with_nothing(certified, count):
    store_live(certified, count, shift=0.5)

    reading = check_drift(certified.certificate)

    assert (reading.answers, reading.signals) == (count, {})
    assert not reading.has_drifted
    assert not reading.was_possible


@pytest.mark.django_db
def test_evaluations_and_other_versions_answers_are_not_live(certified):
    store_live(certified, 300)
    store_live(certified, 300, shift=0.5, channel="evaluation")
    other = Policy.objects.exclude(pk=certified.pk).earliest("pk")
    store_live(other, 300, shift=0.5)

    reading = check_drift(certified.certificate)

    assert (reading.answers, reading.has_drifted) == (300, False)


@pytest.mark.django_db
def test_only_the_newest_answers_count(certified):
    store_live(certified, 300, shift=0.5)
    store_live(certified, 200)

    reading = check_drift(certified.certificate, latest=200)

    assert (reading.answers, reading.has_drifted) == (200, False)


@pytest.mark.django_db(transaction=True)
def test_the_job_checks_each_active_certificate_once(certified, monkeypatch):
    monkeypatch.setattr("jobs.services.notify_worker", lambda *_: True)
    store_live(certified, 300, shift=0.5)
    job = enqueue("qa.watch_drift", {})

    run_job(job.pk, HANDLERS)

    job.refresh_from_db()
    assert (job.state, job.result) == ("succeeded", {"checked": 1, "drifted": 1})
    reading = DriftReading.objects.get()
    assert reading.certificate == certified.certificate
    assert reading.has_drifted


@pytest.mark.django_db(transaction=True)
def test_an_inactive_certificate_is_not_checked(certified, monkeypatch):
    monkeypatch.setattr("jobs.services.notify_worker", lambda *_: True)
    activate(Policy.objects.exclude(pk=certified.pk).earliest("pk"))
    job = enqueue("qa.watch_drift", {})

    run_job(job.pk, HANDLERS)

    job.refresh_from_db()
    assert (job.state, job.result) == ("succeeded", {"checked": 0, "drifted": 0})
    assert not DriftReading.objects.exists()


@pytest.mark.django_db
def test_beat_rings_for_it_every_night_and_one_check_at_a_time_waits(monkeypatch):
    from jobs.models import Job
    from workers.tasks import watch_drift

    monkeypatch.setattr("jobs.services.notify_worker", lambda *_: True)
    watch_drift()
    watch_drift()

    assert schedules()["watch_drift"]["task"] == watch_drift.name
    assert Job.objects.filter(kind="qa.watch_drift").count() == 1
