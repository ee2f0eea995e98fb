import numpy as np
import pytest
from scipy.special import expit

from probes.fitting import fit_logistic


@pytest.mark.parametrize("strength", [0.1, 1.0, 300.0])
def test_the_penalised_loss_does_not_fall_any_further(strength):
    random = np.random.default_rng(0)
    features = random.normal(size=(400, 7))
    labels = (features[:, 0] - 0.5 + random.normal(size=400) > 0).astype(float)

    intercept, weights = fit_logistic(features, labels, strength)

    errors = expit(features @ weights + intercept) - labels
    assert errors.sum() == pytest.approx(0, abs=1e-3)
    np.testing.assert_allclose(features.T @ errors, -strength * weights, atol=1e-3)


def test_without_features_the_intercept_is_the_share():
    intercept, weights = fit_logistic(np.zeros((4, 0)), np.array([1.0, 0, 0, 0]), 1.0)

    assert intercept == pytest.approx(np.log(1 / 3), abs=1e-6)
    assert len(weights) == 0
