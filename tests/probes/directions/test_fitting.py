import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from probes.directions.fitting import fit_direction
from probes.directions.sets import Method
from probes.exceptions import TooFewLabelsError


def pairs(seed: int = 0, count: int = 256, width: int = 48):
    """Return both sides of pairs, and the direction that they differ along.

    The statements themselves differ far more, and along another direction; so does what
    else the instruction changes.
    """
    chance = np.random.default_rng(seed)
    true, nuisance = np.linalg.qr(chance.normal(size=(width, 2)))[0].T
    said = chance.normal(size=(count, width)) * 5
    other = chance.normal(size=(count, 1)) * 0.8 * nuisance
    noise = chance.normal(size=(2, count, width)) * 0.1
    half = 0.5 * true + other / 2
    return said + half + noise[0], said - half + noise[1], true


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("seed", range(4))
def test_the_direction_is_found_with_its_sign(method, seed):
    positive, negative, true = pairs(seed)

    found = fit_direction(positive, negative, method=method)

    assert found.vector @ true > 0.95
    assert np.linalg.norm(found.vector) == pytest.approx(1, abs=1e-6)
    assert found.accuracy > 0.95


def test_principal_components_alone_lose_it():
    """Centring takes away the mean of the differences, which is what is looked for."""
    positive, negative, true = pairs()

    plain = PCA(n_components=1).fit(positive - negative).components_[0]

    assert abs(plain @ true) < 0.2


@pytest.mark.parametrize("method", Method)
def test_exchanging_the_sides_turns_it_round(method):
    positive, negative, _ = pairs()

    there = fit_direction(positive, negative, method=method)
    back = fit_direction(negative, positive, method=method)

    assert np.allclose(there.vector, -back.vector, atol=1e-5)
    assert there.middle == pytest.approx(-back.middle, abs=1e-6)


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 1000), shift=st.floats(-100, 100), scale=st.floats(0.01, 100)
)
def test_neither_place_nor_unit_of_the_activations_matters(seed, shift, scale):
    positive, negative, _ = pairs(seed, count=32, width=12)

    plain = fit_direction(positive, negative)
    moved = fit_direction(positive * scale + shift, negative * scale + shift)

    assert np.allclose(plain.vector, moved.vector, atol=1e-4)
    along = moved.project(positive * scale + shift)
    assert np.allclose(along, plain.project(positive) * scale, atol=1e-2 * scale)


def test_both_sides_lie_at_either_side_of_the_middle():
    positive, negative, _ = pairs()

    found = fit_direction(positive, negative)

    up, down = found.project(positive).mean(), found.project(negative).mean()
    assert up == pytest.approx(-down, abs=1e-6)
    assert up > 0


def test_what_has_no_direction_is_refused():
    positive, negative, _ = pairs()

    with pytest.raises(ValueError, match="alike"):
        fit_direction(positive, positive)
    with pytest.raises(ValueError, match="shapes"):
        fit_direction(positive, negative[:-1])
    with pytest.raises(TooFewLabelsError, match="at least 8"):
        fit_direction(positive[:7], negative[:7])
