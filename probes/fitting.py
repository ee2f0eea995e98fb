"""What fits of probes share: how many labels they need, and logistic regression."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from probes.exceptions import TooFewLabelsError

Numbers = NDArray[np.float64]


def require_labels(
    is_right: Sequence[bool], what: str, answers: int, of_each: int
) -> None:
    """Refuse fewer labels than `answers`, or fewer right or wrong ones than `of_each`.

    `what` says what the answers are for, to follow "labelled answers" in the message.
    """
    right = sum(is_right)
    if len(is_right) < answers or min(right, len(is_right) - right) < of_each:
        raise TooFewLabelsError(
            f"{len(is_right)} labelled answers {what}, {right} of them right: at least "
            f"{answers} are needed, {of_each} of them right and {of_each} wrong. Label "
            "more answers of the kind that is missing."
        )


def fit_logistic(
    features: Numbers, labels: Numbers, strength: float
) -> tuple[float, Numbers]:
    """Return intercept and weights of the least penalised loss; convex, so seedless.

    Args:
        features: Shape (rows, features), of about the same scale each.
        labels: 1 or 0, both among them, shape (rows,).
        strength: Half of it times the squared weights is added to the sum over the
            rows.
    """
    # Takes a second, which a process that fits nothing should not pay for.
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    if not features.shape[1]:
        return float(logit(labels.mean())), np.zeros(0)
    fitted = LogisticRegression(C=1 / strength, tol=1e-8, max_iter=10_000)
    fitted.fit(features, labels)
    return float(fitted.intercept_[0]), fitted.coef_[0]
