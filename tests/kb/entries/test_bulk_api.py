"""Verifying or retiring many entries by one request."""

from datetime import UTC, datetime

import pytest

from accounts.roles import Role
from accounts.services import set_knowledge_roles
from kb.conflicts.models import Conflict
from kb.entries.bulk import BATCH
from tests.factories import (
    make_audience,
    make_curator,
    make_entries,
    make_entry,
    make_knowledge_base,
    make_user,
)

pytestmark = pytest.mark.django_db

BULK = "/api/v1/entries/bulk"


def sent(client, ids, action="verify", **body):
    given = {"ids": ids, "action": action, **body}
    return client.post(BULK, given, format="json")


def test_many_are_verified_and_each_that_cannot_be_says_why(api):
    draft, retired = make_entry("A.", state="draft"), make_entry("B.", state="retired")
    expired = make_entry(
        "C.", verify=False, valid_until=datetime(2026, 3, 31, 9, tzinfo=UTC)
    )
    board = make_audience("board", groups=["board"])
    hidden = make_entry("Secret.", audience=board, state="draft")
    first, second = make_entries(["It costs 1.", "It costs 2."], verify=False)
    Conflict.objects.create(
        first=first, second=second, first_revision=1, second_revision=1,
        kind=Conflict.Kind.CONTRADICTION, score=0.9, distance=0.1, model="tests",
    )  # fmt: skip
    curator = make_curator()
    ids = [retired.pk, draft.pk, expired.pk, hidden.pk, first.pk, 10**12, draft.pk]

    response = sent(api(curator), ids, reason="Read the tariff.")

    said = response.json()
    assert response.status_code == 200, said
    assert (said["changed"], said["unchanged"], said["failed"]) == (1, 0, 5)
    assert [(each["id"], each["result"], each["code"]) for each in said["entries"]] == [
        (retired.pk, "failed", "entry_retired"),
        (draft.pk, "changed", ""),
        (expired.pk, "failed", "entry_expired"),
        (hidden.pk, "failed", "entry_not_found"),
        (first.pk, "failed", "conflict_open"),
        (10**12, "failed", "entry_not_found"),
    ]
    assert "restore it first" in said["entries"][0]["message"]
    draft.refresh_from_db()
    assert (draft.state, draft.verified_by) == ("verified", curator)
    assert draft.revisions.latest("number").reason == "Read the tariff."


def test_many_are_retired_and_what_was_so_already_stays(api):
    kept, gone = make_entry("A."), make_entry("B.", state="retired")

    said = sent(api(make_curator()), [gone.pk, kept.pk], "retire").json()

    assert [each["result"] for each in said["entries"]] == ["unchanged", "changed"]
    kept.refresh_from_db()
    assert kept.state == "retired"
    assert gone.revisions.count() == 2


@pytest.mark.parametrize("role", [Role.AGENT, Role.SME, None])
def test_who_is_no_curator_changes_nothing(api, role):
    entry = make_entry("A.", state="draft")
    user = make_user(role) if role else make_user(username="nobody")
    if role is None:
        user.groups.clear()

    assert sent(api(user), [entry.pk]).status_code == 403
    entry.refresh_from_db()
    assert entry.state == "draft"


def test_a_curator_of_another_knowledge_base_changes_nothing(api):
    entry = make_entry("A.", state="draft")
    other = make_user()
    set_knowledge_roles(other, {make_knowledge_base("travel").pk: "curator"})

    said = sent(api(other), [entry.pk]).json()

    assert (said["changed"], said["failed"]) == (0, 1)
    assert said["entries"][0]["code"] == "role_elsewhere"
    entry.refresh_from_db()
    assert entry.state == "draft"


@pytest.mark.parametrize(
    "body",
    [
        {"ids": [], "action": "verify"},
        {"ids": [1], "action": "audience"},
        {"ids": [True], "action": "verify"},
        {"ids": [2**63], "action": "verify"},
        {"ids": list(range(1, BATCH + 2)), "action": "verify"},
        {"ids": [1], "action": "verify", "override": "yes"},
    ],
)
def test_what_is_no_such_change_is_refused(api, body):
    response = api(make_curator()).post(BULK, body, format="json")

    assert response.status_code == 400
