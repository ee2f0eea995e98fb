"""The choice of thresholds from labelled answers, certified or by cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.decisions import (
    BoolArray,
    FloatArray,
    IntArray,
    Table,
    table_of,
    was_measured,
)
from qa.exceptions import CalibrationError
from qa.pipeline.gates import THRESHOLDED
from qa.pipeline.policy import Policy
from qa.pipeline.rules import SignalRow

from .candidates import candidates, chosen_scores
from .learn_then_test import (
    LEARN_SHARE,
    Course,
    learn_then_test,
    select_with_guaranteed_risk,
    thresholds_in,
)
from .values import (
    Certified,
    CostChoice,
    Method,
    NotCertified,
    least_shown,
    shown_needed,
)


def split(
    groups: IntArray, *, learn_share: float, seed: int
) -> tuple[BoolArray, BoolArray]:
    """Return masks of the rows to learn from and to test on; no group is in both.

    Groups, numbered from 0 without gaps, are drawn until `learn_share` is reached.
    """
    sizes = np.bincount(groups)
    order = np.random.default_rng(seed).permutation(len(sizes))
    before = np.concatenate(([0], np.cumsum(sizes[order])[:-1]))
    taken = order[before < learn_share * len(groups)]
    learn = np.isin(groups, taken)
    return learn, ~learn


def resampled_groups(count: int, *, seed: int, resamples: int) -> FloatArray:
    """Return how often each group is in each resample, shape (resamples, count)."""
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(count, np.full(count, 1 / count), size=resamples)
    return drawn.astype(np.float64)


CALIBRATABLE = tuple(THRESHOLDED)
_LARGE = 3  # times the mean size


@dataclass(frozen=True, slots=True)
class _Request:
    signals: tuple[str, ...]
    scores: Mapping[str, SignalRow]
    epsilon: float
    delta: float
    seed: int
    method: Method


def calibrate(
    labelled: Sequence[LabelledAnswer],
    *,
    base: Policy,
    epsilon: float,
    delta: float,
    signals: Sequence[str] = CALIBRATABLE,
    method: Method = Method.LEARN_THEN_TEST,
    seed: int = 0,
) -> Certified | NotCertified:
    """Choose the thresholds of `signals` that show most at a risk of at most epsilon.

    Measure answers with every gate in shadow if possible: one that an enforced gate
    kept from being measured counts as wrong where a candidate would show it. A signal
    that was never measured keeps the threshold of `base`. Selection with guaranteed
    risk takes one signal only. `delta` is the probability that the promise is broken.
    """
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not 0 < value < 1:
            raise CalibrationError(f"{name} {value} is not between 0 and 1.")
    measured = measured_of(labelled)
    table = table_of(measured)
    request = _Request(
        signals=tuple(signals),
        scores=chosen_scores(table, signals),
        epsilon=epsilon,
        delta=delta,
        seed=seed,
        method=method,
    )
    unmeasured = len(labelled) - len(measured)
    if method is Method.GUARANTEED_RISK:
        course = select_with_guaranteed_risk(
            table, base=base, scores=request.scores, epsilon=epsilon, delta=delta
        )
        return _result(course, table, request, learnt=0, unmeasured=unmeasured)
    learn, test = split(table.groups, learn_share=LEARN_SHARE, seed=seed)
    tested_on = table.at(test)
    course = learn_then_test(
        table.at(learn),
        tested_on,
        base=base,
        scores=request.scores,
        epsilon=epsilon,
        delta=delta,
    )
    learnt = int(learn.sum())
    return _result(course, tested_on, request, learnt=learnt, unmeasured=unmeasured)


def measured_of(labelled: Sequence[LabelledAnswer]) -> list[LabelledAnswer]:
    if len({answer.id for answer in labelled}) < len(labelled):
        raise CalibrationError("Two labelled answers have the same id.")
    measured = [answer for answer in labelled if was_measured(answer)]
    if not measured:
        raise CalibrationError(
            f"None of {len(labelled)} labelled answers has stored signals."
        )
    return measured


def _result(
    course: Course, table: Table, request: _Request, *, learnt: int, unmeasured: int
) -> Certified | NotCertified:
    if course.chosen is None or course.result is None:
        return _not_certified(course, table, request, learnt, unmeasured)
    return Certified(
        policy=course.chosen,
        method=request.method,
        signals=request.signals,
        epsilon=request.epsilon,
        delta=request.delta,
        learnt=learnt,
        tested=course.result,
        sequence=course.sequence,
        unmeasured=unmeasured,
        warnings=tuple(_warnings(table, request, course.chosen, unmeasured)),
    )


def _not_certified(
    course: Course, table: Table, request: _Request, learnt: int, unmeasured: int
) -> NotCertified:
    best = course.best_possible
    return NotCertified(
        method=request.method,
        signals=request.signals,
        epsilon=request.epsilon,
        delta=request.delta,
        labelled=len(table) + learnt,
        learnt=learnt,
        needed=least_shown(request.epsilon, request.delta),
        best=min(course.sequence, key=lambda tested: tested.bound, default=None),
        best_possible=best,
        needed_at_best_risk=None
        if best.risk is None
        else shown_needed(best.risk, request.epsilon, request.delta),
        sequence=course.sequence,
        unmeasured=unmeasured,
        warnings=tuple(_warnings(table, request, None, unmeasured)),
    )


def _warnings(
    table: Table, request: _Request, chosen: Policy | None, unmeasured: int
) -> list[str]:
    found = []
    if unmeasured:
        found.append(
            f"{unmeasured} labelled answers have no signals and are left out. If they "
            "failed because of what they ask, the remaining ones are a biased sample."
        )
    missing = [name for name in request.signals if name not in request.scores]
    if missing:
        found.append(
            f"No labelled answer has {', '.join(missing)}: the threshold stays as it "
            "was, and the promise does not cover answers that have it."
        )
    sizes = np.bincount(table.groups)
    if sizes.max(initial=1) == 1:
        found.append(
            "No two of the answers tested on are in one group, so each counts as drawn "
            "independently. If several share a document or topic, give them one group."
        )
    elif sizes.max() > _LARGE * sizes.mean():
        found.append(
            f"The largest of {len(sizes)} groups has {sizes.max()} of the {len(table)} "
            "answers tested on, and all of them may be wrong at once. To lower the "
            "bound over groups, label fewer of this group or more of the others."
        )
    unknown = int(table.decide(chosen).unknown.sum()) if chosen else 0
    if unknown:
        found.append(
            f"{unknown} of the shown answers were kept from the language model by an "
            "enforced gate and count as wrong. Measure with every gate in shadow."
        )
    return found


_RESAMPLES_COST = 500


def choose_by_cost(
    labelled: Sequence[LabelledAnswer],
    *,
    base: Policy,
    wrong_cost: float,
    refused_cost: float,
    signals: Sequence[str] = CALIBRATABLE,
    seed: int = 0,
) -> CostChoice:
    """Choose the thresholds of `signals` with the lowest mean cost on these answers.

    Measure answers with every gate in shadow if possible. The costs, in any unit, are
    for showing a wrong answer and for refusing although the draft was right.
    """
    if min(wrong_cost, refused_cost) < 0 or wrong_cost == refused_cost == 0:
        raise CalibrationError(
            f"Costs {wrong_cost} and {refused_cost} are invalid; give positive ones."
        )
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
    weights = resampled_groups(by_group.shape[1], seed=seed, resamples=_RESAMPLES_COST)
    sizes = weights @ np.bincount(table.groups)
    resampled = (by_group @ weights.T) / sizes  # policies x resamples
    low, high = np.quantile(resampled[best], (0.025, 0.975))
    costs = by_group.sum(axis=1) / len(table)
    rechosen = resampled.argmin(axis=0)
    optimism = costs[rechosen] - resampled[rechosen, np.arange(_RESAMPLES_COST)]
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
