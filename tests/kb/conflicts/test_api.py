import pytest

from accounts.roles import Role
from kb.conflicts.finding import find_entry_conflicts
from kb.models import Conflict, Entry
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_user,
)

pytestmark = pytest.mark.django_db

FIVE = "The Savings account costs 5 euros a month."
SEVEN = "The Savings account costs 7 euros a month."


@pytest.fixture
def conflict():
    make_entry(FIVE)
    (found,) = find_entry_conflicts(make_entry(SEVEN).pk)
    return found


def resolve(client, conflict, **body):
    address = f"/api/v1/conflicts/{conflict.pk}/resolve"
    return client.post(address, body, format="json")


def test_the_list_tells_both_entries_and_what_clashes(api, conflict):
    (found,) = api(make_curator()).get("/api/v1/conflicts?state=open").json()["results"]

    assert found["kind"] == "contradiction"
    assert [found[side]["text"] for side in ("first", "second")] == [FIVE, SEVEN]
    start, end = found["reasons"][0]["second"]
    assert SEVEN[start:end] == "7 euros"


def test_the_list_takes_as_many_queries_for_many_as_for_one(
    api, conflict, django_assert_num_queries
):
    make_entry("The lift is open on Sundays.")
    find_entry_conflicts(make_entry("The lift is closed on Sundays.").pk)
    client = api(make_curator())

    with django_assert_num_queries(3):
        rows = client.get("/api/v1/conflicts").json()["results"]

    assert len(rows) == 2


def test_a_list_is_narrowed_to_one_entry(api, conflict):
    client = api(make_curator())
    other = make_entry("The lift is out of order.")

    mine = client.get(f"/api/v1/conflicts?entry={conflict.first_id}").json()
    none = client.get(f"/api/v1/conflicts?entry={other.pk}").json()

    assert len(mine["results"]) == 1
    assert none["results"] == []


def test_a_list_is_narrowed_to_one_knowledge_base(api, conflict):
    client = api(make_curator())
    other = make_knowledge_base("clinic")

    mine, none = (
        client.get(f"/api/v1/conflicts?knowledge_base={base.slug}").json()
        for base in (conflict.first.knowledge_base, other)
    )

    assert len(mine["results"]) == 1
    assert none["results"] == []
    assert client.get("/api/v1/conflicts?knowledge_base=none").status_code == 400


def test_a_conflict_is_resolved_once(api, conflict):
    client = api(make_curator())

    done = resolve(client, conflict, action="keep_both", reason="Two tariffs.")
    again = resolve(client, conflict, action="keep_both", reason="Two tariffs.")

    assert (done.status_code, done.json()["state"]) == (200, "kept")
    assert again.status_code == 409


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"action": "override", "reason": "New list."}, "keep is missing"),
        ({"action": "keep_both"}, "reason is empty"),
        ({"action": "merge", "keep": 1_000_000}, "is not an entry of conflict"),
        ({"action": "guess"}, "not a valid choice"),
    ],
)
def test_a_wrong_resolution_says_what_to_do(api, conflict, body, said):
    answer = resolve(api(make_curator()), conflict, **body)

    assert answer.status_code == 400
    assert said in answer.content.decode()


def test_agents_and_experts_neither_list_nor_resolve(api, conflict):
    for role in (Role.AGENT, Role.SME):
        client = api(make_user(role))

        assert client.get("/api/v1/conflicts").status_code == 403
        assert resolve(client, conflict, action="keep_both").status_code == 403


def test_a_conflict_with_an_unseen_entry_is_as_if_there_were_none(api):
    make_entry(FIVE, audience=make_audience("board", groups=["board"]))
    (conflict,) = find_entry_conflicts(make_entry(SEVEN).pk)
    client = api(make_user(Role.CURATOR))

    assert client.get("/api/v1/conflicts").json()["results"] == []
    seen = resolve(client, conflict, action="keep_both", reason="Unseen.")
    gone = client.post(
        "/api/v1/conflicts/999999/resolve",
        {"action": "keep_both", "reason": "Unseen."},
        format="json",
    )
    assert (seen.status_code, gone.status_code) == (404, 404)


def write(client, **body):
    body = {"knowledge_base": "cards", "audience": "everyone", "verify": True, **body}
    return client.post("/api/v1/entries", body, format="json")


def test_writing_what_contradicts_a_verified_entry_goes_to_review(api):
    make_entry(FIVE)

    written = write(api(make_curator()), text=SEVEN)

    assert written.status_code == 201
    assert written.json()["state"] == "needs_review"
    assert Conflict.objects.open().count() == 1


def test_writing_it_with_an_override_sends_the_other_to_review(api):
    old = make_entry(FIVE)

    written = write(api(make_curator()), text=SEVEN, override="New price list.")

    old.refresh_from_db()
    assert written.json()["state"] == "verified"
    assert old.state == Entry.State.NEEDS_REVIEW


@pytest.mark.slow
def test_editing_and_verifying_are_checked_too(api):
    make_entry(FIVE)
    other = make_entry("The Savings account needs no deposit.")
    client = api(make_curator())

    edited = client.patch(f"/api/v1/entries/{other.pk}", {"text": SEVEN}, format="json")
    again = client.post(f"/api/v1/entries/{other.pk}/verify", {}, format="json")
    forced = client.post(
        f"/api/v1/entries/{other.pk}/verify", {"override": "It is."}, format="json"
    )

    states = [answer.json()["state"] for answer in (edited, again, forced)]
    assert states == ["needs_review", "needs_review", "verified"]
