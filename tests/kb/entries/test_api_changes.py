"""Writing entries over REST: creating, changing, verifying, retiring, preconditions."""

from datetime import UTC, datetime

import pytest

from accounts.roles import Role
from kb.models import Entry
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entry,
    make_knowledge_base,
    make_tag,
    make_user,
)

pytestmark = pytest.mark.django_db

ENTRIES = "/api/v1/entries"


def _statement() -> tuple[object, ...]:
    return tuple(Entry.objects.order_by("pk").values_list("pk", "text", "state"))


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
    assert response["Location"] == f"{ENTRIES}/{shown['id']}"
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


def test_a_validity_that_is_a_day_ends_at_its_end(api):
    make_audience()
    make_knowledge_base()
    client = api(make_curator())
    given = {"text": "A fact.", "audience": "everyone", "valid_until": "2999-03-31"}

    made = client.post(ENTRIES, given, format="json").json()
    none = client.post(ENTRIES, {**given, "valid_until": "2999-02-30"}, format="json")

    assert made["valid_until"].startswith("2999-03-31T23:59:59")
    assert none.status_code == 400


def test_what_has_expired_is_not_verified_from_the_start(api):
    make_audience()
    make_knowledge_base()
    given = {"text": "A fact.", "audience": "everyone", "valid_until": "2001-03-31"}
    client = api(make_curator())

    refused = client.post(ENTRIES, {**given, "verify": True}, format="json")

    assert refused.status_code == 400
    assert "It has passed" in str(refused.json()["error"]["detail"])
    assert client.post(ENTRIES, given, format="json").status_code == 201


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("verified", "POST /api/v1/entries/ID/verify, or `verify` on creation"),
        ("retired", "POST /api/v1/entries/ID/retire"),
        (
            "meh",
            '"meh" is not a valid choice; there are: draft, in_review, needs_review.',
        ),
    ],
)
def test_a_state_that_is_not_written_is_refused_with_what_leads_to_it(api, state, said):
    entry = make_entry("It stays.", state="draft")

    refused = api(make_curator()).patch(
        f"{ENTRIES}/{entry.pk}", {"state": state}, format="json"
    )

    assert refused.status_code == 400
    assert said in refused.json()["error"]["message"]


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
    assert response.json()["error"]["message"] == (
        "knowledge_base: There are several; name the one it belongs to: cards, loans."
    )


@pytest.mark.parametrize("slug", ["card", "c" * 200])
def test_a_wrong_knowledge_base_is_named_with_those_that_there_are(api, slug):
    make_knowledge_base("cards")
    make_knowledge_base("loans")
    make_audience()
    body = {"text": "A fact.", "audience": "everyone", "knowledge_base": slug}

    written = api(make_curator()).post(ENTRIES, body, format="json")

    assert written.status_code == 400
    assert written.json()["error"]["message"] == (
        f"knowledge_base: There is no knowledge base {slug[:80]!a}; "
        "available: cards, loans."
    )


@pytest.mark.parametrize("slug", ["x", "%", "100%s", "%(value)s"])
def test_a_filter_that_names_no_row_says_which_there_are(api, slug):
    make_knowledge_base("cards")
    make_tag("gold")
    client = api(make_curator())

    for name, noun, known in (
        ("knowledge_base", "knowledge base", "cards"),
        ("audience", "audience", "none yet"),
        ("product_line", "tag", "gold"),
    ):
        refused = client.get(ENTRIES, {name: slug})
        assert refused.status_code == 400
        assert refused.json()["error"]["message"] == (
            f"{name}: There is no {noun} {slug!r}; available: {known}."
        )


def test_a_wrong_audience_is_named_with_those_of_the_caller(api):
    make_knowledge_base()
    make_audience()
    make_audience("theirs", groups=["others"])
    client = api(make_curator())

    refused = [
        client.post(ENTRIES, {"text": "A fact.", "audience": slug}, format="json")
        for slug in ("theirs", "absent")
    ]
    refused += [
        client.get(ENTRIES, {"audience": slug}) for slug in ("theirs", "absent")
    ]

    assert [each.json()["error"]["message"] for each in refused] == [
        f"audience: There is no audience {slug!r}; available: everyone."
        for slug in ("theirs", "absent") * 2
    ]


def test_no_more_than_twenty_choices_are_named_and_no_users(api):
    for number in range(21):
        make_knowledge_base(f"base-{number:02}")
    make_audience()
    body = {"text": "A fact.", "audience": "everyone", "owner": "bob"}

    refused = api(make_curator()).post(
        ENTRIES, {**body, "knowledge_base": "x"}, format="json"
    )

    detail = refused.json()["error"]["detail"]
    assert detail["knowledge_base"][0].endswith("base-18, base-19 and others.")
    assert detail["owner"] == ["There is no active user 'bob'."]


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


def test_a_tag_that_a_proxy_made_weak_names_the_same_revision(api):
    entry = make_entry("First.")

    response = api(make_curator()).patch(
        f"{ENTRIES}/{entry.pk}",
        {"text": "Second."},
        format="json",
        headers={"If-Match": 'W/"1"'},
    )

    assert (response.status_code, response["ETag"]) == (200, '"2"')


@pytest.mark.parametrize("header", ['"1"', '"x"', '"1", "2"', ""])
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


def test_what_has_expired_is_not_verified(api):
    past = datetime(2026, 3, 31, 9, tzinfo=UTC)
    entry = make_entry("A fact.", state="in_review", valid_until=past)

    refused = api(make_curator()).post(f"{ENTRIES}/{entry.pk}/verify")

    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "entry_expired"
    entry.refresh_from_db()
    assert entry.state == "in_review"


def test_delete_retires_with_its_reason_and_again_changes_nothing(api):
    entry = make_entry("A fact.")
    client = api(make_curator())
    url = f"{ENTRIES}/{entry.pk}"

    first = client.delete(f"{url}?reason=Out+of+print.")
    second = client.delete(url)
    too_long = client.delete(f"{url}?reason={'x' * 301}")

    assert (first.status_code, second.status_code) == (204, 204)
    assert list(too_long.json()["error"]["detail"]) == ["reason"]
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
