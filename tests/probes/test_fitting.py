import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from probes.fitting import fit_logistic


@pytest.mark.parametrize("strength", [0.1, 1.0, 300.0])
def test_intercept_and_weights_are_those_of_the_reference(strength):
    random = np.random.default_rng(0)
    features = random.normal(size=(400, 7))
    labels = (features[:, 0] - 0.5 + random.normal(size=400) > 0).astype(float)

    intercept, weights = fit_logistic(features, labels, strength)

    reference = LogisticRegression(C=1 / strength, tol=1e-10, max_iter=10_000)
    reference.fit(features, labels)
    assert intercept == pytest.approx(reference.intercept_[0], abs=1e-4)
    np.testing.assert_allclose(weights, reference.coef_[0], atol=1e-4)


def test_without_features_the_intercept_is_the_share():
    intercept, weights = fit_logistic(np.zeros((4, 0)), np.array([1.0, 0, 0, 0]), 1.0)

    assert intercept == pytest.approx(np.log(1 / 3), abs=1e-6)
    assert len(weights) == 0
