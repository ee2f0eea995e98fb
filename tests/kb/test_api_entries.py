from datetime import UTC, datetime, timedelta

import pytest

from accounts.roles import Role
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


def _statement() -> tuple[object, ...]:
    return tuple(Entry.objects.order_by("pk").values_list("pk", "text", "state"))


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
    assert shown == {
        "id": entry.pk,
        "knowledge_base": "cards",
        "document": document.pk,
        "document_title": "Price list",
        "section": None,
        "section_heading": "",
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
        "verified": True,
        "verified_by": "curator",
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

    with django_assert_num_queries(4):  # role, curator?, entry, revisions
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


def test_created_entry_is_returned_as_it_stands(api):
    document = make_document()

    response = api(make_curator()).post(
        ENTRIES,
        {
            "text": "Cash costs 3 percent.",
            "document": document.pk,
            "confidence": 0.9,
            "state": "in_review",
            "origin": "imported",
            "reason": "From the price list.",
        },
        format="json",
    )

    shown = response.json()
    assert response.status_code == 201, shown
    assert response["ETag"] == '"1"'
    assert (shown["confidence"], shown["state"]) == (0.9, "in_review")
    assert (shown["audience"], shown["knowledge_base"]) == ("everyone", "cards")
    assert Entry.objects.get().revisions.get().reason == "From the price list."


def test_entry_may_be_verified_as_it_is_created(api):
    make_knowledge_base()
    make_audience()

    response = api(make_curator()).post(
        ENTRIES,
        {"text": "A fact.", "audience": "everyone", "verify": True},
        format="json",
    )

    assert response.status_code == 201
    assert response.json()["verified_by"] == "curator"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"text": ""}, 400),
        ({"text": None}, 400),
        ({"text": 7}, 400),
        ({"text": ["a"]}, 400),
        ({"text": "\x00"}, 400),
        ({"text": "bell \x07"}, 400),
        ({"text": "x" * 8001}, 400),
        ({"question": "two\nlines"}, 400),
        ({"confidence": 0}, 400),
        ({"confidence": 1}, 400),
        ({"confidence": "0.5"}, 400),
        ({"confidence": True}, 400),
        ({"confidence": 2}, 400),
        ({"confidence": 10**400}, 400),
        ({"state": "verified"}, 400),
        ({"state": "retired"}, 400),
        ({"audience": "lost"}, 400),
        ({"audience": "hidden"}, 400),
        ({"audience": 1}, 400),
        ({"document": 999_999}, 400),
        ({"document": "1"}, 400),
        ({"document": 10**30}, 400),
        ({"section": 999_999}, 400),
        ({"owner": "nobody"}, 400),
        ({"owner": "nul\x00"}, 400),
        ({"language": "kl"}, 400),
        ({"valid_until": "tomorrow"}, 400),
        ({"valid_until": "0001-01-01T00:00:00+23:00"}, 400),
        ({"reason": "x" * 301}, 400),
        ({"confidance": 0.5}, 400),
    ],
)
def test_bad_input_is_told_and_changes_nothing(api, change, status):
    make_audience("hidden", groups=["hidden"])
    entry = make_entry("It stays.", state="draft")
    client = api(make_curator())
    before = _statement()

    patched = client.patch(f"{ENTRIES}/{entry.pk}", change, format="json")
    created = client.post(
        ENTRIES, {"text": "A fact.", "audience": "everyone", **change}, format="json"
    )

    assert (patched.status_code, created.status_code) == (status, status)
    assert patched.json()["error"]["message"]
    assert _statement() == before
    assert entry.revisions.count() == 1


@pytest.mark.parametrize("body", ["", "{", "[]", "null", '"text"', "7", "\ufeff{}"])
def test_body_that_is_no_object_is_refused(api, body):
    make_knowledge_base()

    response = api(make_curator()).post(
        ENTRIES, body.encode(), content_type="application/json"
    )

    assert response.status_code == 400
    assert not Entry.objects.exists()


def test_which_knowledge_base_is_asked_where_there_are_several(api):
    make_knowledge_base("cards")
    make_knowledge_base("loans")
    make_audience()

    response = api(make_curator()).post(
        ENTRIES, {"text": "A fact.", "audience": "everyone"}, format="json"
    )

    assert response.status_code == 400
    assert "There are several" in response.json()["error"]["message"]


def test_change_by_a_curator_keeps_the_entry_verified(api):
    entry = make_entry("It costs 5 euros.")
    editor = make_user(Role.CURATOR, username="editor")

    response = api(editor).patch(
        f"{ENTRIES}/{entry.pk}", {"text": "It costs 6 euros."}, format="json"
    )

    shown = response.json()
    assert (response.status_code, response["ETag"]) == (200, '"2"')
    assert (shown["state"], shown["verified_by"]) == ("verified", "editor")


def test_stale_revision_in_the_body_is_a_conflict(api):
    entry = make_entry("First.")
    client = api(make_curator())
    url = f"{ENTRIES}/{entry.pk}"
    client.patch(url, {"text": "Second.", "revision": 1}, format="json")

    response = client.patch(url, {"text": "Third.", "revision": 1}, format="json")

    assert response.status_code == 409
    assert response.json()["error"]["code"] == "revision_conflict"
    assert client.get(url).json()["text"] == "Second."


@pytest.mark.parametrize("header", ['"1"', 'W/"2"', "2", '"x"', '"1", "2"'])
def test_if_match_that_does_not_match_fails_the_precondition(api, header):
    entry = make_entry("First.")
    client = api(make_curator())
    url = f"{ENTRIES}/{entry.pk}"
    client.patch(url, {"text": "Second."}, format="json")

    answers = [
        client.patch(
            url, {"text": "Third."}, format="json", headers={"If-Match": header}
        ),
        client.post(f"{url}/verify", headers={"If-Match": header}),
        client.post(f"{url}/retire", headers={"If-Match": header}),
        client.delete(url, headers={"If-Match": header}),
    ]

    assert [answer.status_code for answer in answers] == [412] * 4
    assert answers[0].json()["error"]["code"] == "precondition_failed"
    assert client.get(url).json()["revision"] == 2


@pytest.mark.parametrize("header", ['"1"', "*"])
def test_if_match_that_matches_lets_the_change_through(api, header):
    entry = make_entry("First.")

    response = api(make_curator()).patch(
        f"{ENTRIES}/{entry.pk}",
        {"text": "Second."},
        format="json",
        headers={"If-Match": header},
    )

    assert response.status_code == 200


def test_verify_retire_and_restore_return_the_entry(api):
    entry = make_entry("A fact.", state="draft")
    client = api(make_curator())
    url = f"{ENTRIES}/{entry.pk}"

    verified = client.post(f"{url}/verify", {"reason": "Read it."}, format="json")
    retired = client.post(f"{url}/retire")
    refused = client.post(f"{url}/verify")
    restored = client.post(f"{url}/restore", {"revision": 3}, format="json")

    assert verified.json()["confidence"] == 1.0
    assert retired.json()["state"] == "retired"
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "entry_retired"
    assert (restored.json()["state"], restored["ETag"]) == ("verified", '"4"')


def test_delete_retires_with_its_reason_and_again_changes_nothing(api):
    entry = make_entry("A fact.")
    client = api(make_curator())
    url = f"{ENTRIES}/{entry.pk}"

    first = client.delete(f"{url}?reason=Out+of+print.")
    second = client.delete(url)

    assert (first.status_code, second.status_code) == (204, 204)
    assert client.get(url).json()["state"] == "retired"
    assert entry.revisions.latest("number").reason == "Out of print."


@pytest.mark.parametrize("role", [None, Role.AGENT, Role.SME])
def test_writing_needs_a_curator(api, role):
    entry = make_entry("A fact.")
    client = api(make_user(role))
    url = f"{ENTRIES}/{entry.pk}"

    answers = [
        client.post(ENTRIES, {"text": "No."}, format="json"),
        client.patch(url, {"text": "No."}, format="json"),
        client.delete(url),
        client.post(f"{url}/verify"),
        client.post(f"{url}/retire"),
        client.post(f"{url}/restore"),
    ]

    assert [answer.status_code for answer in answers] == [403] * 6
    assert entry.revisions.count() == 1


def test_reading_needs_the_role_agent_and_a_sign_in(api):
    assert api(make_user(None)).get(ENTRIES).status_code == 403
    assert api(None).get(ENTRIES).status_code == 401


@pytest.mark.parametrize("key", ["0", "99999999999999999999999999", "abc", "-1"])
def test_unknown_id_is_not_found(api, key):
    client = api(make_curator())

    assert client.get(f"{ENTRIES}/{key}").status_code == 404
    assert client.patch(f"{ENTRIES}/{key}", {}, format="json").status_code == 404
    assert client.post(f"{ENTRIES}/{key}/verify").status_code == 404
