"""What is archived is not asked, waits for nobody, and can be looked up all the same."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from integrations.events.alerts import _SOURCES
from integrations.events.models import EventType
from integrations.openai.chat_models import chat_models
from kb.documents.knowledge_bases import (
    archive_knowledge_base,
    unarchive_knowledge_base,
)
from kb.embedding.services import active_model
from kb.exceptions import KnowledgeBaseArchivedError
from kb.models import Entry, Upkeep
from qa.answers.questions import find_knowledge_base
from qa.calibration.self_calibration_jobs import enqueue_calibration
from qa.gaps.escalations import escalate
from qa.gaps.repeats import due_gaps, overtaken_gaps
from qa.inbox.services import read_inbox
from qa.models import Gap, Review, Vote
from qa.reviews.sampling import draw_weekly
from qa.votes.services import vote
from tests.clients import page_client
from tests.factories import (
    make_entry,
    make_knowledge_base,
    make_staff,
    make_user,
)
from tests.qa.answer_rows import make_answer
from workers import tasks

pytestmark = pytest.mark.django_db


@pytest.fixture
def cards():
    return make_knowledge_base("cards")


@pytest.fixture
def archive(cards):
    return lambda: archive_knowledge_base(knowledge_base_id=cards.pk)


def make_gap(**fields) -> Gap:
    model = active_model()
    vector = [1.0, *[0.0] * (model.dimensions - 1)]
    seen = timezone.now() - timedelta(days=1)
    return Gap.objects.create(
        vector=vector, embedding_model=model, first_seen=seen, last_seen=seen, **fields
    )


def test_what_is_archived_is_not_offered_and_says_why_it_is_not_asked(archive):
    make_entry()
    travel, home = make_knowledge_base("travel"), make_knowledge_base("home")
    archive()
    page = page_client(make_user())

    shown = page.get(reverse("ask"), {"knowledge_base": "cards"}).content.decode()
    asked = {"question": "What does a card cost?", "knowledge_base": "cards"}
    refused = page.post(reverse("ask"), asked)

    assert f'value="{travel.slug}"' in shown
    assert f'value="{home.slug}"' in shown
    assert 'value="cards"' not in shown
    assert refused.status_code == 409
    assert "Cards is archived and read-only; have an admin unarchive" in (
        refused.content.decode()
    )


@pytest.mark.parametrize("setting", ["", "none"])
def test_the_default_is_one_that_is_in_use(archive, settings, setting):
    settings.DEFAULT_KNOWLEDGE_BASE = setting
    travel = make_knowledge_base("travel")
    archive()

    assert find_knowledge_base() == travel
    assert find_knowledge_base(asker=make_user()) == travel
    assert [model.name for model in chat_models()] == ["travel"]
    for asker in (None, make_user()):
        with pytest.raises(KnowledgeBaseArchivedError):
            find_knowledge_base("cards", asker=asker)


def test_knowledge_that_is_archived_is_looked_up_where_it_is_chosen(archive):
    entry = make_entry("A replacement card costs 12 euros.")
    for slug in ("travel", "home"):
        make_entry("Bags cost 12 euros.", knowledge_base=make_knowledge_base(slug))
    archive()
    page = page_client(make_user())

    everywhere = page.get(reverse("knowledge"), {"q": "12 euros"}).content.decode()
    chosen = page.get(
        reverse("knowledge"), {"q": "12 euros", "knowledge_base": "cards"}
    ).content.decode()

    assert "Bags" in everywhere
    assert "replacement" not in everywhere
    assert ">Cards (archived)</option>" in everywhere
    assert "replacement" in chosen
    alone = page.get(reverse("entry", args=[entry.pk])).content.decode()
    assert "Cards is archived." in alone
    assert "Flag" not in alone


@pytest.mark.slow
def test_all_that_waits_waits_again_once_it_is_in_use(archive, cards):
    expert, agent = make_staff(Role.SME), make_user()
    entry = make_entry()
    first, second = make_answer(agent), make_answer(agent, cited=(entry,))
    escalate(first.pk, user=agent)
    Review.objects.create(answer=second)
    make_gap(knowledge_base=cards, question="What is the fee?")
    before = read_inbox(expert, size=10).items
    assert [item.kind.value for item in before] == ["escalation", "review", "gap"]
    waiting = _SOURCES[EventType.ESCALATION_RAISED].seen(expert)
    assert waiting.exists()

    archive()

    assert read_inbox(expert, size=10).items == ()
    assert not waiting.all().exists()
    with pytest.raises(KnowledgeBaseArchivedError):
        escalate(second.pk, user=agent)
    shown = page_client(expert).get(reverse("inbox")).content.decode()
    assert "Cards" not in shown
    unarchive_knowledge_base(knowledge_base_id=cards.pk)
    after = read_inbox(expert, size=10).items
    assert [item.title for item in after] == [item.title for item in before]


def test_jobs_leave_what_is_archived_alone(archive, cards):
    agent, entry = make_user(), make_entry()
    answer = make_answer(agent, cited=(entry,))
    vote(answer.pk, user=agent, is_up=False, reasons=[Vote.Reason.OUTDATED])
    make_gap(
        knowledge_base=cards, question="What?", state="drafted", entry=entry,
        drafted_at=timezone.now(),
    )  # fmt: skip
    make_gap(knowledge_base=cards, question="Where?")
    assert due_gaps().exists()
    assert overtaken_gaps(timezone.now())
    archive()

    tasks.doubt_entries()

    assert Upkeep.objects.get(entry=entry).doubted_since is None
    assert Entry.objects.get().state == "verified"
    assert not due_gaps().exists()
    assert not overtaken_gaps(timezone.now())
    assert draw_weekly() == 0
    with pytest.raises(KnowledgeBaseArchivedError):
        enqueue_calibration(archive())
    unarchive_knowledge_base(knowledge_base_id=cards.pk)
    tasks.doubt_entries()
    assert Upkeep.objects.get(entry=entry).doubted_since is not None
