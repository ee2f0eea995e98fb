"""The joint score out of fold: no fit behind an answer's score saw its article."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from probes.joint import JointSettings, fit_joint

from .folds import CrossFitted, Flags, Rows, Scores

Signals = Mapping[str, float | None]
# Stored with answers; confidences that a probe in force stored are not among them, for
# it may have been fitted on these very answers.
MEASURED: Final = (
    "log_probability", "least_token_probability", "mean_entropy",
    "distance_over_confidence", "willingness", "verdict_probability",
    "answer_in_evidence", "question_in_evidence",
)  # fmt: skip
JOINT_SETTINGS: Final = JointSettings(
    signals=(*MEASURED, "answer_confidence", "early_confidence"),
    log_odds=frozenset(
        {"verdict_probability", "answer_confidence", "early_confidence"}
    ),
)


def joint_scores(
    measured: Sequence[Signals],
    right: Flags,
    folds: Rows,
    crossed: Mapping[str, CrossFitted],
    settings: JointSettings,
    *,
    language_model: str,
) -> Scores:
    """Return each answer's joint confidence, fitted on the other folds.

    The other folds' confidences that it is fitted on come from probes that did not see
    this answer's fold either.

    Args:
        measured: Each answer's signals.
        right: Whether each is right.
        folds: The fold of each.
        crossed: Confidences by the names of the signals that they stand for.
        settings: Which signals are joined, and how.
        language_model: Fingerprint of the model whose signals they are.

    Raises:
        TooFewLabelsError: There are too few answers, or nearly all right or wrong.
    """
    scores = np.full(len(folds), np.nan)
    for fold in np.unique(folds).tolist():
        training, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        apart = {name: one.apart[fold] for name, one in crossed.items()}
        probe = fit_joint(
            joined(measured, apart, training),
            right[training].tolist(),
            language_model=language_model,
            settings=settings,
        )
        own = {name: one.own for name, one in crossed.items()}
        rows = joined(measured, own, test)
        scores[test] = [probe.confidence(row) for row in rows]
    return scores


def joined(
    measured: Sequence[Signals], confidences: Mapping[str, Scores], rows: Rows
) -> list[Signals]:
    """Return the signals of some rows, with their confidences among them."""
    return [
        {
            **measured[row],
            **{name: float(values[row]) for name, values in confidences.items()},
        }
        for row in rows.tolist()
    ]
