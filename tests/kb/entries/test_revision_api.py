"""The history of an entry over REST."""

import pytest

from accounts.roles import Role
from kb.entries.services import edit_entry
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entry,
    make_user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def entry():
    """An entry whose second revision only the people of finance saw."""
    made = make_entry("It costs five euros.", owner=make_user(username="olga"))
    finance = make_audience("finance", groups=["finance"])
    document = make_document("Margins", audience=finance)
    for audience, text, place in (
        (finance, "It costs six euros.", document),
        (make_audience(), "It costs seven euros.", None),
    ):
        edit_entry(
            entry_id=made.pk,
            author=make_curator(),
            may_verify=True,
            text=text,
            audience=audience,
            document=place,
        )
    return made


def address(entry, rest: str = "") -> str:
    return f"/api/v1/entries/{entry.pk}/revisions{rest}"


def test_revisions_say_who_verified_when_and_whose_they_were(api, entry):
    newest, first = api(make_curator()).get(address(entry)).data["results"]

    assert [newest["number"], first["number"]] == [3, 1]
    assert (first["owner"], first["verified_by"]) == ("olga", "curator")
    assert first["verified_at"] is not None
    assert (first["audience"], first["database_user"]) == ("everyone", "")


def test_a_revision_of_others_is_not_in_the_history(api, entry):
    insider = make_user(Role.CURATOR, groups=["finance"])

    others = api(make_curator()).get(address(entry)).data["results"]
    shown = api(insider).get(address(entry)).data["results"][1]

    assert [row["number"] for row in others] == [3, 1]
    assert shown["audience"] == "finance"
    assert shown["document"] is not None


def test_a_curator_restores_a_revision(api, entry):
    client = api(make_curator())

    response = client.post(
        address(entry, "/1/restore"), {"reason": "Right after all."}, format="json"
    )

    assert response.status_code == 200, response.data
    assert (response.data["text"], response.data["revision"]) == (
        "It costs five euros.",
        4,
    )
    assert response["ETag"] == '"4"'
    newest = client.get(address(entry)).data["results"][0]
    assert newest["reason"] == "Right after all."


def test_what_may_not_be_restored_is_refused(api, entry):
    client = api(make_curator())
    hidden = make_entry("Secret.", audience=make_audience("secret", groups=["secret"]))

    statuses = [
        client.post(address(entry, "/9/restore"), {}, format="json").status_code,
        client.post(address(hidden, "/1/restore"), {}, format="json").status_code,
        client.post(address(entry, "/1/restore"), {"revision": 1}, format="json").status_code,
        client.post(address(entry, "/1/restore"), {}, format="json", headers={"If-Match": '"1"'}).status_code,
        api(make_user()).post(address(entry, "/1/restore"), {}, format="json").status_code,
    ]  # fmt: skip

    assert statuses == [404, 404, 409, 412, 403]


def test_revisions_cost_the_same_queries_for_any_number(
    api, entry, django_assert_num_queries
):
    client = api(make_curator())

    with django_assert_num_queries(5):
        client.get(address(entry))
