"""How far two experts who judged the same answers agree."""

from dataclasses import dataclass

from django.db.models import F, FilteredRelation, Q

from kb.models import KnowledgeBase
from qa.feedback.agreement import Kappa, cohen_kappa
from qa.models import Review

from .review_judgements import GRADES

LATEST = 2_000
"""Answers that were judged twice, the newest ones."""
_WHOLLY = int(Review.Grade.WHOLLY)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement on one thing that is judged.

    Attributes:
        name: "right_to_show", "should_be_answered" or one of the grades.
        label: What it is called on pages.
    """

    name: str
    label: str
    kappa: Kappa


def agreement(knowledge_base: KnowledgeBase | None = None) -> tuple[Agreement, ...]:
    """Return the agreement of first and second reviews (one query).

    Whether an answer was right to show and whether a refusal was a false one are plain
    kappas; the grades, which are in order, are weighted linearly.

    Args:
        knowledge_base: Whose answers; None for all.
    """
    names = (*GRADES, "should_be_answered")
    first = FilteredRelation(
        "answer__reviews",
        condition=Q(answer__reviews__round=1, answer__reviews__state=Review.State.DONE),
    )
    rows = Review.objects.done().filter(round=2).annotate(first=first)
    rows = rows.filter(first__isnull=False)
    if knowledge_base is not None:
        rows = rows.filter(answer__knowledge_base=knowledge_base)
    pairs = list(
        rows.order_by("-reviewed_at", "-pk").values(
            *names, **{f"first_{name}": F(f"first__{name}") for name in names}
        )[:LATEST]
    )
    judged = [row for row in pairs if row["correctness"] is not None]
    refused = [row for row in pairs if row["should_be_answered"] is not None]
    right = [(_right(row, "first_"), _right(row, "")) for row in judged]
    false = [
        (int(row["first_should_be_answered"]), int(row["should_be_answered"]))
        for row in refused
    ]
    graded = [
        Agreement(
            name,
            name,
            cohen_kappa(
                [(row[f"first_{name}"], row[name]) for row in judged],
                grades=len(Review.Grade),
                weighted=True,
            ),
        )
        for name in GRADES
    ]
    return (
        Agreement("right_to_show", "right to show", cohen_kappa(right)),
        Agreement(
            "should_be_answered", "should have been answered", cohen_kappa(false)
        ),
        *graded,
    )


def _right(row: dict[str, int], prefix: str) -> int:
    grades = (row[f"{prefix}correctness"], row[f"{prefix}truthfulness"])
    return int(grades == (_WHOLLY, _WHOLLY))
