"""A joint probe weighs signals, bears missing ones, and is read back as written."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from probes.cards import ProbeCard, ProbeFiles, ProbeKind, card_bytes
from probes.exceptions import ProbeFileError, ProbeMismatchError, TooFewLabelsError
from probes.joint import JointSettings, fit_joint, joint_files, joint_from
from probes.services import load_probe

MODEL = "a" * 64
SETTINGS = JointSettings(("verdict", "overlap", "noise"), frozenset({"verdict"}), 1e-6)
CARD = ProbeCard(
    kind=ProbeKind.JOINT,
    language_model="",
    language_model_name="tiny",
    form="",
    layer=None,
    part="",
    temperature=1.0,
    data_sha256="d" * 64,
    sizes={"answers": 4000},
    settings={},
)


def drawn(count, seed, *, missing=0.0):
    """Draw answers that are right with log-odds logit(verdict) + 2 overlap - 1."""
    random = np.random.default_rng(seed)
    verdict = random.uniform(0.05, 0.95, count)
    overlap = random.normal(size=count)
    right = random.uniform(size=count) < expit(logit(verdict) + 2 * overlap - 1)
    is_missing = random.uniform(size=count) < missing
    rows = [
        {"verdict": v, "overlap": None if gone else o, "noise": n}
        for v, o, n, gone in zip(
            verdict, overlap, random.normal(size=count), is_missing, strict=True
        )
    ]
    return rows, right.tolist()


def fitted(rows, right, settings=SETTINGS):
    return fit_joint(
        rows,
        right,
        language_model=MODEL,
        settings=settings,
        inputs={"early": "e" * 64},
    )


@pytest.fixture(scope="module")
def probe():
    return fitted(*drawn(4000, 0))


def test_the_weights_behind_the_answers_are_found(probe):
    slopes = {name: t.weight / t.deviation for name, t in probe.terms.items()}

    assert slopes["verdict"] == pytest.approx(1, abs=0.15)
    assert slopes["overlap"] == pytest.approx(2, abs=0.2)
    assert slopes["noise"] == pytest.approx(0, abs=0.15)


def test_confidences_of_unseen_answers_mean_what_they_say(probe):
    rows, right = drawn(8000, 1)
    confidences = np.array([probe.confidence(row) for row in rows])

    for low in (0.0, 0.25, 0.5, 0.75):
        inside = (confidences >= low) & (confidences < low + 0.25)
        assert inside.sum() > 300
        share = np.array(right)[inside].mean()
        assert share == pytest.approx(confidences[inside].mean(), abs=0.05)


def test_what_is_often_missing_has_a_weight_of_its_own():
    rows, right = drawn(4000, 0, missing=0.3)
    # Whatever was not measured is wrong.
    right = [
        good and row["overlap"] is not None
        for good, row in zip(right, rows, strict=True)
    ]

    probe = fitted(rows, right)

    assert probe.terms["overlap"].missing < -3
    assert probe.confidence({"verdict": 0.9, "noise": 0.0}) < 0.1
    assert probe.terms["verdict"].missing == 0.0


def test_a_missing_signal_counts_as_its_mean_where_that_was_never_learnt(probe):
    mean = probe.terms["overlap"].mean
    known = {"verdict": 0.7, "noise": 0.1}

    for gone in (known, known | {"overlap": None}, known | {"overlap": math.nan}):
        assert probe.confidence(gone) == probe.confidence(known | {"overlap": mean})


def test_signals_that_tell_nothing_are_left_out():
    rows, right = drawn(400, 0)
    rows = [row | {"noise": 3.0, "never": None} for row in rows]

    names = fitted(rows, right, replace(SETTINGS, signals=(*rows[0],))).terms

    assert set(names) == {"verdict", "overlap"}


@given(
    st.dictionaries(
        st.sampled_from(["verdict", "overlap", "noise", "unknown"]),
        st.none() | st.floats(),
    )
)
def test_any_signals_give_a_confidence(probe, signals):
    assert 0 <= probe.confidence(signals) <= 1


@given(st.floats(0, 1), st.floats(0, 1), st.floats(-5, 5))
def test_more_of_what_speaks_for_an_answer_never_lowers_it(probe, one, other, overlap):
    low, high = sorted((one, other))
    confidences = [
        probe.confidence({"verdict": verdict, "overlap": overlap})
        for verdict in (low, high)
    ]
    assert confidences[0] <= confidences[1]


@pytest.mark.parametrize(("count", "right"), [(90, 45), (200, 200), (200, 5), (0, 0)])
def test_too_few_or_one_sided_labels_are_refused(count, right):
    rows = [{"verdict": 0.5} for _ in range(count)]
    with pytest.raises(TooFewLabelsError, match=f"{count} labelled answers"):
        fitted(rows, [index < right for index in range(count)])


def test_a_probe_is_read_back_as_it_was_written(probe, tmp_path):
    joint_files(probe, SETTINGS, CARD).write(tmp_path)

    found = load_probe(ProbeFiles.read(tmp_path), language_model=MODEL)

    assert found == probe
    said = json.loads((tmp_path / "weights.json").read_text())
    assert said["terms"]["overlap"]["weight"] == probe.terms["overlap"].weight
    with pytest.raises(ProbeMismatchError):
        joint_from(ProbeFiles.read(tmp_path), language_model="b" * 64)


def _forged(files, weights):
    text = weights if isinstance(weights, bytes) else json.dumps(weights).encode()
    return ProbeFiles("a forgery", card_bytes(files.parsed(), text), text)


_TERM = {"is_log_odds": True, "mean": 0, "deviation": 1, "weight": 1, "missing": 0}


@pytest.mark.parametrize(
    "weights",
    [
        b"\xff",
        b"[" * 100_000,
        [],
        {},
        {"intercept": 0, "terms": []},
        {"intercept": "0", "terms": {}},
        {"intercept": True, "terms": {}},
        {"intercept": 10**400, "terms": {}},
        {"intercept": 0, "terms": {"verdict": _TERM | {"deviation": 0}}},
        {"intercept": 0, "terms": {"verdict": _TERM | {"weight": math.inf}}},
        {"intercept": 0, "terms": {"verdict": _TERM | {"is_log_odds": 1}}},
        {"intercept": 0, "terms": {"verdict": {"mean": 0}}},
    ],
)
def test_damaged_weights_are_refused_with_what_to_do(probe, weights):
    files = _forged(joint_files(probe, SETTINGS, CARD), weights)
    with pytest.raises(ProbeFileError, match="fit it again"):
        joint_from(files, language_model=MODEL)
