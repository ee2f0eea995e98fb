"""Logistic regression with a penalty: convex, so that no seed and no early stop matter."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

Numbers = NDArray[np.float64]


def fit_logistic(
    features: Numbers, labels: Numbers, strength: float
) -> tuple[float, Numbers]:
    """Return intercept and weights of the least penalised loss.

    Args:
        features: Shape (rows, features), of about the same scale each.
        labels: 1 or 0, both among them, shape (rows,).
        strength: The loss is summed over the rows and half of `strength` times the
            squared weights is added; the intercept is not penalised.
    """

    def loss(weights: Numbers) -> tuple[float, Numbers]:
        odds = features @ weights[1:] + weights[0]
        value = (np.logaddexp(0.0, odds) - labels * odds).sum()
        errors = expit(odds) - labels
        shrunk = strength * weights[1:]
        gradient = np.concatenate([[errors.sum()], features.T @ errors + shrunk])
        return float(value + shrunk @ weights[1:] / 2), gradient

    start = np.zeros(features.shape[1] + 1)
    share = labels.mean()
    start[0] = math.log(share / (1 - share))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-8})
    return float(found.x[0]), found.x[1:]
