"""Votes make a verified entry due, with a notice to its owner; they change nothing else."""

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from kb.entries.states import verify_entry
from kb.models import Entry, Upkeep
from kb.upkeep.services import due_entries, postpone_review
from qa.models import Notice, Vote
from qa.votes.doubts import Said, is_doubted
from qa.votes.services import vote
from tests.factories import make_audience, make_entry, make_user, set_role
from tests.qa.answer_rows import make_answer
from workers import tasks

pytestmark = pytest.mark.django_db

UP, DOWN, WRONG = Said(True, False), Said(False, False), Said(False, True)


@pytest.fixture
def olga():
    user = make_user(username="olga")
    set_role(user, role=Role.CURATOR)
    return user


def voted(entry: Entry, *reasons: str, is_up: bool = False):
    """Let somebody vote on an answer that rests on the entry; return who, and on what."""
    rater = make_user()
    answer = make_answer(rater, cited=(entry,))
    vote(answer.pk, user=rater, is_up=is_up, reasons=reasons)
    return rater, answer


def doubted_since(entry: Entry):
    return Upkeep.objects.get(pk=entry.pk).doubted_since


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([], False),
        ([UP], False),
        ([DOWN], False),
        ([WRONG], True),
        ([WRONG, UP, UP], True),
        ([DOWN, DOWN], True),
        ([DOWN, DOWN, UP], True),
        ([DOWN, DOWN, UP, UP], False),
    ],
)
def test_one_reason_or_a_majority_of_two_doubts_an_entry(said, expected):
    assert is_doubted(said) is expected


def test_an_entry_called_outdated_is_due_and_its_owner_gets_one_notice(olga, client):
    entry = make_entry(owner=olga)
    voted(entry, "outdated")

    tasks.doubt_entries()
    voted(entry, "wrong")
    tasks.doubt_entries()

    (due,) = due_entries(olga, at=timezone.now(), mine=True)
    assert due == entry
    assert due.state == Entry.State.VERIFIED
    assert due.confidence == 1
    (notice,) = Notice.objects.of(olga)
    assert (notice.kind, notice.entry) == ("doubted", entry)
    client.force_login(olga)
    page = client.get(reverse("notices")).content.decode()
    assert "An entry of yours was voted down" in page
    queue = reverse("admin:kb_entry_due") + "?whose=mine&reason=voted_down"
    assert queue.replace("&", "&amp;") in page
    assert "voted down since" in client.get(queue).content.decode()


def test_verifying_dismisses_the_votes_up_to_then(olga):
    entry = make_entry(owner=olga)
    voted(entry, "wrong")
    tasks.doubt_entries()

    verify_entry(entry_id=entry.pk, by=olga)
    tasks.doubt_entries()

    assert doubted_since(entry) is None
    voted(entry, "wrong")
    tasks.doubt_entries()
    assert doubted_since(entry)
    assert Notice.objects.of(olga).count() == 2


def test_a_vote_taken_back_ends_the_doubt_and_given_again_sends_no_second_notice(olga):
    entry = make_entry(owner=olga)
    rater, answer = voted(entry, "wrong")
    tasks.doubt_entries()

    vote(answer.pk, user=rater, is_up=None)
    tasks.doubt_entries()

    assert doubted_since(entry) is None
    vote(answer.pk, user=rater, is_up=False, reasons=["wrong"])
    tasks.doubt_entries()
    assert doubted_since(entry)
    assert Notice.objects.of(olga).count() == 1


def test_what_says_nothing_of_the_entry_makes_nothing_due(olga):
    worded, weak, other = (make_entry(f"{n}.", owner=olga) for n in range(3))
    voted(worded, "unclear", "off_topic", "not_in_evidence")
    voted(weak)
    rater = make_user()
    refusal = make_answer(rater, near_misses=(other,))
    vote(refusal.pk, user=rater, is_up=False, reasons=["should_be_known"])
    evaluated = make_answer(rater, cited=(other,), channel="evaluation")
    Vote.objects.create(answer=evaluated, user=rater, is_up=False, reasons=["wrong"])

    tasks.doubt_entries()

    assert not due_entries(olga, at=timezone.now()).exists()


def test_a_postponed_entry_that_is_voted_down_is_due_at_once(olga):
    entry = make_entry(owner=olga)
    postpone_review(entry_id=entry.pk, by=olga, days=90)
    voted(entry, "outdated")

    tasks.doubt_entries()

    assert due_entries(olga, at=timezone.now()).get() == entry


def test_nobody_gets_notice_of_an_entry_that_they_may_not_see(olga):
    entry = make_entry(owner=olga, audience=make_audience("board", groups=["board"]))
    seen = make_entry("Seen.", owner=olga)
    agents = make_entry("An agent's.", owner=make_user())
    for each in (entry, seen, agents):
        voted(each, "wrong")

    tasks.doubt_entries()

    (notice,) = Notice.objects.all()
    assert notice.entry == seen
    Entry.objects.filter(pk=seen.pk).update(audience=entry.audience)
    assert not Notice.objects.of(olga).exists()
