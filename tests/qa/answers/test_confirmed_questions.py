"""Who says that an entry answers a question is heard: asked again, it is answered."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from accounts.roles import Role
from kb.entries.wordings import Wording
from kb.models import Entry
from qa.answers.asking import decide, keep_question
from qa.gaps import services as gaps
from qa.gaps.escalations import escalate, reply
from qa.models import Answer, Gap, Review
from qa.reviews.judgements import Judgement
from qa.reviews.services import judge, undo
from qa.votes.services import choose_entry
from tests.factories import make_entry, make_user
from tests.qa.pipeline.values import never_load

pytestmark = [pytest.mark.django_db, pytest.mark.verifier]

BLOCK = "Under Security in the app a card is blocked at once."
ASKED = "my wallet with the card was stolen on the bus"
REORDERED = "On the bus the wallet was stolen, with my card."


def asked(text: str) -> Answer:
    """Ask as somebody new; nothing here may need a language model."""
    answer = keep_question(text, asker=make_user(), channel="api")
    list(decide(answer, language_model=never_load))
    return Answer.objects.get(pk=answer.pk)


@pytest.fixture
def entry() -> Entry:
    make_entry("The annual fee of the Gold card is 96 euros.")
    return make_entry(BLOCK)


@pytest.fixture
def expert() -> User:
    return make_user(Role.SME)


def by_gap(answer: Answer, entry: Entry, expert: User) -> None:
    near = entry.embeddings.get(part=1)
    gap = Gap.objects.create(
        knowledge_base=answer.knowledge_base, question=answer.question,
        embedding_model=near.model, vector=near.vector, first_seen=answer.created_at,
        last_seen=answer.created_at,
    )  # fmt: skip
    gaps.link(gap.pk, by=expert, entry_id=entry.pk)


def by_reply(answer: Answer, entry: Entry, expert: User) -> None:
    assert answer.asker
    escalation = escalate(answer.pk, user=answer.asker)
    reply(escalation.pk, by=expert, entry_id=entry.pk)


def by_review(answer: Answer, entry: Entry, expert: User) -> None:
    review = Review.objects.create(answer=answer)
    marked = answer.evidence.get(entry=entry).pk
    said = Judgement(should_be_answered=True, evidence_used=[marked])
    judge(review.pk, said, by=expert)


def by_choice(answer: Answer, entry: Entry, expert: User) -> None:
    choose_entry(answer.pk, user=expert, entry_id=entry.pk)


@pytest.mark.parametrize("confirm", [by_gap, by_reply, by_review, by_choice])
def test_what_an_expert_says_answers_it_does_from_then_on(
    entry, expert, confirm: Callable[[Answer, Entry, User], None]
):
    before = asked(ASKED)
    assert before.outcome == "refused"

    confirm(before, entry, expert)

    again = asked(f"{ASKED.capitalize()}!")
    assert (again.outcome, again.gate, again.text) == ("answered", "verbatim", BLOCK)
    reordered = asked(REORDERED)
    assert (reordered.outcome, reordered.text) == ("answered", BLOCK)
    assert asked("my garden gnome has gone missing").outcome == "refused"


def test_an_agents_choice_is_a_label_and_decides_nothing(entry):
    before = asked(ASKED)
    assert before.asker

    choose_entry(before.pk, user=before.asker, entry_id=entry.pk)

    assert not Wording.objects.exists()
    assert asked(ASKED).outcome == "refused"


def test_what_is_taken_back_answers_no_more(entry, expert):
    refused = asked(ASKED)
    choose_entry(refused.pk, user=expert, entry_id=entry.pk)
    choose_entry(refused.pk, user=expert, entry_id=None)
    assert not Wording.objects.exists()

    by_review(refused, entry, expert)
    assert Wording.objects.count() == 1
    undo(Review.objects.get().pk, by=expert)
    assert not Wording.objects.exists()
    assert asked(ASKED).outcome == "refused"
