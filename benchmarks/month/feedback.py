"""Simulated feedback: votes and reviews with known error rates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np
from django.contrib.auth.models import Group, User

from accounts.acting import acting_for
from accounts.roles import Role
from kb.models import KnowledgeBase
from qa.models import Answer, Review, ReviewSample, Vote
from qa.reviews.judgements import Judgement
from qa.reviews.sampling import SampleOrder, draw_sample
from qa.reviews.services import judge, take_next
from qa.votes.services import vote

from .asking import DAYS
from .questions import MonthQuestion

EXPERTS: Final = 2
MINUTES: Final = 4.0


@dataclass(frozen=True, slots=True)
class Errors:
    """Rates of voting and of errors, as shares in [0, 1].

    Attributes:
        voting: Answers that get a vote.
        thumbs: Votes that contradict the truth.
        judgements: Reviews that contradict the truth.
    """

    voting: float = 0.5
    thumbs: float = 0.2
    judgements: float = 0.05


def voted(
    answers: Mapping[str, Answer],
    truth: Mapping[str, MonthQuestion],
    errors: Errors,
    *,
    draw: np.random.Generator,
) -> tuple[int, int]:
    """Let the askers vote; return the number of votes and of wrong votes."""
    votes = wrong = 0
    for text, answer in sorted(answers.items()):
        takes_part, errs = draw.random() < errors.voting, draw.random() < errors.thumbs
        if not takes_part or not isinstance(answer.asker, User):
            continue
        is_answer = answer.outcome == Answer.Outcome.ANSWERED
        known = truth[text]
        is_right = known.is_right(answer.text) if is_answer else not known.contains
        is_up = is_right is not bool(errs)
        reason = Vote.Reason.WRONG if is_answer else Vote.Reason.SHOULD_BE_KNOWN
        reasons = [] if is_up else [reason.value]
        with acting_for(answer.asker):
            vote(answer.pk, user=answer.asker, is_up=is_up, reasons=reasons)
        votes += 1
        wrong += bool(errs)
    return votes, wrong


def reviewed(
    knowledge_base: KnowledgeBase,
    truth: Mapping[str, MonthQuestion],
    errors: Errors,
    *,
    hours: float,
    end: datetime,
    seed: int,
    draw: np.random.Generator,
) -> tuple[ReviewSample, int]:
    """Draw a sample and let the experts judge it.

    Returns the sample and the number of wrong judgements.

    Raises:
        RuntimeError: There are no answers to draw from.
    """
    order = SampleOrder(
        knowledge_base=knowledge_base.pk,
        hours=hours,
        minutes_a_review=MINUTES,
        second_share=0.1,
        since=end - timedelta(days=DAYS + 1),
        until=end,
        seed=seed,
    )
    sample = draw_sample(order, by=None)
    if sample is None:
        msg = "Nothing was asked in the month."
        raise RuntimeError(msg)
    return sample, judged(truth, errors, _judgement, draw=draw)


def judged(
    truth: Mapping[str, MonthQuestion],
    errors: Errors,
    judgement: Callable[[Review, MonthQuestion, bool], Judgement],
    *,
    draw: np.random.Generator,
) -> int:
    """Let the experts judge all waiting reviews; return the number of wrong judgements.

    Args:
        judgement: Returns the judgement of a review, given the known truth and whether
            the expert errs.
    """
    wrong = 0
    for expert in experts():
        with acting_for(expert):
            while review := take_next(expert):
                errs = bool(draw.random() < errors.judgements)
                said = judgement(review, truth[review.answer.question], errs)
                judge(review.pk, said, by=expert)
                wrong += errs
    return wrong


def experts() -> Sequence[User]:
    """Return the experts who judge, creating them on first use."""
    group, _ = Group.objects.get_or_create(name=Role.SME.value)
    found = []
    for number in range(EXPERTS):
        user, _ = User.objects.get_or_create(username=f"month-expert-{number}")
        user.groups.add(group)
        found.append(user)
    return found


def _judgement(review: Review, question: MonthQuestion, errs: bool) -> Judgement:
    return graded(question.is_right(review.answer.text) is not errs)


def graded(is_right: bool, evidence_used: Sequence[int] = ()) -> Judgement:
    grade = Review.Grade.WHOLLY if is_right else Review.Grade.NOT
    return Judgement(
        completeness=grade,
        correctness=grade,
        truthfulness=Review.Grade.WHOLLY,
        evidence_used=evidence_used,
    )
