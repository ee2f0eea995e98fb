"""Thresholds by what mistakes cost: a choice without a guarantee."""

from collections.abc import Sequence

import numpy as np

from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.decisions import FloatArray, Table, table_of
from qa.exceptions import CalibrationError
from qa.pipeline.policy import Policy

from .candidates import candidates, chosen_scores
from .choice import CALIBRATABLE, measured_of, resampled_groups
from .learn_then_test import thresholds_in
from .values import CostChoice

_RESAMPLES = 500


def choose_by_cost(
    labelled: Sequence[LabelledAnswer],
    *,
    base: Policy,
    wrong_cost: float,
    refused_cost: float,
    signals: Sequence[str] = CALIBRATABLE,
    seed: int = 0,
) -> CostChoice:
    """Choose the thresholds of `signals` whose mean cost on these answers is least.

    Args:
        labelled: Best measured with every gate in shadow.
        base: All that is not chosen.
        wrong_cost: Of showing a wrong answer; in any unit, not negative.
        refused_cost: Of refusing where the draft was right; not negative.
        signals: By the name of `SCORES`.
        seed: Of the resampling.

    Raises:
        CalibrationError: A cost is negative or both are 0, a signal has no threshold, or
            nothing was measured.
    """
    if min(wrong_cost, refused_cost) < 0 or wrong_cost == refused_cost == 0:
        msg = f"The costs {wrong_cost} and {refused_cost} are no costs; give positive ones."
        raise CalibrationError(msg)
    measured = measured_of(labelled)
    table = table_of(measured)
    scores = chosen_scores(table, signals)
    policies = candidates(table, base, scores)
    by_group = np.stack(
        [
            np.bincount(table.groups, _costs(table, policy, wrong_cost, refused_cost))
            for policy in policies
        ]
    )
    best = int(by_group.sum(axis=1).argmin())
    weights = resampled_groups(by_group.shape[1], seed=seed, resamples=_RESAMPLES)
    sizes = weights @ np.bincount(table.groups)
    resampled = (by_group @ weights.T) / sizes  # policies x resamples
    low, high = np.quantile(resampled[best], (0.025, 0.975))
    costs = by_group.sum(axis=1) / len(table)
    rechosen = resampled.argmin(axis=0)
    optimism = costs[rechosen] - resampled[rechosen, np.arange(_RESAMPLES)]
    shown, wrong = table.outcomes(policies[best])
    return CostChoice(
        policy=policies[best],
        signals=tuple(signals),
        wrong_cost=wrong_cost,
        refused_cost=refused_cost,
        thresholds=thresholds_in(policies[best], scores),
        cost=float(costs[best]),
        low=float(low),
        high=float(high),
        optimism=float(optimism.mean()),
        labelled=len(table),
        shown=int(shown.sum()),
        wrong=int(wrong.sum()),
        refused_right=int((~shown & ~table.wrong).sum()),
        unmeasured=len(labelled) - len(measured),
    )


def _costs(
    table: Table, policy: Policy, wrong_cost: float, refused_cost: float
) -> FloatArray:
    shown, wrong = table.outcomes(policy)
    return wrong_cost * wrong + refused_cost * (~shown & ~table.wrong)
