"""Exports over REST, in the admin and on the command line."""

import csv
import io
import time
import uuid
import zipfile
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.roles import Role
from accounts.services import set_knowledge_roles
from jobs.models import Job
from jobs.run import run_job
from kb.archive.exports import COLUMNS, KIND, export_in_background, prune_exports
from kb.documents.services import edit_document
from kb.entries.services import edit_entry
from kb.entries.states import retire_entry
from kb.entries.wordings import add_wordings
from kb.models import Entry
from kb.text.cleaning import original
from nescio.embedded.places import Places
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entries,
    make_entry,
    make_knowledge_base,
    make_user,
)
from tests.kb.archive.knowledge import exported, wipe

pytestmark = pytest.mark.django_db

EXPORTS = "/api/v1/exports"
TABLE = "/api/v1/entries.csv"


@pytest.fixture(autouse=True)
def places(settings, tmp_path):
    settings.PLACES = Places(tmp_path)
    return settings.PLACES


@pytest.fixture
def make_it():
    """Return what a worker does with the export that was asked for last."""

    def work() -> Job:
        job = Job.objects.filter(kind=KIND).latest("created_at")
        run_job(job.pk, {KIND: export_in_background})
        job.refresh_from_db()
        return job

    return work


def rows_of(response) -> list[dict[str, str]]:
    content = b"".join(response.streaming_content).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(content, newline="")))


def files_of(response) -> dict[str, str]:
    content = io.BytesIO(b"".join(response.streaming_content))
    with zipfile.ZipFile(content) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_a_curator_asks_for_an_export_and_fetches_it(api, make_it):
    make_entry("Cards cost 12 euros.")
    make_entry("Secret.", audience=make_audience("secret", groups=["secret"]))
    client = api(make_curator())

    asked = client.post(EXPORTS, {"knowledge_base": "cards"}, format="json")
    early = client.get(f"{EXPORTS}/{asked.data['id']}/file")
    job = make_it()
    file = client.get(f"{EXPORTS}/{job.pk}/file")

    assert (asked.status_code, asked.data["kind"]) == (202, KIND)
    assert early.status_code == 409
    assert job.state == "succeeded", job.error
    assert [each["id"] for each in client.get(EXPORTS).data["results"]] == [str(job.pk)]
    said = "".join(files_of(file).values())
    assert "Cards cost" in said
    assert "Secret" not in said
    assert job.result["audience_slugs"] == ["everyone"]
    assert file["Content-Type"] == "application/zip"


def test_an_admin_exports_everything_and_a_curator_may_not(api, make_it):
    make_entry("Secret.", audience=make_audience("secret", groups=["secret"]))
    admin = api(make_user(Role.ADMIN))

    refused = api(make_curator()).post(EXPORTS, {"complete": True}, format="json")
    admin.post(EXPORTS, {"complete": True}, format="json")
    job = make_it()

    assert refused.status_code == 403
    assert "Secret" in "".join(files_of(admin.get(f"{EXPORTS}/{job.pk}/file")).values())


def test_nobody_fetches_anothers_export(api, make_it):
    make_entry()
    api(make_curator()).post(EXPORTS, {}, format="json")
    job = make_it()
    other = api(make_user(Role.ADMIN))

    unknown = other.get(f"{EXPORTS}/{uuid.uuid4()}/file")
    anothers = other.get(f"{EXPORTS}/{job.pk}/file")

    assert (unknown.status_code, anothers.status_code) == (404, 404)
    assert other.get(EXPORTS).data["results"] == []


def test_who_left_an_audience_no_longer_fetches_what_was_made_for_it(api, make_it):
    make_entry("Secret.", audience=make_audience("secret", groups=["secret"]))
    user = make_user(Role.CURATOR, groups=["secret"])
    api(user).post(EXPORTS, {}, format="json")
    job = make_it()
    user.groups.remove(user.groups.get(name="secret"))

    response = api(user).get(f"{EXPORTS}/{job.pk}/file")

    assert response.status_code == 403
    assert "no longer" in response.json()["error"]["message"]


def test_who_lost_the_role_gets_nothing_made(api, make_it):
    user = make_user(Role.CURATOR)
    api(user).post(EXPORTS, {}, format="json")
    user.groups.clear()

    with pytest.raises(Exception, match="no longer"):
        make_it()

    assert Job.objects.get(kind=KIND).state == "failed"


def test_a_curator_of_one_knowledge_base_exports_that_one(api, make_it):
    make_entry("Cards cost 12 euros.")
    travel = make_knowledge_base("travel")
    make_entry("Lounges cost 30 euros.", knowledge_base=travel)
    user = make_user(role=None)
    set_knowledge_roles(user, {travel.pk: "curator"})
    client = api(user)

    refused = client.post(EXPORTS, {"knowledge_base": "cards"}, format="json")
    client.post(EXPORTS, {}, format="json")
    job = make_it()
    said = "".join(files_of(client.get(f"{EXPORTS}/{job.pk}/file")).values())
    table = [row["text"] for row in rows_of(client.get(TABLE))]
    then = {"as_of": timezone.now().isoformat()}
    earlier = [row["text"] for row in rows_of(client.get(TABLE, then))]
    set_knowledge_roles(user, {make_knowledge_base().pk: "curator"})
    late = client.get(f"{EXPORTS}/{job.pk}/file")

    assert refused.status_code == 400
    assert "that you curate; you curate: travel." in refused.json()["error"]["message"]
    assert "Lounges cost" in said
    assert "Cards cost" not in said
    assert table == earlier == ["Lounges cost 30 euros."]
    assert late.status_code == 403


def test_the_admin_downloads_what_one_curates_of_what_one_may_read(client):
    travel = make_knowledge_base("travel")
    fares = make_entry("Lounges cost 30 euros.", knowledge_base=travel)
    fees = make_entry("Cards cost 12 euros.")
    user = make_user(Role.SME)
    user.is_staff = True
    user.save()
    set_knowledge_roles(user, {travel.pk: "curator"})
    client.force_login(user)

    table = client.post(
        "/admin/kb/entry/",
        {"action": "download_table", "_selected_action": [fares.pk, fees.pk]},
    )

    assert [row["id"] for row in rows_of(table)] == [str(fares.pk)]


def test_agents_export_nothing(api):
    client = api(make_user(Role.AGENT))

    assert client.post(EXPORTS, {}, format="json").status_code == 403
    assert client.get(TABLE).status_code == 403


def test_old_archives_are_deleted(api, make_it, places):
    make_entry()
    client = api(make_curator())
    client.post(EXPORTS, {}, format="json")
    job = make_it()

    too_soon = prune_exports(timedelta(days=1))
    time.sleep(0.02)
    deleted = prune_exports(timedelta(0))

    assert (too_soon, deleted) == (0, 1)
    assert client.get(f"{EXPORTS}/{job.pk}/file").status_code == 404


def test_a_table_holds_what_the_caller_may_see_with_formulas_as_text(api):
    entry = make_entry("=1+1 is two.", question="@what?", owner=make_curator())
    hidden = make_audience("secret", groups=["secret"])
    make_entry("Secret.", audience=hidden)
    make_entry("In a hidden document.", document=make_document("Merger", audience=hidden),
               audience=make_audience())  # fmt: skip

    response = api(make_curator()).get(TABLE)
    rows = rows_of(response)

    assert response["Content-Type"].startswith("text/csv")
    assert [row["id"] for row in rows] == [str(entry.pk), str(entry.pk + 2)]
    assert tuple(rows[0]) == COLUMNS
    assert (rows[0]["text"], rows[0]["question"]) == ("'=1+1 is two.", "'@what?")
    assert original(rows[0]["text"]) == entry.text
    assert (rows[0]["verified_by"], rows[0]["revision"]) == ("curator", "1")
    assert (rows[1]["document"], rows[1]["source"], rows[1]["section"]) == ("", "", "")


def test_a_table_is_narrowed_as_a_list_is(api):
    make_entry("Cards cost 12 euros.")
    make_entry("Cash costs 3 percent.", state="draft")
    client = api(make_curator())

    assert len(rows_of(client.get(TABLE, {"state": "draft"}))) == 1
    assert client.get(TABLE, {"state": "unknown"}).status_code == 400


def test_a_table_says_how_else_a_question_is_asked(api):
    curator = make_curator()
    entry = make_entry("12 euros.", question="How much?")
    add_wordings(entry, ["what does\nit cost", "the price"], by=curator)

    (row,) = rows_of(api(curator).get(TABLE))

    assert row["also_asked"] == "what does it cost\nthe price"


@pytest.mark.parametrize("count", [1, 40])
def test_a_table_costs_the_same_queries_for_any_number_of_entries(
    api, count, django_assert_num_queries
):
    make_entries([f"Fact {number}." for number in range(count)])
    client = api(make_curator())

    with django_assert_num_queries(5):
        rows = rows_of(client.get(TABLE))

    assert len(rows) == count


def test_the_admin_downloads_chosen_entries_and_exports(curator, make_it):
    entry = make_entry("Cards cost 12 euros.")
    make_entry("Another.")

    table = curator.post(
        "/admin/kb/entry/",
        {"action": "download_table", "_selected_action": [entry.pk]},
    )
    page = curator.get("/admin/kb/entry/exports/").content.decode()
    curator.post("/admin/kb/entry/exports/", {"knowledge_base": ""})
    job = make_it()
    after = curator.get("/admin/kb/entry/exports/").content.decode()

    assert [row["id"] for row in rows_of(table)] == [str(entry.pk)]
    assert 'name="complete"' not in page
    address = f"/admin/kb/entry/exports/{job.pk}/file"
    assert address in after
    assert "Another" in files_of(curator.get(address))["entries.jsonl"]
    assert (
        curator.get(f"/admin/kb/entry/exports/{uuid.uuid4()}/file").status_code == 404
    )


def test_the_commands_export_and_restore(tmp_path):
    make_entry("Cards cost 12 euros.")
    path = tmp_path / "cards.zip"
    out = io.StringIO()

    call_command("export_knowledge", path, "--knowledge-base", "cards", stdout=out)
    first = path.read_bytes()
    wipe()
    call_command("restore_knowledge", path, "--create-users", "--dry-run", stdout=out)
    assert not Entry.objects.exists()
    call_command("restore_knowledge", path, "--create-users", stdout=out)

    assert exported(tmp_path / "again.zip", knowledge_base="cards") == first
    said = out.getvalue()
    assert "holds 1 entries with 1 revisions of cards" in said
    assert "Would restore" in said
    assert "New users: curator." in said
    assert "embedding entries: 1 of 1" in said


def test_the_commands_say_what_is_wrong(tmp_path):
    with pytest.raises(CommandError, match="no knowledge base 'nowhere'"):
        call_command(
            "export_knowledge", tmp_path / "a.zip", "--knowledge-base", "nowhere"
        )
    with pytest.raises(CommandError, match="No such file"):
        call_command("restore_knowledge", tmp_path / "missing.zip")
    with pytest.raises(CommandError, match="THERE=HERE"):
        call_command("restore_knowledge", tmp_path / "a.zip", "--user", "olga")
    with pytest.raises(CommandError, match="No such file"):
        call_command("export_knowledge", tmp_path / "no" / "a.zip")


def test_exporting_takes_one_query_more_for_a_thousand_rows(
    tmp_path, django_assert_max_num_queries
):
    make_knowledge_base()
    make_entries([f"Fact {number} of {timezone.now()}." for number in range(60)])

    with django_assert_max_num_queries(32):
        exported(tmp_path / "a.zip")


def test_the_table_as_of_a_moment_says_what_entries_were(api):
    document = make_document("Prices")
    edited = make_entry("Cards cost 12 euros.", document=document)
    gone, moved = make_entries(("Retired since.", "Moved since."))
    was_secret = make_entry(
        "Opened since.", audience=make_audience("secret", groups=["secret"])
    )
    at, author = timezone.now(), make_curator()
    edit_document(document_id=document.pk, title="Prices of 2027")
    for entry, changes in (
        (edited, {"text": "Cards cost 15 euros."}),
        (moved, {"audience": make_audience("secret")}),
        (was_secret, {"audience": make_audience()}),
    ):
        edit_entry(entry_id=entry.pk, author=author, may_verify=True, **changes)
    retire_entry(entry_id=gone.pk, by=author)
    make_entry("Written since.")
    client = api(author)

    then = rows_of(client.get(TABLE, {"as_of": at.isoformat()}))
    empty = rows_of(client.get(TABLE, {"as_of": "2001-01-01T00:00:00Z"}))

    assert [(row["text"], row["state"], row["revision"]) for row in then] == [
        ("Cards cost 12 euros.", "verified", "1"),
        ("Retired since.", "verified", "1"),
    ]
    assert (then[0]["document"], then[0]["audience"]) == ("Prices", "everyone")
    assert empty == []


def test_what_was_not_changed_is_in_both_tables_alike(api):
    make_entries(("First.", "Second."))
    client = api(make_curator())
    named = {"knowledge_base": "cards"}

    now = rows_of(client.get(TABLE, named))
    then = rows_of(client.get(TABLE, named | {"as_of": timezone.now().isoformat()}))

    kept = [{**row, "updated_at": ""} for row in now]
    assert [{**row, "updated_at": ""} for row in then] == kept
    assert len(kept) == 2


@pytest.mark.parametrize(
    "query",
    [
        {"as_of": "2999-01-01T00:00:00Z"},
        {"as_of": "yesterday"},
        {"as_of": ""},
        {"as_of": "2026-01-01T00:00:00Z", "state": "verified"},
        {"as_of": "2026-01-01T00:00:00Z", "knowledge_base": "none"},
    ],
)
def test_a_table_as_of_what_is_no_moment_is_refused(api, query):
    make_knowledge_base()

    assert api(make_curator()).get(TABLE, query).status_code == 400
