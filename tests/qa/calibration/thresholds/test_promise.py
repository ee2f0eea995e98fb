"""The promise holds over many draws of labels, and what looks as good does not keep it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from qa.calibration.thresholds import Certified, Method, NotCertified, calibrate
from qa.calibration.thresholds.candidates import candidates
from qa.calibration.thresholds.values import p_values
from qa.evaluation.decisions import table_of
from qa.pipeline.gates import SCORES
from tests.qa.calibration.labelled_answers import draw, risk_of
from tests.qa.pipeline.values import make_policy

pytestmark = pytest.mark.slow

_RESAMPLES = 250
_EPSILON = 0.2
_DELTA = 0.1
_BASE = make_policy(alpha=2.0, min_verdict=0.0, horizon=2.0)
_JOINT = ("verified_ratio", "verdict_probability")


@pytest.fixture(scope="module")
def draws():
    rng = np.random.default_rng(2)
    return [draw(rng, 400) for _ in range(_RESAMPLES)]


@pytest.fixture(autouse=True)
def _in_less_time(monkeypatch):
    """Try fewer combinations; the promise holds for any, and the rest is not tested."""
    package = "qa.calibration.thresholds"
    monkeypatch.setattr(f"{package}.candidates._MAX_COMBINATIONS", 400)
    monkeypatch.setattr(f"{package}.candidates._MAX_OF_ONE", 100)


def broken(policies) -> int:
    return sum(risk_of(p.alpha, p.min_verdict) > _EPSILON for p in policies)


def chance_of_more(count: int) -> float:
    """Return P(at least so many promises are broken) if each is with probability delta."""
    return float(stats.binom.sf(count - 1, _RESAMPLES, _DELTA))


@pytest.mark.parametrize(
    ("signals", "method"),
    [
        (("verified_ratio",), Method.LEARN_THEN_TEST),
        (("verified_ratio",), Method.GUARANTEED_RISK),
        (_JOINT, Method.LEARN_THEN_TEST),
    ],
)
def test_the_promise_is_broken_at_most_delta_of_the_time(draws, signals, method):
    found = [
        calibrate(
            labelled,
            base=_BASE,
            epsilon=_EPSILON,
            delta=_DELTA,
            signals=signals,
            method=method,
            seed=number,
        )
        for number, labelled in enumerate(draws)
    ]
    certified = [each for each in found if isinstance(each, Certified)]

    assert chance_of_more(broken(each.policy for each in certified)) > 1e-3
    # It is no promise kept by never making one.
    assert len(certified) > _RESAMPLES / 4


def test_the_highest_coverage_without_a_bound_breaks_the_promise(draws):
    scores = {name: SCORES[name] for name in _JOINT}
    naive = []
    for labelled in draws:
        table = table_of(labelled)
        policies = candidates(table, _BASE, scores)
        shown, wrong = table.count(policies)
        within = np.flatnonzero(wrong <= _EPSILON * shown)
        naive.append(policies[within[np.argmax(shown[within])]])

    assert chance_of_more(broken(naive)) < 1e-3


def test_where_signals_tell_nothing_luck_is_not_taken_for_a_promise(draws):
    """Of any thresholds a quarter is wrong: whatever is certified breaks the promise."""
    rng = np.random.default_rng(9)
    scores = {name: SCORES[name] for name in _JOINT}
    certified = lucky = 0
    for number, labelled in enumerate(draws):
        blind = [
            replace(answer, is_correct=bool(rng.random() < 0.75)) for answer in labelled
        ]
        found = calibrate(
            blind,
            base=_BASE,
            epsilon=_EPSILON,
            delta=_DELTA,
            signals=_JOINT,
            seed=number,
        )
        certified += isinstance(found, Certified)
        table = table_of(blind)
        shown, wrong = table.count(candidates(table, _BASE, scores))
        lucky += bool((p_values(wrong, shown, _EPSILON) <= _DELTA).any())

    assert chance_of_more(certified) > 1e-3
    # To take any combination that passes, without an order set beforehand, is not it.
    assert chance_of_more(lucky) < 1e-3


def test_more_labels_earn_more_coverage():
    rng = np.random.default_rng(3)

    few, many = (
        calibrate(draw(rng, count), base=_BASE, epsilon=0.2, delta=0.05, signals=_JOINT)
        for count in (400, 8_000)
    )

    assert isinstance(few, Certified)
    assert isinstance(many, Certified)
    assert few.tested.coverage < many.tested.coverage
    assert risk_of(many.policy.alpha, many.policy.min_verdict) <= 0.2


def test_a_signal_that_tells_nothing_earns_nothing():
    rng = np.random.default_rng(4)
    labelled = [
        replace(answer, is_correct=bool(rng.random() < 0.7))
        for answer in draw(rng, 2_000)
    ]

    found = calibrate(labelled, base=_BASE, epsilon=0.05, delta=0.05, signals=_JOINT)

    assert isinstance(found, NotCertified)
    assert "more labels alone will not help" in found.explanation
