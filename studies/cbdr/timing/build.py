"""The report: each decider's threshold, chosen on one part and tested on the other."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations
from typing import Any, Final

import numpy as np

from qa.evaluation.metrics.intervals import Rate, Statistic, bootstrap, holm, mcnemar
from qa.evaluation.metrics.selective import auroc
from qa.exceptions import EvaluationDataError
from studies.figures import share_difference

from .asking import NOTHING, Cost
from .curve import retrieval_curve, sent_at, timing
from .outcomes import (
    Account,
    Outcome,
    as_published,
    behind_the_gates,
    columns,
    of_part,
    rights,
    sent_by,
)
from .questions import Part

NEVER: Final = "never"
ALWAYS: Final = "always"
CHANCE: Final = "chance"
LOG_PROBABILITY: Final = "log-probability"
CBDR: Final = "CBDR"
DH_ICL: Final = "DH-ICL"
CTRLA: Final = "CtrlA"
DECIDERS: Final = (LOG_PROBABILITY, CBDR, DH_ICL, CTRLA)


RATES: Final = (0.25, 0.5, 0.75)
LEVEL: Final = 0.05
ACCOUNTS: Final[Mapping[str, Account]] = {
    "as published": as_published,
    "behind the gates": behind_the_gates,
}
Deciders = Mapping[str, Sequence[Outcome]]


def build_report(
    deciders: Deciders, plain: Sequence[Outcome], *, within: float
) -> dict[str, Any]:
    """Return all figures, ready for JSON.

    Args:
        deciders: Each decider's outcomes on the same questions, in the same order.
        plain: The outcomes of just answering closed-book, in that order, with its cost.
        within: Each threshold retrieves as little as keeps accuracy on the calibration
            part at most this far below its best, in [0, 1].

    Raises:
        EvaluationDataError: There are no questions to choose thresholds on, or to test.
    """
    chosen, tested = of_part(plain, Part.CALIBRATION), of_part(plain, Part.TEST)
    if not chosen or not tested:
        raise EvaluationDataError(
            f"{len(chosen)} questions to choose thresholds on and {len(tested)} to test "
            "are too few; ask more with --questions."
        )
    return {
        "calibration": len(chosen),
        "test": len(tested),
        "within": within,
        "accounts": {
            name: _account(deciders, plain, account, within)
            for name, account in ACCOUNTS.items()
        },
        "knowing": {name: _knowing(rows) for name, rows in deciders.items()},
    }


def _account(
    deciders: Deciders, plain: Sequence[Outcome], account: Account, within: float
) -> dict[str, Any]:
    tested = {name: of_part(rows, Part.TEST) for name, rows in deciders.items()}
    own = of_part(plain, Part.TEST)
    sent = {NEVER: [False] * len(own), ALWAYS: [True] * len(own)}
    thresholds: dict[str, float | None] = {}
    for name, rows in deciders.items():
        curve = retrieval_curve(*columns(of_part(rows, Part.CALIBRATION), account))
        thresholds[name] = curve.threshold[curve.cheapest(within=within)]
        sent[name] = sent_by(tested[name], thresholds[name])
    rows_of = {NEVER: own, ALWAYS: own, **tested}
    right = {name: rights(rows_of[name], sent[name], account) for name in sent}
    lots = [replace(row, known_probability=0.5) for row in own]
    ranked = {**tested, CHANCE: lots}
    return {
        "table": [
            {
                "decider": name,
                "threshold": _finite(thresholds.get(name)),
                **_line(right[name], sent[name]),
                "against_never": _against(right[NEVER], right[name]),
                "against_always": _against(right[ALWAYS], right[name]),
                "cost": asdict(_cost(tested.get(name), own, sent[name])),
            }
            for name in sent
        ],
        "oracle": _line(
            [row.alone or account(row) for row in own],
            [account(row) and not row.alone for row in own],
        ),
        "sets": _by_set(own, right, sent),
        "areas": _areas(ranked, account),
        "equal_rates": _equal_rates(ranked, account),
        "curves": {name: _points(rows, account) for name, rows in tested.items()},
    }


def _line(right: Sequence[bool], sent: Sequence[bool]) -> dict[str, Any]:
    rate = Rate(sum(right), len(right))
    return {
        "questions": len(right),
        "retrieval_rate": sum(sent) / len(sent),
        "accuracy": rate.value,
        "accuracy_95": rate.interval,
    }


def _against(first: Sequence[bool], second: Sequence[bool]) -> dict[str, Any]:
    """Return the second's accuracy minus the first's, and McNemar's p-value."""
    found = share_difference(first, second)
    table = mcnemar(first, second)
    return {
        "difference": found.value,
        "difference_95": found.interval,
        "only_first": table.only_first,
        "only_second": table.only_second,
        "p_value": table.p_value,
    }


def _by_set(
    own: Sequence[Outcome],
    right: Mapping[str, Sequence[bool]],
    sent: Mapping[str, Sequence[bool]],
) -> dict[str, dict[str, Any]]:
    places: dict[str, list[int]] = {}
    for place, row in enumerate(own):
        places.setdefault(row.asked.data_set, []).append(place)
    return {
        name: {
            decider: _line(
                [right[decider][p] for p in at], [sent[decider][p] for p in at]
            )
            for decider in right
        }
        for name, at in places.items()
    }


def _areas(ranked: Deciders, account: Account) -> dict[str, dict[str, Any]]:
    """Return each mean accuracy over all retrieval rates, and its gain over chance."""
    timings = {n: timing(*columns(rows, account)) for n, rows in ranked.items()}
    chance = timings[CHANCE]
    above = [_above(one.area, chance.area) for one in timings.values()]
    clusters = np.arange(len(chance.order))
    intervals = bootstrap(above, clusters)
    once = np.ones((1, len(clusters)))
    return {
        name: {
            "area": float(one.area(once)[0]),
            "above_chance": float(more(once)[0]),
            "above_chance_95": interval,
        }
        for (name, one), more, interval in zip(
            timings.items(), above, intervals, strict=True
        )
    }


def _above(one: Statistic, chance: Statistic) -> Statistic:
    return lambda weights: one(weights) - chance(weights)


def _equal_rates(ranked: Deciders, account: Account) -> list[dict[str, Any]]:
    """Compare all pairs at equal retrieval rates."""
    compared = []
    for rate in RATES:
        right = {}
        for name, rows in ranked.items():
            ids = [row.asked.case.id for row in rows]
            sent = sent_at([row.known_probability for row in rows], rate, ids)
            right[name] = rights(rows, sent, account)
        compared += [
            {
                "retrieval_rate": rate,
                "first": first,
                "second": second,
                "first_accuracy": sum(right[first]) / len(right[first]),
                "second_accuracy": sum(right[second]) / len(right[second]),
                **_against(right[first], right[second]),
            }
            for first, second in combinations(ranked, 2)
        ]
    adjusted = holm([float(pair["p_value"]) for pair in compared])
    for pair, p_value in zip(compared, adjusted, strict=True):
        pair["p_holm"] = p_value
        is_first = pair["only_first"] > pair["only_second"]
        ahead = pair["first"] if is_first else pair["second"]
        pair["ahead"] = ahead if p_value < LEVEL else None
    return compared


def _points(rows: Sequence[Outcome], account: Account) -> dict[str, Any]:
    curve = retrieval_curve(*columns(rows, account))
    return {
        "retrieval_rate": list(curve.rate),
        "accuracy": list(curve.accuracy),
        "threshold": [_finite(value) for value in curve.threshold],
    }


def _knowing(rows: Sequence[Outcome]) -> dict[str, Any]:
    """Return how well known probabilities predict what the model knows, on the test."""
    tested = of_part(rows, Part.TEST)
    untold = sum(row.known_probability is None for row in tested)
    area = auroc(
        [row.known_probability for row in tested], [not row.alone for row in tested]
    )
    return {"auroc": area, "untold": untold}


def _cost(
    rows: Sequence[Outcome] | None, own: Sequence[Outcome], sent: Sequence[bool]
) -> Cost:
    """Return the mean cost of deciding per question, beyond generating the answer.

    Where it retrieves, that is the full cost of deciding; where it answers closed-book,
    the cost of deciding and answering beyond that of just answering.
    """
    if rows is None:
        return NOTHING
    spent = [row.decided for row, is_sent in zip(rows, sent, strict=True) if is_sent]
    more = [
        row.decided.plus(row.drafted).plus(one.decided.plus(one.drafted), -1.0)
        for row, one in zip(rows, own, strict=True)
        if row.drafted and one.drafted
    ]
    rate = sum(sent) / len(sent)
    return NOTHING.plus(_mean(spent), rate).plus(_mean(more), 1.0 - rate)


def _mean(costs: Sequence[Cost]) -> Cost:
    total = NOTHING
    for cost in costs:
        total = total.plus(cost)
    return NOTHING.plus(total, 1 / max(len(costs), 1))


def _finite(threshold: float | None) -> float | str | None:
    """Return a threshold as JSON can hold it; None always retrieves."""
    return "never" if threshold == -np.inf else threshold
