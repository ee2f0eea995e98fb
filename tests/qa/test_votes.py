"""Thumbs on answers and refusals."""

from uuid import uuid4

import pytest

from accounts.roles import Role
from qa.exceptions import AnswerNotFoundError, AnswerPendingError, InvalidVoteError
from qa.models import Vote
from qa.services.asking import ask, keep_question
from qa.services.votes import vote
from tests.factories import make_entry, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def asker():
    return make_user()


@pytest.fixture
def answer(asker):
    make_entry()
    return ask("Why is the sky blue?", asker=asker, channel="api")


def test_a_refusal_can_be_voted_on_and_the_vote_changed_and_taken_back(answer, asker):
    vote(answer.pk, user=asker, is_up=False, comment=" Should be known. ")
    assert Vote.objects.values_list("is_up", "comment").get() == (False, "Should be known.")  # fmt: skip

    vote(answer.pk, user=asker, is_up=True)
    assert Vote.objects.values_list("is_up", "comment").get() == (True, "")

    assert vote(answer.pk, user=asker, is_up=None) is None
    assert not Vote.objects.exists()


def test_who_reviews_answers_has_a_vote_of_their_own(answer, asker):
    vote(answer.pk, user=asker, is_up=True)
    vote(answer.pk, user=make_user(Role.SME), is_up=False)

    assert Vote.objects.count() == 2


def test_anothers_answer_looks_like_none(answer):
    with pytest.raises(AnswerNotFoundError):
        vote(answer.pk, user=make_user(), is_up=True)
    with pytest.raises(AnswerNotFoundError):
        vote(uuid4(), user=make_user(), is_up=True)


def test_a_pending_question_has_nothing_to_vote_on(answer, asker):
    pending = keep_question("Why?", asker=asker, channel="api")

    with pytest.raises(AnswerPendingError):
        vote(pending.pk, user=asker, is_up=True)


@pytest.mark.parametrize("comment", ["x" * 2_001, "a\x00b", "\ud83d"])
def test_a_comment_that_is_no_text_is_refused(answer, asker, comment):
    with pytest.raises(InvalidVoteError):
        vote(answer.pk, user=asker, is_up=True, comment=comment)

    assert not Vote.objects.exists()
