"""Flagging an entry as wrong or outdated: it is due, who looks after it hears of it once."""

from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.acting import acting_for
from accounts.roles import Role
from kb.entries.states import mark_for_review, retire_entry, verify_entry
from kb.exceptions import EntryNotFoundError
from kb.models import Entry, Flag, Upkeep
from kb.upkeep.services import postpone_review
from qa.gaps.notices import link
from qa.inbox.models import Kind
from qa.inbox.services import flag_entry, read_inbox
from qa.models import Notice, Vote
from qa.votes.services import vote
from tests.clients import page_client
from tests.factories import make_audience, make_entry, make_tag, make_user, set_role
from tests.qa.answer_rows import make_answer
from workers import tasks

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga():
    user = make_user(username="olga")
    set_role(user, role=Role.CURATOR)
    return user


def reasons(entry: Entry) -> list[str]:
    row = Upkeep.objects.select_related("entry").get(pk=entry.pk)
    return [due.reason.value for due in row.reasons(timezone.now())]


def test_a_flagged_entry_is_due_and_its_owner_hears_of_it_once(olga):
    entry = make_entry(owner=olga)
    agent, other = make_user(), make_user()

    flag_entry(entry_id=entry.pk, by=agent, note="It costs 14 now.")
    flag_entry(entry_id=entry.pk, by=agent, reasons=["outdated", "wrong"])
    flag_entry(entry_id=entry.pk, by=agent, note="It costs 15 now.\nAsk Olga.")
    flag_entry(entry_id=entry.pk, by=other)

    assert reasons(entry) == ["flagged"]
    flags = Flag.objects.open().filter(entry=entry)
    assert [(flag.reasons, flag.note) for flag in flags] == [
        (["wrong", "outdated"], "It costs 15 now.\nAsk Olga."),
        ([], ""),
    ]
    notice = Notice.objects.get()
    assert (notice.user, notice.kind, notice.answer) == (olga, "flagged", None)
    assert link(notice).endswith(f"/knowledge/entries/{entry.pk}")
    (item,) = read_inbox(olga, size=5).items
    assert (item.kind, item.why) == (Kind.ENTRY, "You own it")
    assert item.note == "Flagged; used in 0 answers."
    entry.refresh_from_db()
    assert entry.state == "verified"


@pytest.mark.parametrize("is_vote", [False, True])
def test_without_an_owner_the_experts_of_its_tags_hear_of_it(is_vote):
    expert, hidden = make_user(Role.SME), make_user()
    tag = make_tag("gold-card", expert, hidden)
    entry = make_entry(product_line=tag, owner=None)
    agent = make_user()

    if is_vote:
        answer = make_answer(agent, cited=(entry,))
        vote(answer.pk, user=agent, is_up=False, reasons=[Vote.Reason.OUTDATED])
        tasks.doubt_entries()
    else:
        flag_entry(entry_id=entry.pk, by=agent)

    assert [notice.user for notice in Notice.objects.all()] == [expert]
    (item,) = read_inbox(expert, size=5).items
    assert (item.subject, item.why) == (entry.pk, "You are an expert for Gold-Card")


def test_still_true_ends_it_and_the_next_flag_is_news_again(olga):
    entry, agent = make_entry(owner=olga), make_user()
    flag_entry(entry_id=entry.pk, by=agent)

    verify_entry(entry_id=entry.pk, by=olga)

    assert reasons(entry) == []
    assert not Flag.objects.open().exists()
    assert read_inbox(olga, size=5).items == ()
    flag_entry(entry_id=entry.pk, by=agent, note="Really.")
    assert Notice.objects.count() == Flag.objects.count() == 2


def test_a_flag_outlives_a_postponement_and_a_doubt_but_no_retirement(olga):
    entry = make_entry()
    flag_entry(entry_id=entry.pk, by=make_user())
    postpone_review(entry_id=entry.pk, by=olga, days=7)
    flag_entry(entry_id=entry.pk, by=make_user())  # not known when it was postponed

    mark_for_review(entry_id=entry.pk, by=olga)
    assert reasons(entry) == ["flagged", "needs_review"]

    retire_entry(entry_id=entry.pk, by=olga)
    assert reasons(entry) == []
    with pytest.raises(EntryNotFoundError):
        flag_entry(entry_id=entry.pk, by=make_user())


def test_only_who_sees_an_entry_flags_it_and_reads_its_flags():
    insider = make_user(groups=["vault"])
    hidden = make_entry("Secret.", audience=make_audience("vault", groups=["vault"]))
    outsider = make_user(Role.ADMIN)

    with pytest.raises(EntryNotFoundError):
        flag_entry(entry_id=hidden.pk, by=outsider)
    flag_entry(entry_id=hidden.pk, by=insider, note="Secret note.")

    with acting_for(outsider):
        assert not Flag.objects.exists()
    with acting_for(insider):
        assert Flag.objects.count() == 1


def test_an_agent_flags_on_the_page_and_a_curator_says_still_true(olga):
    entry = make_entry(owner=olga)
    agent, curator = Client(), Client()
    agent.force_login(make_user())
    curator.force_login(olga)
    address, page = (
        reverse("entry-flag", args=[entry.pk]),
        reverse("entry", args=[entry.pk]),
    )

    form = agent.get(page).content.decode()
    assert "What is wrong? (optional)" in form
    assert "It answers another question" not in form  # of an answer alone
    said = {"reasons": ["outdated", "unclear"], "note": "<Old>"}
    live = agent.post(address, said, headers={"HX-Request": "true"})
    assert "Flagged" in live.content.decode()
    unknown = agent.post(address, {"reasons": ["off_topic"], "note": "Kept."})
    assert unknown.status_code == 422
    assert "is not known; use one of wrong, incomplete" in unknown.content.decode()
    assert "Kept." in unknown.content.decode()
    assert agent.post(address, {"note": "x" * 2000}).status_code == 422
    assert agent.post(address)["Location"] == f"{page}#flags"
    assert agent.post(reverse("entry-still-true", args=[entry.pk])).status_code == 403

    shown = curator.get(page).content.decode()
    assert "It is out of date, It is hard to understand “&lt;Old&gt;”" in shown
    due = curator.get(reverse("admin:kb_entry_due")).content.decode()
    assert "It is out of date, It is hard to understand “&lt;Old&gt;”" in due
    assert "Still true" in shown
    assert not Notice.objects.unread().exists()
    stale = curator.post(reverse("entry-still-true", args=[entry.pk]), {"revision": 9})
    assert stale.status_code == 409
    curator.post(reverse("entry-still-true", args=[entry.pk]), {"revision": 1})
    assert "Flagged" not in curator.get(page).content.decode()
    assert reasons(entry) == []


def test_what_has_expired_is_not_confirmed_by_a_button(olga):
    entry = make_entry(owner=olga, valid_until=timezone.now())
    client = page_client(olga)

    shown = client.get(reverse("entry", args=[entry.pk])).content.decode()

    assert "This has expired" in shown
    assert "Still true" not in shown
    address = reverse("entry-still-true", args=[entry.pk])
    refused = client.post(address, {"revision": 1})
    assert refused.status_code == 409
    assert "give it a later end of validity" in refused.content.decode()


@pytest.mark.slow
def test_a_curator_sets_and_clears_the_end_of_validity_on_the_page(olga):
    entry = make_entry(state="in_review", valid_until=timezone.now())
    client, agent = page_client(olga), page_client(make_user())
    address = reverse("entry-validity", args=[entry.pk])

    def send(day: str, revision: int) -> int:
        given = {"valid_until": day, "revision": revision}
        status = client.post(address, given).status_code
        entry.refresh_from_db()
        return status

    assert agent.post(address, {"valid_until": "2099-12-31"}).status_code == 403
    assert send("2099-12-31", 2) == 409
    assert [send(day, 1) for day in ("2020-12-31", "soon", "31.12.2099")] == [400] * 3
    assert send("2099-12-31", 1) == 302
    assert entry.valid_until == datetime(2099, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert entry.state == "in_review"
    page = reverse("entry", args=[entry.pk])
    assert 'value="2099-12-31"' in client.get(page).content.decode()
    assert "Valid until</label>" not in agent.get(page).content.decode()
    assert send("", 2) == 302
    assert entry.valid_until is None


@pytest.mark.slow
def test_an_entry_is_verified_retired_and_restored_on_its_own_page(olga):
    entry = make_entry(state="in_review", verify=False)
    client, agent = page_client(olga), page_client(make_user())
    page = reverse("entry", args=[entry.pk])

    def press(button: str, revision: int) -> str:
        address = reverse(f"entry-{button}", args=[entry.pk])
        assert agent.post(address, {"revision": revision}).status_code == 403
        response = client.post(address, {"revision": revision})
        assert response["Location"] == page
        entry.refresh_from_db()
        return client.get(page).content.decode()

    assert "Still true" not in client.get(page).content.decode()
    shown = press("still-true", 1)
    assert (entry.state, entry.verified_by) == ("verified", olga)
    assert "Retire" in shown
    shown = press("retire", 2)
    assert (entry.state, "Restore" in shown) == ("retired", True)
    assert agent.get(page).status_code == 404
    stale = client.post(reverse("entry-restore", args=[entry.pk]), {"revision": 2})
    assert stale.status_code == 409
    press("restore", 3)
    assert (entry.state, entry.verified_by) == ("verified", olga)
