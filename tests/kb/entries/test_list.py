"""The admin's list of entries: what it shows, costs, finds and does to many at once."""

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from accounts.roles import Role
from jobs.models import Job
from kb.conflicts.finding import find_entry_conflicts
from kb.entries.bulk import Action
from kb.models import Entry, Upkeep
from tests.factories import (
    make_audience,
    make_entries,
    make_entry,
    make_knowledge_base,
    make_user,
)

pytestmark = pytest.mark.django_db

LIST = "/admin/kb/entry/"


def confirm(client, action, entries, **fields):
    chosen = [entry.pk for entry in entries]
    return client.post(
        LIST,
        {"action": action, "_selected_action": chosen, "confirm": "1", **fields},
        follow=True,
    )


def said(response) -> list[str]:
    """Return the messages, without the button of an undo."""
    shown = (str(message) for message in response.context["messages"])
    return [re.sub(" <form.*", "", message) for message in shown]


@pytest.mark.parametrize("rows", [1, 30])
def test_list_costs_the_same_queries_for_any_number_of_rows(
    boss, rows, django_assert_max_num_queries
):
    make_entries([f"Fact {n}." for n in range(rows)])
    boss.get(LIST)

    with django_assert_max_num_queries(12) as captured:
        response = boss.get(LIST)

    assert response.status_code == 200
    assert response.content.count(b"Fact ") >= rows
    statements = " ".join(query["sql"] for query in captured.captured_queries)
    assert "search_vector" not in statements
    assert "vector" not in statements


@pytest.mark.parametrize(
    ("action", "state"),
    [
        ("verify", "verified"),
        ("mark_for_review", "needs_review"),
        ("retire", "retired"),
    ],
)
def test_actions_call_the_services_for_each_entry(boss, action, state):
    made = [make_entry("One.", state="draft"), make_entry("Two.", state="in_review")]

    confirm(boss, action, made)

    assert set(Entry.objects.values_list("state", flat=True)) == {state}
    assert [entry.revisions.latest("number").author for entry in made] == [
        boss.user
    ] * 2


def test_action_that_fails_for_one_entry_is_done_for_the_others(boss):
    retired = make_entry("One.", state="retired")
    draft = make_entry("Two.", state="draft")

    response = confirm(boss, "verify", [retired, draft])

    draft.refresh_from_db()
    assert draft.state == "verified"
    assert said(response) == [
        f"Entry {retired.pk} is retired; restore it first.",
        "1 entry verified.",
    ]


def test_restore_action_undoes_retirements(boss):
    entry = make_entry(state="retired")

    confirm(boss, "restore", [entry])

    entry.refresh_from_db()
    assert entry.state == "verified"


def test_list_is_searched_and_filtered(boss):
    make_entry("The gold card costs 72 euros.")
    make_entry("Cash abroad costs 3 percent.", state="draft")

    def found(query: str) -> int:
        count: int = boss.get(f"{LIST}?{query}").context["cl"].result_count
        return count

    assert found("q=cards") == 1
    assert found("q=cost") == 2
    assert found("state__exact=draft") == 1
    assert found("audience=everyone") == 2
    assert found("expiry=expired") == 0
    assert found("expiry=current") == 2
    assert found("q=%00") == 2


def test_what_no_entry_says_is_looked_for_by_meaning_and_within_the_filters(boss):
    gold = make_entry("The gold card costs 72 euros.")
    cash = make_entry("Cash withdrawals abroad cost 3 percent.")

    near = boss.get(f"{LIST}?q=witdrawals+of+cash+abroad")
    draft = boss.get(f"{LIST}?q=witdrawals+of+cash+abroad&state__exact=draft")
    known = boss.get(f"{LIST}?q=withdrawals")

    assert list(near.context["cl"].result_list) == [cash, gold]
    assert said(near) == [
        "No entry in this list has the words “witdrawals of cash abroad”; these are close in meaning."
    ]
    assert draft.context["cl"].result_count == 0
    assert list(known.context["cl"].result_list) == [cash]
    assert said(known) == []


def test_list_shows_who_verified_and_what_expired(boss):
    make_entry("Old.", valid_until=datetime(2020, 5, 4, tzinfo=UTC))
    young = make_entry("Young.", valid_until=datetime(2099, 5, 4, tzinfo=UTC))

    page = boss.get(LIST).content.decode()

    assert "expired 2020-05-04" in page
    assert "2099-05-04" not in page
    day = f'<span class="whitespace-nowrap">{young.verified_at:%Y-%m-%d}</span>'
    assert f"curator, {day}" in page


@pytest.mark.parametrize("action", [each.value for each in Action])
def test_an_action_asks_before_it_changes_anything(boss, action):
    entry = make_entry("The gold card costs 72 euros.")
    before = Entry.objects.values().get(pk=entry.pk)

    page = boss.post(LIST, {"action": action, "_selected_action": [entry.pk]})

    body = page.content.decode()
    assert 'id="confirm-action"' in body
    assert "1 entry" in body
    assert "The gold card costs 72 euros." in body
    assert Entry.objects.values().get(pk=entry.pk) == before


def test_owner_audience_and_interval_are_changed_for_many(boss):
    made = [make_entry("One."), make_entry("Two.")]
    staff = make_audience("staff", groups=["staff"])

    confirm(boss, "owner", made, value=boss.user.pk, reason="Moved.")
    confirm(boss, "audience", made, value=staff.pk)
    confirm(boss, "interval", made, value="30")

    for entry in Entry.objects.all():
        assert (entry.owner, entry.audience) == (boss.user, staff)
        assert (entry.review_interval_days, entry.state) == (30, "verified")
        assert entry.revisions.get(number=2).reason == "Moved."


@pytest.mark.parametrize("value", ["0", "-5", "99999", "soon"])
def test_a_wrong_interval_is_asked_for_again(boss, value):
    entry = make_entry()

    page = confirm(boss, "interval", [entry], value=value)

    assert 'role="alert"' in page.content.decode()
    assert entry.revisions.count() == 1


def test_an_audience_that_one_is_not_in_is_not_offered(curator):
    hidden = make_audience("board", groups=["board"])
    entry = make_entry()

    page = confirm(curator, "audience", [entry], value=hidden.pk)

    assert 'role="alert"' in page.content.decode()
    assert "Board" not in page.content.decode()
    entry.refresh_from_db()
    assert entry.audience != hidden


def test_who_may_edit_and_not_verify_is_not_offered_to(client):
    user = make_user(role=None, groups=["editors"])
    allowed = Permission.objects.filter(
        codename__in=["view_entry", "change_entry", "add_entry"]
    )
    user.user_permissions.set(allowed)
    User.objects.filter(pk=user.pk).update(is_staff=True)
    client.force_login(User.objects.get(pk=user.pk))
    entry = make_entry(state="in_review")

    page = client.get(LIST).content.decode()
    confirm(client, "verify", [entry])
    form = client.get(f"{LIST}{entry.pk}/change/").content.decode()

    assert 'value="mark_for_review"' in page
    assert 'value="verify"' not in page
    assert '<option value="verified"' not in form
    entry.refresh_from_db()
    assert entry.state == "in_review"


def test_many_chosen_across_pages_become_a_job(boss, monkeypatch):
    monkeypatch.setattr("kb.entries.bulk.BATCH", 2)
    made = make_entries([f"Fact {n}." for n in range(3)])
    make_entry("Another, not found by the search.", state="draft")

    response = boss.post(
        f"{LIST}?state__exact=verified",
        {
            "action": "retire",
            "_selected_action": [made[0].pk],
            "select_across": "1",
            "confirm": "1",
            "reason": "The tariff ended.",
        },
        follow=True,
    )

    job = Job.objects.get()
    assert job.kind == "kb.change_entries"
    assert job.parameters["entries"] == [entry.pk for entry in made]
    assert job.parameters["reason"] == "The tariff ended."
    assert job.owner == boss.user
    assert "3 entries are changed in the background" in said(response)[0]


def test_list_shows_and_sorts_by_use_votes_and_review(boss):
    entry, other = make_entry("Used."), make_entry("Unused.")
    Upkeep.objects.filter(entry=entry).update(uses=412, up=3, down=1)
    Entry.objects.filter(pk=other.pk).update(
        verified_at=datetime(2020, 1, 1, tzinfo=UTC)
    )
    columns = list(boss.get(LIST).context["cl"].list_display)

    page = boss.get(LIST).content.decode()

    assert "412, 3 up, 1 down" in page
    assert "due 2020-06-29" in page
    for column, first in (("-uses_count", entry), ("review", other)):
        sign = "-" * column.startswith("-")
        number = columns.index(column.lstrip("-"))
        rows = boss.get(f"{LIST}?o={sign}{number}").context["cl"].result_list
        assert rows[0] == first


def test_list_is_narrowed_to_what_is_due_and_to_ones_own(boss):
    mine = make_entry("Mine.", state="in_review", owner=boss.user)
    make_entry("Nobody's.", valid_until=datetime(2020, 1, 1, tzinfo=UTC))
    make_entry("Fresh.")

    def found(query: str) -> list[int]:
        return [row.pk for row in boss.get(f"{LIST}?{query}").context["cl"].result_list]

    assert len(found("due=any")) == 2
    assert found("due=in_review") == [mine.pk]
    assert len(found("due=expired")) == 1
    refused = boss.get(f"{LIST}?due=nonsense")
    assert refused.status_code == 302
    assert refused.url.endswith("?e=1")
    assert found("owned=mine") == [mine.pk]
    assert len(found("owned=nobody")) == 2


def test_what_is_contradicted_is_left_out_of_verifying_and_named(boss):
    one = make_entry("The card costs 5 euros a month.", state="in_review")
    other = make_entry("The card costs 7 euros a month.", state="in_review")
    free = make_entry("Call us at any hour.", state="in_review")
    (conflict,) = find_entry_conflicts(other.pk)
    chosen = {"action": "verify", "_selected_action": [one.pk, free.pk]}

    asked = boss.post(LIST, chosen).content.decode()
    after = confirm(boss, "verify", [one, free])

    assert "1 entry is left out:" in " ".join(re.sub("<.*?>", "", asked).split())
    assert "/admin/kb/conflict/?state__exact=open" in asked
    left_out, done = said(after)
    assert "1 entry not verified: decide first which is right." in left_out
    assert reverse("admin:kb_conflict_change", args=[conflict.pk]) in left_out
    assert "The card costs 5 euros a month." in left_out
    assert done == "1 entry verified."
    assert Entry.objects.get(pk=one.pk).state == Entry.State.IN_REVIEW


def test_a_duplicate_is_verified_with_others(boss):
    one = make_entry("The card costs 5 euros a month.", state="in_review")
    other = make_entry("The card costs 5 euros per month.", state="in_review")
    (conflict,) = find_entry_conflicts(other.pk)

    assert conflict.kind == "duplicate"
    assert said(confirm(boss, "verify", [one, other])) == ["2 entries verified."]


def test_a_conflict_with_what_one_may_not_see_is_not_told(curator):
    shown = make_entry("The card costs 5 euros a month.", state="in_review")
    board = make_audience("board", groups=["board"])
    hidden = make_entry("The card costs 7 euros a month.", audience=board)
    assert find_entry_conflicts(hidden.pk)

    after = confirm(curator, "verify", [shown])

    assert said(after) == ["1 entry verified."]


def test_navigation_lights_up_one_of_entries_and_due(boss):
    make_entry()

    lit = {
        path: [
            item["title"]
            for group in boss.get(path).context["sidebar_navigation"]
            for item in group["items"]
            if item["active"]
        ]
        for path in (LIST, f"{LIST}add/", f"{LIST}due")
    }

    assert lit == {
        LIST: ["Entries"],
        f"{LIST}add/": ["Entries"],
        f"{LIST}due": ["Due for review"],
    }


@pytest.mark.slow
def test_what_is_to_be_changed_is_listed_page_by_page(boss):
    made = [make_entry(f"Card {number} is blue.") for number in range(26)]
    address = LIST
    chosen = {"action": Action.VERIFY.value, "_selected_action": [e.pk for e in made]}

    first, second = (
        boss.post(address, {**chosen, **page}).text for page in ({}, {"page": "2"})
    )

    assert first.count(" is blue.") == 25
    assert second.count(" is blue.") == 1
    assert "1 to 25 of 26" in first


@pytest.mark.slow
def test_what_is_typed_stays_from_page_to_page(boss):
    made = [make_entry(f"Card {number} is blue.") for number in range(26)]
    owner = make_user(Role.SME, username="anna")
    chosen = {"action": Action.OWNER.value, "_selected_action": [e.pk for e in made]}
    typed = {"value": owner.pk, "reason": "Anna knows cards."}

    page = boss.post(LIST, {**chosen, **typed, "page": "2"}).context["form"]

    assert page["value"].value() == str(owner.pk)
    assert page["reason"].value() == "Anna knows cards."
    assert f'value="{owner.pk}" selected' in str(page["value"])


def test_a_column_tells_knowledge_bases_apart_where_there_are_several(boss):
    make_entry("A card is blue.")
    address = LIST

    before = boss.get(address).context["cl"].list_display
    make_knowledge_base("clinic")
    after = boss.get(address).context["cl"].list_display

    assert "knowledge_base" not in before
    assert "knowledge_base" in after
