"""Answers with a draft and what experts said of them, for tests of what reviews feed."""

from typing import Any

from django.utils import timezone

from accounts.roles import Role
from kb.models import Entry
from qa.models import Answer, Review
from tests.factories import make_user
from tests.qa.answer_rows import make_answer


def make_draft(entry: Entry, *, answered: bool = True, **fields: Any) -> Answer:
    """Make an answer, or a refusal behind a draft, that the entry stood first for."""
    fields["cited" if answered else "near_misses"] = (entry,)
    answer = make_answer(make_user(Role.AGENT), **fields)
    answer.generation = {"answer": "It costs 12 euros.", "short_answer": "12 euros"}
    answer.signals = [
        {"gate": "soft_refusal", "name": "verdict_probability", "value": 0.7}
    ]
    answer.save(update_fields=["generation", "signals"])
    return answer


def judge(answer: Answer, *, is_right: bool, second: bool = False) -> Review:
    """Let an expert say that an answer is right, or that a refusal is."""
    wholly = Review.Grade.WHOLLY
    if answer.outcome == Answer.Outcome.REFUSED:
        said: dict[str, Any] = {"should_be_answered": not is_right}
    else:
        grade = wholly if is_right else Review.Grade.NOT
        said = {"completeness": wholly, "correctness": grade, "truthfulness": wholly}
    return Review.objects.create(
        answer=answer,
        round=2 if second else 1,
        state=Review.State.DONE,
        reviewed_by=make_user(Role.SME),
        reviewed_at=timezone.now(),
        **said,
    )
