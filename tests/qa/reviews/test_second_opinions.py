"""What one expert calls wrong against the verifier is judged by another, who sees neither."""

import pytest
from django.contrib.auth.models import User

from accounts.roles import Role
from kb.entries.wordings import Wording
from qa.models import Review
from qa.reviews.agreement import judged_twice
from qa.reviews.judgements import Judgement
from qa.reviews.labels import reviewed_questions
from qa.reviews.services import judge, take_next, undo
from tests.factories import make_entry, make_knowledge_base, make_user
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db

WRONG = Judgement(completeness=2, correctness=0, truthfulness=2)
PARTLY = Judgement(completeness=1, correctness=1, truthfulness=2)
RIGHT = Judgement(completeness=2, correctness=2, truthfulness=2)
RIGHTLY_REFUSED = Judgement(should_be_answered=False)
FALSE_REFUSAL = Judgement(should_be_answered=True)


@pytest.fixture
def expert():
    return make_user(Role.SME)


@pytest.fixture
def other():
    return make_user(Role.SME)


def waiting(chance: float | None, *, refused: bool = False, **fields) -> Review:
    """Make a review of what the verifier thought as likely to answer."""
    signal = {"gate": "entry", "name": "entry_answers", "value": chance}
    found = (make_entry(),)
    answer = make_answer(
        make_user(),
        signals=[{**signal, "threshold": 0.8, "passed": not refused}],
        cited=() if refused else found,
        near_misses=found if refused else (),
        **fields,
    )
    return Review.objects.create(answer=answer)


def second() -> Review | None:
    return Review.objects.filter(round=2).first()


@pytest.mark.parametrize(
    ("refused", "said", "chance", "model", "is_doubtful"),
    [
        (False, WRONG, 0.96, "", True),
        (False, RIGHT, 0.96, "", False),
        (False, WRONG, 0.96, "a model", False),
        (False, WRONG, None, "", False),
        (True, RIGHTLY_REFUSED, 0.7, "", True),
        (True, RIGHTLY_REFUSED, 0.2, "", False),
        (True, FALSE_REFUSAL, 0.7, "", False),
    ],
)
def test_a_second_opinion_is_asked_for_where_the_verifier_says_otherwise(
    expert, other, refused, said, chance, model, is_doubtful
):
    review = waiting(chance, refused=refused, language_model=model)

    judge(review.pk, said, by=expert)

    asked = second()
    assert (asked is not None) is is_doubtful
    assert take_next(expert) is None
    assert take_next(other) == asked
    if asked:
        assert not asked.is_readable_by(expert)
        assert (asked.answer, asked.correctness, asked.stratum) == (
            review.answer, None, None,
        )  # fmt: skip


def test_it_comes_before_what_waits_longer(expert, other):
    doubted, longer = waiting(0.96), waiting(0.96)
    judge(doubted.pk, WRONG, by=expert)

    assert take_next(other) == second()
    assert take_next(expert) == longer


def test_where_nobody_else_may_judge_nothing_waits_for_ever(expert):
    review = waiting(0.96)
    User.objects.exclude(pk=expert.pk).update(is_active=False)

    judge(review.pk, WRONG, by=expert)

    assert second() is None
    (label,) = reviewed_questions(make_knowledge_base())
    assert label.is_doubtful


@pytest.mark.parametrize(
    ("said", "labels"), [(WRONG, [False]), (RIGHT, [])], ids=["agrees", "disagrees"]
)
def test_with_it_the_label_is_sure_or_none(expert, other, said, labels):
    judge(waiting(0.96).pk, WRONG, by=expert)
    base = make_knowledge_base()
    assert [each.is_doubtful for each in reviewed_questions(base)] == [True]
    asked = take_next(other)
    assert asked

    judge(asked.pk, said, by=other)

    assert [each.is_doubtful for each in reviewed_questions(base)] == labels
    # It was asked for because of what the first said, so it is no sample of agreement.
    assert not judged_twice(Review.objects.all()).exists()


def test_who_judges_again_needs_none_unless_it_is_begun(expert, other):
    review = waiting(0.96)
    judge(review.pk, WRONG, by=expert)
    undo(review.pk, by=expert)
    assert second() is None

    judge(review.pk, WRONG, by=expert)
    held = take_next(other)
    undo(review.pk, by=expert)
    assert second() == held
    judge(review.pk, WRONG, by=expert)  # not put there twice
    assert Review.objects.filter(round=2).count() == 1


def denied(review: Review) -> list[str]:
    """Return what the entries shown are never shown for."""
    entries = review.answer.evidence.values("entry")
    rows = Wording.objects.filter(entry__in=entries, answers=False)
    return [str(each) for each in rows]


def test_what_an_expert_calls_wrong_is_not_shown_for_the_question_again(expert, other):
    review = waiting(0.96)
    question = review.answer.question

    judge(review.pk, WRONG, by=expert)
    assert denied(review) == [question]

    undo(review.pk, by=expert)
    assert denied(review) == []

    judge(review.pk, WRONG, by=expert)
    asked = take_next(other)
    assert asked
    judge(asked.pk, RIGHT, by=other)
    assert denied(review) == []


@pytest.mark.parametrize(
    ("said", "model"), [(RIGHT, ""), (PARTLY, ""), (WRONG, "a model")]
)
def test_what_is_not_wholly_wrong_or_a_models_own_denies_nothing(expert, said, model):
    review = waiting(0.96, language_model=model)

    judge(review.pk, said, by=expert)

    assert denied(review) == []
