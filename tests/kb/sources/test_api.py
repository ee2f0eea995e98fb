"""Followed sources over REST and in the admin: made, checked, changed, for whom."""

import pytest
from django.urls import reverse

from accounts.roles import Role
from jobs.models import Job
from kb.models import FollowedSource
from kb.sources.services import KIND
from tests.factories import make_audience, make_curator, make_knowledge_base, make_user
from tests.kb.sources.following import CARDS, check, follow

pytestmark = pytest.mark.django_db
SOURCES = "/api/v1/sources"


@pytest.fixture
def folder(directory):
    (directory / "cards.md").write_text(CARDS)
    make_knowledge_base()
    make_audience()
    return directory


def test_a_source_is_followed_and_checked_over_rest(api, folder):
    client = api(make_curator())
    said = {
        "name": "Help",
        "kind": "folder",
        "address": str(folder),
        "rules": [{"group": "", "audience": "everyone"}],
    }

    made = client.post(SOURCES, said, format="json")

    assert made.status_code == 201, made.json()
    assert made.json()["rules"] == said["rules"]
    begun = client.post(f"{SOURCES}/{made.json()['id']}/check", {}, format="json")
    assert begun.status_code == 202
    assert Job.objects.get(kind=KIND).pk.hex == begun.json()["job"].replace("-", "")


def test_a_source_is_changed_and_unfollowed_over_rest(api, folder):
    client = api(make_curator())
    source = follow("folder", folder, name="Help")
    address = f"{SOURCES}/{source.pk}"

    changed = client.patch(
        address, {"every_hours": 6, "is_active": False}, format="json"
    )

    assert changed.status_code == 200, changed.json()
    shown = changed.json()
    assert (shown["every_hours"], shown["is_active"]) == (6, False)
    assert (shown["name"], shown["address"]) == ("Help", str(folder))
    assert shown["rules"] == [{"group": "", "audience": "everyone"}]
    rules = [{"group": "prices", "audience": "everyone"}]
    shown = client.patch(address, {"rules": rules}, format="json").json()
    assert (shown["rules"], shown["every_hours"]) == (rules, 6)
    for wrong, named in (
        ({"kind": "git"}, "kind"),
        ({"address": "/etc"}, "NESCIO_SOURCE_DIRECTORIES"),
        ({"rules": []}, "rules"),
        ({"every_hours": 0}, "every_hours"),
    ):
        refused = client.patch(address, wrong, format="json")
        assert refused.status_code == 400
        assert named in refused.content.decode()
    assert client.delete(address).status_code == 204
    assert client.get(address).status_code == 404
    assert client.delete(address).status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("group", ["*", " * ", "/", "help/*"])
def test_an_asterisk_in_a_rule_is_everything_over_rest_too(api, directory, group):
    make_knowledge_base()
    make_audience()
    (directory / "help").mkdir()
    (directory / "help" / "cards.md").write_text(CARDS)
    said = {
        "name": "Help",
        "kind": "folder",
        "address": str(directory),
        "rules": [{"group": group, "audience": "everyone"}],
    }

    made = api(make_curator()).post(SOURCES, said, format="json")

    counts = check(FollowedSource.objects.get(pk=made.json()["id"]))
    assert counts["new"] == 1
    assert "unnamed" not in counts


def test_what_may_not_be_followed_by_now_can_still_be_switched_off(
    api, folder, settings
):
    source = follow("folder", folder, name="Help")
    settings.SOURCE_DIRECTORIES = []
    client = api(make_curator())

    off = client.patch(f"{SOURCES}/{source.pk}", {"is_active": False}, format="json")

    assert off.status_code == 200, off.json()
    moved = {"address": f"{folder}/other"}
    assert (
        client.patch(f"{SOURCES}/{source.pk}", moved, format="json").status_code == 400
    )


def test_a_wrong_address_is_refused_with_the_remedy(api, folder):
    said = {
        "name": "Help",
        "kind": "folder",
        "address": "/etc",
        "rules": [{"audience": "everyone"}],
    }

    refused = api(make_curator()).post(SOURCES, said, format="json")

    assert refused.status_code == 400
    assert "NESCIO_SOURCE_DIRECTORIES" in refused.json()["error"]["message"]


def test_a_list_of_sources_takes_the_same_queries_however_many_there_are(
    api, folder, django_assert_num_queries
):
    client = api(make_curator())
    for number in range(3):
        follow("folder", folder, name=f"Help {number}")

    with django_assert_num_queries(6):
        assert len(client.get(SOURCES).json()["results"]) == 3


@pytest.mark.parametrize("role", [Role.AGENT, Role.SME])
def test_sources_are_for_curators(api, folder, role):
    assert api(make_user(role)).get(SOURCES).status_code == 403


def test_a_source_of_others_is_not_there(api, folder):
    make_audience("staff", groups=["staff"])
    insider = make_user(Role.CURATOR, groups=["staff"])
    source = follow("folder", folder, by=insider, rules={"": "staff"})
    client = api(make_curator())

    assert client.get(SOURCES).json()["results"] == []
    assert (
        client.post(f"{SOURCES}/{source.pk}/check", {}, format="json").status_code
        == 404
    )
    assert client.patch(f"{SOURCES}/{source.pk}", {}, format="json").status_code == 404
    assert client.delete(f"{SOURCES}/{source.pk}").status_code == 404
    assert api(insider).get(f"{SOURCES}/{source.pk}").status_code == 200


@pytest.mark.slow
def test_a_source_says_which_documents_failed_and_why_to_who_may_see_them(api, folder):
    (folder / "broken.pdf").write_bytes(b"no pdf")
    make_audience("staff", groups=["staff"])
    source = follow("folder", folder)
    check(source)
    client = api(make_curator())

    shown = client.get(f"{SOURCES}/{source.pk}").json()

    assert shown["counts"]["failed"] == 1
    (failed,) = shown["left_out"]
    assert (failed["key"], failed["document"]) == ("broken.pdf", None)
    assert "PDF" in failed["error"]
    source.documents.update(audience=make_audience("staff", groups=["staff"]))
    assert client.get(f"{SOURCES}/{source.pk}").json()["left_out"] == []
    insider = api(make_user(Role.CURATOR, groups=["staff"]))
    assert insider.get(f"{SOURCES}/{source.pk}").json()["left_out"] == [failed]


def form(folder, **said: object) -> dict[str, object]:
    return {
        "name": "Help",
        "kind": "folder",
        "address": str(folder),
        "knowledge_base": make_knowledge_base().pk,
        "audience": make_audience().pk,
        "rules": "",
        "every_hours": 24,
        "credential": "",
        "is_active": "on",
        **said,
    }


def test_a_mapping_is_given_by_lines_and_shown_again(curator, folder):
    make_audience("staff", groups=["staff"])
    curator.user.groups.add(*make_audience("staff").groups.all())
    lines = "prices = staff\r\n\r\n* = everyone"

    address = reverse("admin:kb_followedsource_add")
    curator.post(address, form(folder, audience="", rules=lines))

    source = FollowedSource.objects.get()
    assert list(source.rules.values_list("group", "audience__slug")) == [
        ("prices", "staff"),
        ("", "everyone"),
    ]
    page = reverse("admin:kb_followedsource_change", args=[source.pk])
    assert "prices = staff\n* = everyone" in curator.get(page).content.decode()
    curator.post(page, form(folder, name="Prices", every_hours=1))
    source.refresh_from_db()
    assert (source.name, source.every_hours) == ("Prices", 1)
    assert list(source.rules.values_list("group", flat=True)) == [""]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"audience": ""}, "Choose who may see it"),
        ({"rules": "* = everyone"}, "Choose who may see it"),
        ({"audience": "", "rules": "prices"}, "Line 1, &#x27;prices&#x27;"),
        ({"audience": "", "rules": "prices = staff"}, "with one of your audiences"),
        ({"credential": "HOME"}, "never the credential itself"),
        ({"kind": "ftp"}, "Select a valid choice"),
    ],
)
def test_a_wrong_form_says_what_is_wrong(curator, folder, changed, said):
    make_audience("staff", groups=["staff"])
    address = reverse("admin:kb_followedsource_add")

    page = curator.post(address, form(folder, **changed)).content.decode()

    assert said in page
    assert not FollowedSource.objects.exists()


@pytest.mark.slow
def test_the_page_says_what_was_left_undone_and_offers_to_propose_it(curator, folder):
    (folder / "broken.pdf").write_bytes(b"no pdf")
    source = follow("folder", folder)
    check(source)
    (folder / "cards.md").unlink()
    check(source)
    page = reverse("admin:kb_followedsource_change", args=[source.pk])

    shown = curator.get(page).content.decode()

    assert "Only 0 of 1 documents are still there" in shown
    assert "broken.pdf</span>" in shown or "broken.pdf:" in shown
    accept = reverse("admin:kb_followedsource_accept_this", args=[source.pk])
    assert accept in shown
    curator.post(accept)
    assert Job.objects.latest("created_at").parameters["accept_loss"] is True


def test_a_source_is_unfollowed_and_its_entries_stay(curator, folder):
    source = follow("folder", folder)
    address = reverse("admin:kb_followedsource_delete", args=[source.pk])

    curator.post(address, {"post": "yes"})

    assert not FollowedSource.objects.exists()
