"""The comparison of two runs, question by question."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from qa.evaluation.judging import Judged
from qa.evaluation.metrics.intervals import (
    Difference,
    Statistic,
    differences,
    mcnemar,
    mean,
    share,
)
from qa.evaluation.metrics.selective import Scores, abstention_f1, rank
from qa.exceptions import EvaluationDataError

from .counts import Columns, Part, columns_of
from .signals import scores_of

Pair = tuple[Statistic, Statistic]
# {figure: whether more of it is better}; None for neither.
BETTER_MORE = {
    "right": True,
    "answered": None,
    "accuracy": True,
    "false_answers": False,
    "false_refusals": False,
    "wrong_answers": False,
    "abstention_f1": True,
}


def compare(first: Sequence[Judged], second: Sequence[Judged]) -> dict[str, Any]:
    """Compare two runs on the questions that both asked, joined by id.

    A difference is the second run's figure minus the first's; its interval resamples
    the same questions, in whole groups, for both.

    Raises:
        EvaluationDataError: No question is in both, or one is labelled differently.
    """
    one, two = columns_of(first), columns_of(second)
    shared = {row.id for row in one.rows} & {row.id for row in two.rows}
    if not shared:
        raise EvaluationDataError(
            f"The runs have no question in common: none of {len(one.rows):,} ids is "
            f"among the other {len(two.rows):,}. Compare runs of one suite."
        )
    only = len(one.rows) - len(shared), len(two.rows) - len(shared)
    one = columns_of([row for row in one.rows if row.id in shared])
    two = columns_of([row for row in two.rows if row.id in shared])
    _check_labels(one, two)
    statistics = dict(sorted([*_counted(one, two).items(), *_areas(one, two).items()]))
    found = differences(list(statistics.values()), one.clusters)
    table = mcnemar(one.right.tolist(), two.right.tolist())
    return {
        "questions": len(shared),
        "only_in_first": only[0],
        "only_in_second": only[1],
        "right_or_wrong": asdict(table) | {"p_value": table.p_value},
        "differences": {
            name: _difference(name, difference)
            for name, difference in zip(statistics, found, strict=True)
        },
    }


def worse(comparison: dict[str, Any]) -> list[str]:
    """Return the figures in which the second run is significantly worse (95 %)."""
    return [
        name for name, part in comparison["differences"].items() if part["is_worse"]
    ]


def _counted(first: Columns, second: Columns) -> dict[str, Pair]:
    made: dict[str, Callable[[Columns], Statistic]] = {
        "right": lambda run: share(run.right, run.all),
        "answered": lambda run: share(run.answered, run.all),
        "accuracy": lambda run: share(~run.wrong, run.answered),
        "wrong_answers": lambda run: share(run.wrong, run.answered),
    }
    if first.due.any():
        made["false_refusals"] = lambda run: share(~run.answered, run.due)
    if first.undue.any():
        made["false_answers"] = lambda run: share(run.answered, run.undue)
        made["abstention_f1"] = lambda run: abstention_f1(
            run.should_answer, run.answered.tolist()
        )
    for name in _measures(first) & _measures(second):
        made[f"mean {name}"] = _mean_of(name)
    return {name: (make(first), make(second)) for name, make in made.items()}


def _areas(first: Columns, second: Columns) -> dict[str, Pair]:
    ones, twos = scores_of(first.rows), scores_of(second.rows)
    wrongs = first.wrong.tolist(), second.wrong.tolist()
    return {
        f"AURC of {name}": (_aurc(values, wrongs[0]), _aurc(twos[name], wrongs[1]))
        for name, values in ones.items()
        if name in twos
    }


def _measures(run: Columns) -> set[str]:
    return {name for row in run.rows for name in row.measures}


def _mean_of(name: str) -> Callable[[Columns], Statistic]:
    def make(run: Columns) -> Statistic:
        values = np.array([row.measures.get(name, np.nan) for row in run.rows])
        return mean(values, ~np.isnan(values))

    return make


def _aurc(values: Scores, wrong: Sequence[bool]) -> Statistic:
    ranking = rank(values, wrong)
    return lambda weights: ranking.areas(weights)[0]


def _difference(name: str, found: Difference) -> Part:
    is_more_better = BETTER_MORE.get(name, name.startswith("mean "))
    low, high = found.interval or (0.0, 0.0)
    is_lower, is_higher = high < 0, low > 0
    return {
        "first": found.first,
        "second": found.second,
        "difference": found.value,
        "bootstrap_95": found.interval,
        "is_worse": is_more_better is not None
        and (is_lower if is_more_better else is_higher),
    }


def _check_labels(first: Columns, second: Columns) -> None:
    for one, two in zip(first.rows, second.rows, strict=True):
        if one.is_answerable != two.is_answerable:
            raise EvaluationDataError(
                f"The question {one.id[:80]!r} should be answered in one run and not in "
                "the other: the ids name different questions, so nothing is compared."
            )
