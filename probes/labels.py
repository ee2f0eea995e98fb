"""How many labels a fit needs."""

from collections.abc import Sequence

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
        msg = (
            f"{len(is_right)} labelled answers {what}, {right} of them right: at least "
            f"{answers} are needed, {of_each} of them right and {of_each} wrong. Label "
            "more answers of the kind that is missing."
        )
        raise TooFewLabelsError(msg)
