"""How many labels a fit needs."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from probes.exceptions import TooFewLabelsError


def require_labels(
    is_right: Sequence[bool], what: str, answers: int, of_each: int
) -> None:
    """Refuse to start on what nothing can be learnt from.

    Args:
        is_right: The label of each answer.
        what: What the answers are for, to follow "labelled answers" in the message.
        answers: The least number of them.
        of_each: The least number of right ones, and of wrong ones.

    Raises:
        TooFewLabelsError: There are too few answers, or nearly all are right or wrong.
    """
    right = sum(is_right)
    if len(is_right) < answers or min(right, len(is_right) - right) < of_each:
        raise TooFewLabelsError(
            f"{len(is_right)} labelled answers {what}, {right} of them right: at least "
            f"{answers} are needed, {of_each} of them right and {of_each} wrong. Label "
            "more answers of the kind that is missing."
        )


# Logistic regression with a penalty: convex, so that no seed and no early stop
# matter.


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
