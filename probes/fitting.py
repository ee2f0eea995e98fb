"""Shared by fits of probes: minimum numbers of labels, and logistic regression."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from probes.exceptions import TooFewLabelsError

Numbers = NDArray[np.float64]


def require_labels(
    is_right: Sequence[bool], what: str, answers: int, of_each: int
) -> None:
    """Refuse fewer labels than `answers`, or fewer right or wrong ones than `of_each`.

    `what` is the purpose of the answers, which follows "labelled answers" in the
    message.
    """
    right = sum(is_right)
    if not are_enough(is_right, answers, of_each):
        raise TooFewLabelsError(
            f"{len(is_right)} labelled answers {what}, {right} of them right: at least "
            f"{answers} are needed, {of_each} of them right and {of_each} wrong. Label "
            "more answers of the kind that is missing."
        )


def are_enough(is_right: Sequence[bool], answers: int, of_each: int) -> bool:
    right = sum(is_right)
    return len(is_right) >= answers and min(right, len(is_right) - right) >= of_each


def fit_logistic(
    features: Numbers, labels: Numbers, strength: float
) -> tuple[float, Numbers]:
    """Return intercept and weights with the lowest penalised loss; convex, so seedless.

    Args:
        features: Shape (rows, features), all of about the same scale.
        labels: 1 or 0, with both present, shape (rows,).
        strength: Half of it times the squared weights is added to the loss summed over
            the rows.
    """
    # Imported here because it takes a second, which only a fit should pay for.
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    if not features.shape[1]:
        return float(logit(labels.mean())), np.zeros(0)
    fitted = LogisticRegression(C=1 / strength, tol=1e-8, max_iter=10_000)
    fitted.fit(features, labels)
    return float(fitted.intercept_[0]), fitted.coef_[0]


def move_logistic(
    features: Numbers,
    labels: Numbers,
    strength: float,
    intercept: float,
    weights: Numbers,
    *,
    offset: Numbers,
) -> tuple[float, Numbers]:
    """Return intercept and weights with the lowest loss, penalised by their move.

    Args:
        features, labels, strength: As for `fit_logistic`.
        intercept, weights: The start. The weights are drawn back to it; the intercept
            moves freely.
        offset: Added to each row's score, shape (rows,).
    """
    # Imported here because it takes seconds, which only a fit should pay for.
    from scipy.optimize import minimize  # noqa: PLC0415

    begin = np.concatenate(([intercept], weights))

    def loss(point: Numbers) -> tuple[float, Numbers]:
        scores = offset + point[0] + features @ point[1:]
        moved = point[1:] - weights
        total = np.logaddexp(0.0, scores).sum() - labels @ scores
        missed = expit(scores) - labels
        slope = np.concatenate(([missed.sum()], features.T @ missed + strength * moved))
        return float(total + strength * (moved @ moved) / 2), slope

    found = minimize(loss, begin, jac=True, method="L-BFGS-B", tol=1e-10)
    return float(found.x[0]), found.x[1:]
