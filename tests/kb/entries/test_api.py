"""Reading entries over REST."""

from datetime import UTC, datetime, timedelta

import pytest

from accounts.roles import Role
from kb.entries.services import edit_entry
from kb.models import Entry
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entries,
    make_entry,
    make_knowledge_base,
    make_user,
)

pytestmark = pytest.mark.django_db

ENTRIES = "/api/v1/entries"


def _ids(response) -> list[int]:
    assert response.status_code == 200, response.content
    return [row["id"] for row in response.json()["results"]]


def test_entry_is_shown_with_all_that_tells_whether_to_trust_it(api):
    document = make_document("Price list")
    entry = make_entry(
        "The Gold card costs 72 euros.",
        question="What does Gold cost?",
        document=document,
        valid_until=datetime(2099, 1, 1, tzinfo=UTC),
        owner=make_user(Role.SME, username="olga"),
    )

    response = api(make_user()).get(f"{ENTRIES}/{entry.pk}")

    shown = response.json()
    assert response.status_code == 200
    assert response["ETag"] == '"1"'
    assert shown.pop("verified_at")
    assert shown.pop("created_at")
    assert shown.pop("updated_at")
    assert shown.pop("review_due")
    assert shown == {
        "id": entry.pk,
        "knowledge_base": "cards",
        "document": document.pk,
        "document_title": "Price list",
        "section": None,
        "section_heading": "",
        "own_key": "",
        "question": "What does Gold cost?",
        "text": "The Gold card costs 72 euros.",
        "state": "verified",
        "origin": "manual",
        "confidence": 1.0,
        "audience": "everyone",
        "language": "en",
        "valid_until": "2099-01-01T00:00:00Z",
        "expired": False,
        "owner": "olga",
        "product_line": None,
        "line_of_business": None,
        "verified": True,
        "verified_by": "curator",
        "review_interval_days": None,
        "overdue": False,
        "uses": 0,
        "revision": 1,
    }


def test_list_shows_newest_first_in_pages(api):
    made = make_entries([f"Fact {n}." for n in range(5)])
    client = api(make_user())

    first = client.get(f"{ENTRIES}?page_size=3")
    second = client.get(first.json()["next"])

    assert _ids(first) + _ids(second) == [entry.pk for entry in reversed(made)]
    assert second.json()["next"] is None


@pytest.mark.parametrize("rows", [1, 20])
def test_list_costs_the_same_queries_for_any_number_of_rows(
    api, rows, django_assert_num_queries
):
    make_entries([f"Fact {n}." for n in range(rows)], owner=make_curator())
    client = api(make_user())

    with django_assert_num_queries(3):  # role, curator?, rows
        response = client.get(ENTRIES)

    assert len(_ids(response)) == rows


def test_revision_list_has_every_revision_in_bounded_queries(
    api, django_assert_num_queries
):
    entry = make_entry("One.")
    client = api(make_curator())
    client.patch(f"{ENTRIES}/{entry.pk}", {"text": "Two."}, format="json")
    client.patch(
        f"{ENTRIES}/{entry.pk}", {"text": "Three.", "reason": "Third."}, format="json"
    )

    # role, curator?, entry, audiences that may be named, revisions
    with django_assert_num_queries(5):
        response = client.get(f"{ENTRIES}/{entry.pk}/revisions")

    rows = response.json()["results"]
    assert [(row["number"], row["text"]) for row in rows] == [
        (3, "Three."),
        (2, "Two."),
        (1, "One."),
    ]
    assert (rows[0]["reason"], rows[0]["author"]) == ("Third.", "curator")


def test_what_the_asker_may_not_see_does_not_exist(api):
    fraud = make_audience("fraud-desk", groups=["fraud-desk"])
    secret = make_entry("Freeze the account first.", audience=fraud)
    outsider = api(make_user())
    insider = api(make_user(groups=["fraud-desk"]))

    answers = [
        outsider.get(f"{ENTRIES}/{secret.pk}"),
        outsider.get(f"{ENTRIES}/{secret.pk}/revisions"),
        api(make_user(Role.CURATOR)).patch(
            f"{ENTRIES}/{secret.pk}", {"text": "No."}, format="json"
        ),
        api(make_user(Role.CURATOR)).post(f"{ENTRIES}/{secret.pk}/retire"),
        api(make_user(Role.CURATOR)).delete(f"{ENTRIES}/{secret.pk}"),
    ]

    assert [answer.status_code for answer in answers] == [404] * 5
    unknown = outsider.get(f"{ENTRIES}/{secret.pk + 1}").json()
    assert str(unknown).replace(str(secret.pk + 1), str(secret.pk)) == str(
        answers[0].json()
    )
    assert _ids(outsider.get(ENTRIES)) == []
    assert _ids(insider.get(ENTRIES)) == [secret.pk]


def test_drafts_and_retired_entries_are_for_curators(api):
    draft = make_entry("A draft.", state="draft")
    retired = make_entry("A retired one.", state="retired")
    agent, curator = api(make_user()), api(make_curator())

    assert _ids(agent.get(ENTRIES)) == []
    assert agent.get(f"{ENTRIES}/{draft.pk}").status_code == 404
    assert _ids(curator.get(ENTRIES)) == [retired.pk, draft.pk]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("state=verified", ["gold", "geld"]),
        ("state=draft&state=retired", ["draft"]),
        ("origin=imported", ["gold"]),
        ("audience=leads", ["lead"]),
        ("knowledge_base=loans", ["geld"]),
        ("expired=true", ["lead"]),
        ("expired=false&state=verified", ["gold", "geld"]),
        ("q=costs", ["gold", "draft"]),
        ("q=cards+-gold", ["draft"]),
        ("q=%22gold+card%22", ["gold"]),
        ("q=Karten", ["geld"]),
        ("q=unheard", []),
    ],
)
def test_list_is_narrowed(api, query, expected):
    leads = make_audience("leads", groups=["leads"])
    loans = make_knowledge_base("loans", language="de")
    named = {
        "gold": make_entry("The gold card costs 72 euros.", origin="imported"),
        "draft": make_entry("Any card cost 5 euros once.", state="draft"),
        "geld": make_entry("Die Karte kostet Geld.", knowledge_base=loans),
        "lead": make_entry(
            "Waive it once.",
            audience=leads,
            state="in_review",
            valid_until=datetime.now(UTC) - timedelta(days=1),
        ),
    }
    client = api(make_user(Role.CURATOR, groups=["leads"]))

    found = _ids(client.get(f"{ENTRIES}?{query}"))

    assert sorted(found) == sorted(named[name].pk for name in expected)


def test_list_is_narrowed_to_a_document(api):
    document = make_document()
    inside = make_entry("Inside.", document=document)
    make_entry("Outside.")

    assert _ids(api(make_user()).get(f"{ENTRIES}?document={document.pk}")) == [
        inside.pk
    ]


@pytest.mark.parametrize(
    "query",
    [
        "state=lost",
        "origin=lost",
        "expired=maybe",
        "document=99999",
        "document=99999999999999999999999999",
        "document=abc",
        "audience=lost",
        "knowledge_base=lost",
        "q=%00",
        "q=" + "x" * 201,
        "cursor=cD1hYmM%3D",
        "page_size=0",
        "page_size=many",
    ],
)
def test_bad_filter_is_told_and_not_ignored(api, query):
    response = api(make_curator()).get(f"{ENTRIES}?{query}")

    assert response.status_code == 400, response.content


def test_reading_needs_the_role_agent_and_a_sign_in(api):
    assert api(make_user(None)).get(ENTRIES).status_code == 403
    assert api(None).get(ENTRIES).status_code == 401


@pytest.mark.parametrize("key", ["0", "99999999999999999999999999", "abc", "-1"])
def test_unknown_id_is_not_found(api, key):
    client = api(make_curator())

    assert client.get(f"{ENTRIES}/{key}").status_code == 404
    assert client.patch(f"{ENTRIES}/{key}", {}, format="json").status_code == 404
    assert client.post(f"{ENTRIES}/{key}/verify").status_code == 404


def test_another_system_reads_what_has_changed_since_it_last_looked(api):
    old, changed = make_entry("A card costs 12 euros."), make_entry("Cash costs 3.")
    since = datetime.now(UTC)
    edit_entry(
        entry_id=changed.pk,
        author=make_curator(),
        may_verify=True,
        text="Cash costs 4.",
    )
    Entry.objects.filter(pk=old.pk).update(updated_at=since - timedelta(seconds=1))
    client = api(make_user())

    found = client.get(ENTRIES, {"updated_after": since.isoformat()})

    assert _ids(found) == [changed.pk]
    assert client.get(ENTRIES, {"updated_after": "yesterday"}).status_code == 400
