"""Thumbs on answers and refusals."""

import csv
import io
from uuid import uuid4

import pytest

from accounts.roles import Role
from qa.answers.asking import ask, keep_question
from qa.exceptions import (
    AnswerNotFoundError,
    AnswerPendingError,
    EntryNotShownError,
    InvalidVoteError,
)
from qa.models import Vote
from qa.votes.services import csv_lines, handle_votes, reopen_votes, vote
from tests.factories import make_audience, make_entry, make_user
from tests.qa.answer_rows import make_answer

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


def test_a_thumb_down_says_what_is_wrong_and_what_was_expected(answer, asker):
    kept = vote(
        answer.pk,
        user=asker,
        is_up=False,
        reasons=["other", "should_be_known", "other"],
        expected_answer=" Because of Rayleigh scattering. ",
    )

    assert kept is not None
    assert kept.reasons == ["should_be_known", "other"]
    assert kept.expected_answer == "Because of Rayleigh scattering."


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"is_up": False, "reasons": ["wrong"]}, "should_be_known, entry_exists"),
        ({"is_up": False, "reasons": ["no such"]}, "'no such' does not apply"),
        ({"is_up": True, "reasons": ["other"]}, "reasons go with a thumb down"),
        ({"is_up": True, "expected_answer": "It is."}, "vote down"),
        ({"is_up": False, "expected_answer": "x" * 4_001}, "may have 4000"),
    ],
)
def test_what_does_not_go_with_the_vote_is_refused(answer, asker, said, message):
    with pytest.raises(InvalidVoteError, match=message):
        vote(answer.pk, user=asker, **said)

    assert not Vote.objects.exists()


def test_a_vote_that_is_dealt_with_is_open_again_once_it_changes(answer, asker):
    reviewer = make_user(Role.SME)
    vote(answer.pk, user=asker, is_up=False, comment="Hm.")

    assert handle_votes(Vote.objects.all(), by=reviewer) == 1
    assert handle_votes(Vote.objects.all(), by=asker) == 0
    vote(answer.pk, user=asker, is_up=False, comment="Hm.")
    assert Vote.objects.get().handled_by == reviewer
    vote(answer.pk, user=asker, is_up=False, comment="Hm!")
    assert not Vote.objects.filter(handled_at__isnull=False).exists()

    handle_votes(Vote.objects.all(), by=reviewer)
    assert reopen_votes(Vote.objects.all()) == 1
    assert Vote.objects.open().count() == 1


def test_as_a_table_no_cell_is_a_formula_and_what_may_not_be_read_is_withheld(asker):
    secret = make_entry(audience=make_audience("board", groups=["board"]))
    seen = make_answer(asker, question="=1+1", cited=(make_entry(),))
    hidden = make_answer(asker, cited=(secret,), text="The code is 7.")
    vote(seen.pk, user=asker, is_up=False, reasons=["wrong"], comment="+49, really")
    vote(hidden.pk, user=asker, is_up=False, comment="It is 8.")
    votes = Vote.objects.visible_to(make_user(Role.SME))

    lines = list(csv_lines(votes.select_related("answer", "user", "handled_by")))
    newest, oldest = csv.DictReader(io.StringIO("".join(lines), newline=""))

    assert len(lines) == 3
    assert (oldest["question"], oldest["comment"]) == ("'=1+1", "'+49, really")
    assert oldest["reasons"] == "wrong"
    assert (newest["text"], newest["comment"]) == ("withheld from you",) * 2


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


def test_a_thumb_down_names_the_entry_beside_a_refusal_that_answers(asker):
    near = make_entry()
    refused = make_answer(asker, near_misses=(near,), distance=0.9)

    kept = vote(refused.pk, user=asker, is_up=False, answering_entry_id=near.pk)

    assert kept is not None
    assert (kept.answering_entry_id, kept.reasons) == (near.pk, ["entry_exists"])
    assert Vote.objects.visible_to(asker).get().shown_answering_entry == near.pk
    assert list(Vote.objects.naming_an_entry(near.knowledge_base)) == [kept]


def test_only_an_entry_that_was_shown_beside_a_refusal_can_be_named(asker):
    hidden = make_entry(audience=make_audience("staff", groups=["staff"]))
    near, other = make_entry("It is free."), make_entry("It is blue.")
    refused = make_answer(asker, near_misses=(near, hidden), distance=0.9)
    reviewer = make_user(Role.SME)
    for user, entry, is_up in (
        (reviewer, hidden, False),
        (asker, other, False),
        (asker, near, True),
    ):
        with pytest.raises(EntryNotShownError):
            vote(refused.pk, user=user, is_up=is_up, answering_entry_id=entry.pk)
    assert not Vote.objects.exists()


def test_an_entry_that_the_reader_may_not_see_is_not_named_to_them(asker):
    near = make_entry()
    refused = make_answer(asker, near_misses=(near,), distance=0.9)
    vote(refused.pk, user=asker, is_up=False, answering_entry_id=near.pk)
    type(near).objects.filter(pk=near.pk).update(
        audience=make_audience("staff", groups=["staff"])
    )

    reviewer = make_user(Role.SME)
    assert Vote.objects.visible_to(reviewer).get().shown_answering_entry is None
