"""One threshold whose risk is at most epsilon with confidence 1 - delta, on all answers.

References:
    Geifman and El-Yaniv (2017), "Selective Classification for Deep Neural Networks",
    arXiv 1705.08500, algorithm 2 (selection with guaranteed risk): a binary search over
    the thresholds, each step tested at delta over their number. That the steps depend on
    one another does no harm where the risk grows as the threshold gets laxer, which is
    what a signal is for, and which nothing here checks.
"""

from collections.abc import Mapping

from qa.exceptions import CalibrationError
from qa.pipeline.policy import Policy
from qa.pipeline.scores import Score

from .candidates import candidates
from .decisions import Table
from .learn_then_test import Course, best_possible, tested
from .values import Tested


def select_with_guaranteed_risk(
    table: Table,
    *,
    base: Policy,
    scores: Mapping[str, Score],
    epsilon: float,
    delta: float,
) -> Course:
    """Search the laxest threshold whose bound is at most epsilon.

    Raises:
        CalibrationError: There is more than one threshold.
    """
    if len(scores) != 1:
        named = ", ".join(scores)
        msg = f"This method finds one threshold, not those of {named}; name one signal."
        raise CalibrationError(msg)
    policies = candidates(table, base, scores)  # the strictest first
    level = delta / len(policies).bit_length()  # the search takes no more steps
    sequence: list[Tested] = []
    chosen: tuple[Policy, Tested] | None = None
    low, high = 0, len(policies) - 1
    while low <= high:
        middle = (low + high) // 2
        found = tested(table, policies[middle], scores, epsilon, level)
        sequence.append(found)
        if found.passed:
            chosen = policies[middle], found
            low = middle + 1
        else:
            high = middle - 1
    return Course(
        chosen=chosen[0] if chosen else None,
        result=chosen[1] if chosen else None,
        sequence=tuple(sequence),
        best_possible=best_possible(table, policies, scores, epsilon, level),
    )
