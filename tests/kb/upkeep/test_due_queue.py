"""The queue of what is due, in the admin and over REST: who sees what, and what they do."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from accounts.acting import acting_for, as_owner
from accounts.roles import Role
from jobs.models import Job
from kb.models import Entry, KnowledgeBase, Upkeep
from kb.upkeep.services import due_entries, read_page
from tests.clients import inline_rows
from tests.factories import (
    make_audience,
    make_entries,
    make_entry,
    make_knowledge_base,
    make_user,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

PAGE = "/admin/kb/entry/due"
REST = "/api/v1/entries/due"


def make_overdue(text: str = "An old fee.", *, uses: int = 0, **fields) -> Entry:
    entry = make_entry(text, **fields)
    long_ago = timezone.now() - timedelta(days=200)
    Entry.objects.filter(pk=entry.pk).update(verified_at=long_ago)
    Upkeep.objects.filter(entry=entry).update(uses=uses)
    return entry


def sorts(plan: str) -> list[str]:
    """Return the text of each sort of a plan, with all that is indented below it."""
    parts = re.split(r"^( *)(?:-> +)?(?:Incremental )?Sort  ", plan, flags=re.M)
    return [
        re.split(rf"^ {{0,{len(indent)}}}(?:->|\w)", below, maxsplit=1, flags=re.M)[0]
        for indent, below in zip(parts[1::2], parts[2::2], strict=True)
    ]


def shown(client, query: str = "") -> list[Entry]:
    return [entry for entry, _ in client.get(PAGE + query).context["rows"]]


def do(client, entry: Entry, action: str, **fields):
    number = entry.revisions.latest("number").number
    body = {"entry": entry.pk, "revision": number, "action": action, **fields}
    return client.post(f"{PAGE}?whose=all", body, follow=True)


def test_page_shows_the_most_used_first_with_why_each_is_due(curator):
    quiet = make_overdue("Quiet.")
    loud = make_overdue("Loud.", uses=412)
    waits = make_entry("Waits.", state="needs_review")
    make_entry("Fresh.")

    page = curator.get(PAGE)

    assert [entry for entry, _ in page.context["rows"]] == [loud, quiet, waits]
    body = page.content.decode()
    assert "used 412 times" in body
    assert len(re.findall("review overdue since", body)) == 2
    assert "needs review since" in body
    assert "Fresh." not in body


def test_page_narrows_to_ones_own_and_to_a_reason(curator):
    mine = make_overdue("Mine.", owner=curator.user)
    waits = make_entry("Waits.", state="in_review")

    assert shown(curator, "?whose=mine") == [mine]
    assert shown(curator, "?reason=in_review") == [waits]
    assert shown(curator, "?reason=expired") == []
    assert curator.get(f"{PAGE}?reason=x").status_code == 404
    assert curator.get(f"{PAGE}?after=x").status_code == 404


def test_the_page_names_and_narrows_to_a_knowledge_base_where_there_are_several(
    curator,
):
    here = make_overdue("Here.")
    assert 'aria-label="Knowledge base"' not in curator.get(PAGE).content.decode()
    loans = make_knowledge_base("loans")
    there = make_overdue("There.", knowledge_base=loans)

    page = curator.get(f"{PAGE}?base=loans&whose=all")

    assert [entry for entry, _ in page.context["rows"]] == [there]
    assert "· Loans ·" in page.content.decode()
    assert 'href="?whose=mine&amp;reason=&amp;base=loans"' in page.content.decode()
    assert {label: count for label, count, *_ in page.context["reasons"]}[
        "review overdue"
    ] == "1"
    assert set(shown(curator)) == {here, there}
    assert curator.get(f"{PAGE}?base=nope").status_code == 404


def test_pages_hold_every_entry_once(curator, monkeypatch):
    monkeypatch.setattr("kb.upkeep.pages.PAGE", 2)
    made = {make_overdue(f"Fee {n}.", uses=n % 2) for n in range(5)}

    first = curator.get(PAGE)
    second = curator.get(PAGE + first.context["next"])
    third = curator.get(PAGE + second.context["next"])

    found = [e for page in (first, second, third) for e, _ in page.context["rows"]]
    assert len(found) == 5
    assert set(found) == made
    assert third.context["next"] == ""


@pytest.mark.parametrize("rows", [1, 20])
def test_page_costs_the_same_queries_for_any_number_of_rows(
    curator, rows, django_assert_max_num_queries
):
    for entry in make_entries([f"Fee {n}." for n in range(rows)], owner=curator.user):
        Entry.objects.filter(pk=entry.pk).update(verified_at="2020-01-01T00:00Z")
    curator.get(PAGE)

    with django_assert_max_num_queries(16):
        page = curator.get(PAGE)

    assert len(page.context["rows"]) == rows


def test_still_true_verifies_with_one_click(curator):
    entry = make_overdue()

    page = do(curator, entry, "verify")

    entry.refresh_from_db()
    assert entry.verified_by == curator.user
    assert entry.revisions.latest("number").reason == "Verified again."
    assert page.context["rows"] == []


def test_what_has_expired_is_not_still_true(curator):
    entry = make_entry("An old fee.", valid_until=datetime(2026, 3, 31, 9, tzinfo=UTC))

    assert 'value="verify"' not in curator.get(PAGE).content.decode()
    refused = do(curator, entry, "verify").content.decode()

    assert "was valid until 2026-03-31; give it a later end of validity" in refused
    assert "Still true:" not in refused
    assert shown(curator) == [entry]
    assert entry.revisions.count() == 1


def test_what_has_expired_gets_a_later_end_and_is_verified_with_it(curator):
    entry = make_entry("An old fee.", valid_until=datetime(2026, 3, 31, 9, tzinfo=UTC))

    for day, says in (
        ("2020-01-31", "2020-01-31 has passed"),
        ("soon", "is not a date"),
    ):
        refused = do(curator, entry, "set_validity", valid_until=day)
        assert says in refused.content.decode()
    page = do(curator, entry, "set_validity", valid_until="2099-12-31")

    assert "Valid until 2099-12-31: An old fee." in page.content.decode()
    assert page.context["rows"] == []
    entry.refresh_from_db()
    assert entry.valid_until == datetime(2099, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert (entry.state, entry.verified_by) == ("verified", curator.user)


def test_an_entry_that_changed_since_it_was_read_is_not_verified(curator):
    entry = make_overdue()
    body = {"entry": entry.pk, "revision": 0, "action": "verify"}

    page = curator.post(PAGE, body, follow=True)

    assert "read it again" in page.content.decode()
    assert shown(curator) == [entry]


def test_postponed_handed_over_and_retired_from_the_page(curator):
    later, other, old = (make_overdue(f"{n}.") for n in range(3))
    olga = make_user(Role.CURATOR, username="olga")

    do(curator, later, "postpone", days="30")
    do(curator, other, "hand_over", owner="olga")
    do(curator, old, "retire")

    assert shown(curator) == [other]
    other.refresh_from_db()
    assert (other.owner, other.state) == (olga, "verified")
    old.refresh_from_db()
    assert old.state == "retired"


@pytest.mark.parametrize(
    ("action", "fields", "says"),
    [
        ("hand_over", {"owner": "nobody at all"}, "There is no user"),
        ("postpone", {"days": "0"}, "between 1 and 365"),
        ("postpone", {"days": "x"}, "is not a number"),
        ("explode", {}, "There is no action"),
    ],
)
def test_what_cannot_be_done_is_told(curator, action, fields, says):
    entry = make_overdue()

    page = do(curator, entry, action, **fields)

    assert says in page.content.decode()
    assert shown(curator) == [entry]


def test_what_one_may_not_see_is_neither_shown_nor_changed(curator):
    board = make_audience("board", groups=["board"])
    hidden = make_overdue("Secret.", audience=board, owner=curator.user)

    assert "Secret." not in curator.get(PAGE).content.decode()
    assert shown(curator, "?whose=mine") == []
    assert do(curator, hidden, "verify").status_code == 404
    assert do(curator, hidden, "retire").status_code == 404
    hidden.refresh_from_db()
    assert hidden.state == "verified"


def test_an_sme_looks_and_changes_nothing(client):
    user = make_user(Role.SME)
    User.objects.filter(pk=user.pk).update(is_staff=True)
    client.force_login(User.objects.get(pk=user.pk))
    entry = make_overdue()

    body = client.get(PAGE).content.decode()

    assert "An old fee." in body
    assert 'value="verify"' not in body
    assert do(client, entry, "verify").status_code == 403
    assert do(client, entry, "postpone", days="7").status_code == 403


def test_rest_lists_what_is_due_with_reasons_in_pages(api):
    made = [make_overdue(f"Fee {n}.", uses=n) for n in range(3)]
    client = api(make_user(Role.SME))

    first = client.get(f"{REST}?page_size=2").json()
    second = client.get(f"{REST}?page_size=2&after={first['next']}").json()

    found = [row["id"] for row in first["results"] + second["results"]]
    assert found == [entry.pk for entry in reversed(made)]
    assert second["next"] is None
    (reason,) = first["results"][0]["due"]
    assert reason["why"] == "overdue"
    assert first["results"][0]["overdue"] is True
    assert first["results"][0]["uses"] == 2


def test_rest_narrows_and_hides(api):
    user = make_user(Role.CURATOR)
    mine = make_overdue("Mine.", owner=user)
    make_entry("Waits.", state="in_review")
    board = make_audience("board", groups=["board"])
    make_overdue("Secret.", audience=board, owner=user)
    client = api(user)

    def found(query: str) -> list[int]:
        return [row["id"] for row in client.get(f"{REST}?{query}").json()["results"]]

    assert found("whose=mine") == [mine.pk]
    assert found("reason=overdue") == [mine.pk]
    assert found("whose=mine&reason=expired") == []
    loan = make_overdue("A loan.", knowledge_base=make_knowledge_base("loans"))
    assert found("knowledge_base=loans") == [loan.pk]


@pytest.mark.parametrize(
    "query",
    [
        "whose=x",
        "reason=x",
        "after=x",
        "page_size=0",
        "page_size=201",
        "knowledge_base=x",
    ],
)
def test_rest_refuses_what_it_does_not_know(api, query):
    assert api(make_user(Role.SME)).get(f"{REST}?{query}").status_code == 400


def test_rest_is_for_who_reviews(api):
    assert api(make_user(Role.AGENT)).get(REST).status_code == 403


@pytest.mark.parametrize("rows", [1, 20])
def test_rest_costs_the_same_queries_for_any_number_of_rows(
    api, rows, django_assert_max_num_queries
):
    for entry in make_entries([f"Fee {n}." for n in range(rows)]):
        Entry.objects.filter(pk=entry.pk).update(verified_at="2020-01-01T00:00Z")
    client = api(make_user(Role.SME))

    with django_assert_max_num_queries(4):
        response = client.get(REST)

    assert len(response.json()["results"]) == rows


def test_rest_postpones_what_one_may_see(api):
    entry = make_overdue()
    hidden = make_overdue("Secret.", audience=make_audience("board", groups=["board"]))
    client = api(make_user(Role.CURATOR))

    def postpone(which, body):
        address = f"/api/v1/entries/{which.pk}/postpone"
        return client.post(address, body, format="json").status_code

    assert postpone(entry, {"days": 7}) == 200
    assert postpone(entry, {"days": 0}) == 400
    assert postpone(hidden, {"days": 7}) == 404
    assert client.get(REST).json()["results"] == []


def test_interval_is_written_over_rest(api):
    entry = make_entry()
    client = api(make_user(Role.CURATOR))
    address = f"/api/v1/entries/{entry.pk}"

    changed = client.patch(address, {"review_interval_days": 30}, format="json").json()

    assert changed["review_interval_days"] == 30
    assert changed["verified_by"] == "curator"  # an interval is nothing one vouches for
    for wrong in (0, 3_651, "30", 1.5):
        body = {"review_interval_days": wrong}
        assert client.patch(address, body, format="json").status_code == 400


def test_rest_edit_of_a_verified_entry_is_its_editors_verification(api):
    entry = make_entry()
    address = f"/api/v1/entries/{entry.pk}"
    olga = make_user(Role.CURATOR, username="olga")

    refused = api(make_user(Role.SME)).patch(address, {"text": "New."}, format="json")
    changed = api(olga).patch(address, {"text": "New."}, format="json").json()

    assert refused.status_code == 403
    assert (changed["state"], changed["verified_by"]) == ("verified", "olga")


def test_a_changed_interval_of_a_knowledge_base_has_the_dates_moved(boss):
    base = make_knowledge_base()
    address = f"/admin/kb/knowledgebase/{base.pk}/change/"
    fields = {
        "name": "Cards", "language": "en", "when_overdue": "doubt",
        "overdue_grace_days": "14", **inline_rows("roles"),
    }  # fmt: skip

    boss.post(address, {**fields, "review_interval_days": "180"})
    assert not Job.objects.exists()
    boss.post(address, {**fields, "review_interval_days": "90"})

    assert Job.objects.get().kind == "kb.keep_upkeep"
    assert KnowledgeBase.objects.get().review_interval_days == 90


def test_the_queue_is_read_from_its_index_and_not_sorted():
    entry = make_overdue()
    with connection.cursor() as sql:
        sql.execute(
            "INSERT INTO kb_entry (knowledge_base_id, question, text, state, origin,"
            " confidence, audience_id, language, created_at, updated_at, verified_at,"
            " verified_by_id) SELECT knowledge_base_id, '', 'Fact ' || n, 'verified',"
            " 'imported', 1, audience_id, 'xx', now(), now(),"
            " now() - n %% 400 * interval '1 day', verified_by_id"
            " FROM kb_entry, generate_series(1, 20000) n WHERE id = %s",
            [entry.pk],
        )
        sql.execute("UPDATE kb_upkeep SET uses = entry_id % 50")
        with as_owner("tests"):
            sql.execute("ANALYZE kb_entry, kb_upkeep")
    user = make_user(Role.CURATOR)
    queue = due_entries(user, at=timezone.now())
    following = read_page(queue, size=25, after=None).following

    assert following is not None
    with acting_for(user):
        plans = [queue[:26].explain(), queue.after(following)[:26].explain()]

    for plan in plans:
        assert "using upkeep_queue" in plan
        assert "Seq Scan on kb_entry" not in plan
        # The planner may sort the few audiences, never what it reads of the queue.
        assert not [node for node in sorts(plan) if "kb_upkeep" in node]
