"""Thumbs can't poison what is answered: not one rater's, not those of a ring of five.

Real entries, asked through the real pipeline and the bundled model, voted on through the
service, weighed by the job that beat rings for.
"""

import pytest

from accounts.roles import Role
from jobs.run import run_job
from jobs.services import enqueue
from kb.entries.services import create_entry, edit_entry
from kb.entries.states import verify_entry
from kb.models import Entry
from qa.answers.asking import ask
from qa.exceptions import NothingToUndoError
from qa.models import Answer, ConfidenceMove, Vote
from qa.policies.services import activate, active_policy, new_version
from qa.votes.entry_confidence import KIND, undo_moves, weigh_entry
from qa.votes.services import vote
from tests.factories import make_audience, make_entry, make_knowledge_base, make_user
from tests.qa.answer_rows import make_answer
from workers.registry import HANDLERS

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

QUESTION = "What does a replacement card cost?"
# Near enough to be answered from what is believed little, so that there is something to vote on.
LEADING = "Does a replacement card cost 99 euros?"


def proposed(confidence, text="A replacement card costs 99 euros."):
    """Make what a language model proposed, and let the policy answer from it."""
    knowledge_base = make_knowledge_base()
    policy = active_policy(knowledge_base)
    if not policy.answer_from_enriched:
        lenient = new_version(
            policy,
            by=None,
            answer_from_enriched=True,
            soft_refusal=False,
            support_check=False,
        )
        activate(lenient)
    return create_entry(
        knowledge_base=knowledge_base,
        audience=make_audience(),
        text=text,
        author=None,
        origin=Entry.Origin.ENRICHED,
        state=Entry.State.PROPOSED,
        confidence=confidence,
    )


def asked_and_voted(user, *, is_up, question=LEADING):
    answer = ask(question, asker=user, channel=Answer.Channel.API)
    assert answer.outcome == Answer.Outcome.ANSWERED
    vote(answer.pk, user=user, is_up=is_up)


def voted(entry, count, *, is_up, **said):
    """Let so many users vote on answers that rest on the entry."""
    for _ in range(count):
        user = make_user(Role.AGENT)
        answer = make_answer(user, cited=(entry,))
        vote(answer.pk, user=user, is_up=is_up, **said)


@pytest.fixture
def large_desk():
    """Let so many vote on other things that a ring of five is a fifth of them."""
    other = make_entry("Another thing.")
    voted(other, 25, is_up=True)


def weighed():
    run_job(enqueue(KIND, {}).pk, HANDLERS)


def outcome():
    answer = ask(QUESTION, asker=make_user(Role.AGENT), channel=Answer.Channel.API)
    return answer.outcome


class TestAWrongEntry:
    """Too uncertain to answer the question; the attackers want it to."""

    @pytest.fixture
    def wrong(self):
        entry = proposed(0.6)
        assert outcome() == Answer.Outcome.REFUSED
        return entry

    def test_is_not_used_whatever_one_rater_does(self, wrong):
        attacker = make_user(Role.AGENT)
        for _ in range(6):
            asked_and_voted(attacker, is_up=True)

        weighed()

        wrong.refresh_from_db()
        assert wrong.confidence == 0.6
        assert outcome() == Answer.Outcome.REFUSED

    def test_is_not_used_whatever_a_ring_of_five_does(self, wrong, large_desk):
        for attacker in [make_user(Role.AGENT) for _ in range(5)]:
            for _ in range(2):
                asked_and_voted(attacker, is_up=True)

        weighed()

        wrong.refresh_from_db()
        assert wrong.confidence == 0.6
        assert outcome() == Answer.Outcome.REFUSED

    def test_would_be_if_many_vouched_for_it(self, wrong):
        voted(wrong, 20, is_up=True)

        weighed()

        wrong.refresh_from_db()
        assert wrong.confidence == pytest.approx(0.8)
        assert outcome() == Answer.Outcome.ANSWERED


class TestARightEntry:
    """Answers the question; the attackers want it hidden."""

    @pytest.fixture
    def right(self):
        entry = proposed(0.8, "A replacement card costs 12 euros.")
        assert outcome() == Answer.Outcome.ANSWERED
        return entry

    def test_is_not_hidden_whatever_one_rater_does(self, right):
        attacker = make_user(Role.AGENT)
        for _ in range(6):
            asked_and_voted(attacker, is_up=False, question=QUESTION)

        weighed()

        assert outcome() == Answer.Outcome.ANSWERED

    def test_is_not_hidden_whatever_a_ring_of_five_does(self, right, large_desk):
        for attacker in [make_user(Role.AGENT) for _ in range(5)]:
            for _ in range(2):
                asked_and_voted(attacker, is_up=False, question=QUESTION)

        weighed()

        right.refresh_from_db()
        assert right.confidence == 0.8
        assert outcome() == Answer.Outcome.ANSWERED

    def test_would_be_if_many_denied_it(self, right):
        voted(right, 20, is_up=False)

        weighed()

        right.refresh_from_db()
        assert right.confidence == pytest.approx(0.6)
        assert outcome() == Answer.Outcome.REFUSED

    def test_keeps_what_others_gave_it_when_a_ring_turns_on_it(self, right, large_desk):
        voted(right, 12, is_up=True)
        weighed()
        right.refresh_from_db()
        raised = right.confidence
        assert raised > 0.8

        voted(right, 5, is_up=False)
        weighed()

        right.refresh_from_db()
        # The others' votes are a moment older.
        assert right.confidence == pytest.approx(raised, abs=1e-6)


def test_a_verified_entry_never_moves():
    entry = make_entry()
    voted(entry, 20, is_up=False)

    weighed()

    entry.refresh_from_db()
    assert (entry.confidence, entry.state) == (1.0, Entry.State.VERIFIED)
    assert not ConfidenceMove.objects.exists()


def test_one_that_was_verified_after_votes_never_moves_again():
    entry = proposed(0.5)
    voted(entry, 20, is_up=False)
    weighed()
    verify_entry(entry_id=entry.pk, by=make_user(Role.CURATOR))

    weighed()

    entry.refresh_from_db()
    assert entry.confidence == 1.0
    assert ConfidenceMove.objects.count() == 1


def test_what_a_person_wrote_never_moves():
    entry = make_entry(state=Entry.State.IN_REVIEW)
    voted(entry, 20, is_up=False)

    assert weigh_entry(entry.pk) is None


def test_each_move_is_a_row_and_a_revision():
    entry = proposed(0.5)
    voted(entry, 9, is_up=True)

    weighed()
    weighed()

    (move,) = ConfidenceMove.objects.all()
    assert (move.prior, move.before, move.raters) == (0.5, 0.5, 9)
    newest = entry.revisions.first()
    assert (newest.confidence, newest.author) == (move.after, None)
    assert newest.reason == "Votes of 9 users."


def test_votes_that_are_taken_back_give_the_confidence_back():
    entry = proposed(0.5)
    voted(entry, 9, is_up=True)
    weighed()
    for each in Vote.objects.all():
        vote(each.answer_id, user=each.user, is_up=None)

    weighed()

    entry.refresh_from_db()
    assert entry.confidence == 0.5


def test_an_undo_gives_the_confidence_back_for_good():
    entry, admin = proposed(0.5), make_user(Role.ADMIN)
    voted(entry, 9, is_up=True)
    weighed()

    undone = undo_moves(entry.pk, by=admin, reason="They are one family.")
    weighed()

    entry.refresh_from_db()
    assert (entry.confidence, undone.by) == (0.5, admin)
    with pytest.raises(NothingToUndoError, match=str(entry.pk)):
        undo_moves(entry.pk, by=admin)


def test_votes_after_an_undo_count():
    entry = proposed(0.5)
    voted(entry, 9, is_up=True)
    weighed()
    undo_moves(entry.pk, by=make_user(Role.ADMIN))
    voted(entry, 9, is_up=False)

    weighed()

    entry.refresh_from_db()
    assert entry.confidence < 0.5


def test_a_confidence_that_a_person_sets_is_the_new_prior():
    entry = proposed(0.5)
    voted(entry, 9, is_up=True)
    weighed()
    edit_entry(
        entry_id=entry.pk, author=None, may_verify=False, confidence=0.3
    )  # fmt: skip

    weighed()

    assert ConfidenceMove.objects.latest("pk").prior == 0.3


def test_votes_on_what_it_said_before_do_not_count():
    entry = proposed(0.5)
    voted(entry, 9, is_up=True)
    edit_entry(
        entry_id=entry.pk, author=None, may_verify=False, text="It costs 98 euros."
    )

    assert weigh_entry(entry.pk) is None


def test_a_thumb_down_for_the_wording_says_nothing_about_the_entry():
    entry = proposed(0.5)
    voted(entry, 9, is_up=False, reasons=["unclear"])

    assert weigh_entry(entry.pk) is None
