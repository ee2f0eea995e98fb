"""Imports by REST, in the admin, from the command line and as a job."""

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse

from accounts.acting import acting_for
from accounts.exceptions import ConflictError
from accounts.roles import Role
from jobs.models import Job
from jobs.run import run_job
from kb.entries.services import edit_entry
from kb.imports.readers import ImportFileError
from kb.imports.services import delete_import
from kb.models import Document, Entry, Import, PlannedEntry
from tests.clients import page_client, rest_client
from tests.factories import make_audience, make_curator, make_knowledge_base, make_user
from workers.registry import HANDLERS
from workers.tasks import prune

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

ROWS = "id,text\n1,A card costs 12 euros.\n2,A card lasts four years.\n3,\n"


@pytest.fixture(autouse=True)
def _no_notification(import_directory, monkeypatch):
    monkeypatch.setattr("jobs.services.notify_worker", lambda *_: True)


def post(user, content: bytes = ROWS.encode(), name: str = "cards.csv", **fields):
    make_knowledge_base()
    fields.setdefault("audience", make_audience().slug)
    return rest_client(user).post(
        "/api/v1/imports",
        {"file": SimpleUploadedFile(name, content), **fields},
        format="multipart",
    )


def work() -> Job:
    job = Job.objects.order_by("-created_at")[0]
    run_job(job.pk, HANDLERS)
    job.refresh_from_db()
    return job


def work_all() -> None:
    for job in Job.objects.unfinished().order_by("created_at"):
        run_job(job.pk, HANDLERS)


def test_a_misspelt_field_imports_nothing():
    refused = post(make_curator(), dryrun="true")

    assert refused.status_code == 400
    assert "dryrun" in refused.json()["error"]["message"]
    assert not Job.objects.exists()


@pytest.mark.parametrize("slug", ["card", "ca\0rds"])
def test_a_wrong_knowledge_base_is_named_with_those_that_there_are(slug):
    refused = post(make_curator(), knowledge_base=slug)

    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == (
        f"knowledge_base: There is no knowledge base {slug!a}; available: cards."
    )
    assert not Import.objects.exists()


def test_a_file_is_planned_then_applied_over_rest():
    curator = make_curator()

    answer = post(curator, dry_run="true", title="Price list", verify="true")
    assert answer.status_code == 202, answer.content
    body = answer.json()
    assert (body["state"], body["format"]) == ("uploaded", "csv")
    assert work().result["created"] == 2
    address = f"/api/v1/imports/{body['id']}"
    planned = rest_client(curator).get(address).json()
    assert (planned["state"], planned["counts"]["created"]) == ("planned", 2)
    assert planned["bad_rows"] == [
        {"place": "line 4", "reason": "text is empty; write something."}
    ]
    assert not Entry.objects.exists()
    would_be = rest_client(curator).get(f"{address}/entries").json()["results"]
    assert [(each["action"], each["place"], each["text"]) for each in would_be] == [
        ("created", "line 2", "A card costs 12 euros."),
        ("created", "line 3", "A card lasts four years."),
    ]

    assert rest_client(curator).post(f"{address}/apply").status_code == 202
    job = work()

    assert (job.state, job.done, job.total) == ("succeeded", 3, 3)
    assert rest_client(curator).get(address).json()["state"] == "applied"
    entry = Entry.objects.get(place="line 2")
    assert (entry.state, entry.document and entry.document.title) == (
        "verified", "Price list",
    )  # fmt: skip


def test_a_file_that_is_not_read_is_refused_at_once():
    answer = post(make_curator(), b"\x00\x01", "cards.exe")

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "import_file"
    assert not Import.objects.exists()
    assert not Job.objects.exists()


def test_an_upload_that_is_too_large_is_refused_unread(settings):
    settings.IMPORT_MAX_MIB = 0

    answer = post(make_curator(), b"x" * 2_000_000)

    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "too_large"


def test_imports_are_for_curators_and_each_sees_their_own():
    curator = make_curator()
    other = make_user(Role.CURATOR)
    secret = make_audience("secret", groups=["secret"])

    created = post(curator).json()["id"]

    assert post(make_user(Role.SME)).status_code == 403
    hidden = post(curator, audience=secret.slug)
    absent = post(curator, audience="absent")
    assert hidden.status_code == absent.status_code == 400
    assert hidden.content.replace(b"secret", b"absent") == absent.content
    for way, method in (("", "get"), ("/apply", "post"), ("/entries", "get")):
        address = f"/api/v1/imports/{created}{way}"
        assert getattr(rest_client(other), method)(address).status_code == 404
    assert rest_client(other).get("/api/v1/imports").json()["results"] == []
    assert len(rest_client(curator).get("/api/v1/imports").json()["results"]) == 1


def test_the_list_takes_few_queries(django_assert_num_queries):
    curator = make_curator()
    for number in range(3):
        post(curator, name=f"cards{number}.csv")
    client = rest_client(curator)
    client.get("/api/v1/imports")

    # A token's lookup brings its user's rights; here they are read twice.
    with django_assert_num_queries(3):
        assert len(client.get("/api/v1/imports").json()["results"]) == 3


@pytest.mark.parametrize("look", range(1, 5))
def test_a_page_whose_job_ends_while_it_is_made_shows_the_end_or_is_shown_again(look):
    curator = make_curator()
    curator.is_staff = True
    curator.save()
    client = page_client(curator)
    post(curator)
    page = reverse("admin:kb_import_change", args=[Import.objects.get().pk])
    looks: list[str] = []

    def end_after_that_look(execute, sql, *rest):
        found = execute(sql, *rest)
        if 'FROM "kb_import"' in sql and len(looks) < look:
            looks.append(sql)
            if len(looks) == look:
                work()
        return found

    with connection.execute_wrapper(end_after_that_look):
        shown = client.get(page)

    assert len(looks) == look
    assert "Refresh" in shown or "line 4: text is empty" in shown.text


def test_the_admin_shows_the_plan_before_anything_is_applied():
    curator = make_curator()
    curator.is_staff = True
    curator.save()
    client = page_client(curator)
    form = {
        "file": SimpleUploadedFile("cards.csv", ROWS.encode()),
        "knowledge_base": make_knowledge_base().pk,
        "audience": make_audience().pk,
    }

    response = client.post("/admin/kb/import/upload/", form)
    page = response["Location"]
    assert client.get(page)["Refresh"] == "3"
    work()
    shown = client.get(page)

    assert "Refresh" not in shown
    assert "Nothing is written yet" in shown.text
    assert "A card costs 12 euros." in shown.text
    assert "line 4: text is empty" in shown.text
    assert not Entry.objects.exists()
    row = Import.objects.get()
    apply = reverse("admin:kb_import_apply", args=[row.pk])
    assert client.get(apply).status_code == 200
    assert client.post(apply, follow=True).status_code == 200
    work()
    assert Entry.objects.count() == 2
    document = Document.objects.get()
    assert f'href="{reverse("document", args=[document.pk])}"' in client.get(page).text
    assert client.get("/admin/kb/import/").status_code == 200


def test_all_that_a_plan_would_do_is_listed_before_it_is_applied():
    curator = make_curator()
    curator.is_staff = True
    curator.save()
    texts = [f"Card number {n} costs {n} euros." for n in range(60)]
    rows = [f"{n},{text}" for n, text in enumerate(texts)]
    post(curator, "\n".join(["id,text", "0,It is blue.", "x,It is old."]).encode())
    work()
    post(curator, "\n".join(["id,text", *rows]).encode(), dry_run="true")
    work()
    row = Import.objects.latest("pk")
    page, client = f"/admin/kb/import/{row.pk}/change/", page_client(curator)

    shown = client.get(page).text + client.get(f"{page}?planned-page=2").text
    first = rest_client(curator).get(f"/api/v1/imports/{row.pk}/entries").json()
    second = rest_client(curator).get(first["next"]).json()

    assert row.planned.count() == 61
    assert not [text for text in texts if shown.count(text) != 1]
    assert [
        (each.action, each.text, each.before)
        for each in row.planned.exclude(action="created")
    ] == [("changed", texts[0], "It is blue."), ("retired", "It is old.", "")]
    assert shown.count("It is blue.") == shown.count("It is old.") == 1
    assert [each["text"] for each in (*first["results"], *second["results"])] == [
        *texts, "It is old.",
    ]  # fmt: skip
    assert (
        client.post(reverse("admin:kb_import_apply", args=[row.pk])).status_code == 302
    )
    work()
    assert not row.planned.exists()
    assert "what it would do" not in client.get(page).text.lower()


TWO = "id,text\n1,The line opens at eight.\n2,The branch closes at four.\n"


def planned_again(curator, content: str) -> int:
    post(curator, content.encode(), dry_run="true")
    work()
    return Import.objects.latest("pk").pk


def test_a_plan_shows_nothing_of_entries_that_its_importer_lost():
    curator = make_curator()
    curator.is_staff = True
    curator.save()
    group = Group.objects.create(name="fraud")
    curator.groups.add(group)
    post(curator, TWO.encode())
    work()
    for entry in Entry.objects.all():
        secret = make_audience("fraud", groups=["fraud"])
        said = f"SECRET {entry.pk}"
        edit_entry(
            entry_id=entry.pk, author=curator, may_verify=False, audience=secret,
            text=said,
        )  # fmt: skip
    plan = planned_again(curator, "id,text\n1,The line opens at nine.\n3,It is new.\n")
    client = rest_client(curator)
    addresses = [f"/api/v1/imports/{plan}{tail}" for tail in ("/entries", "")]
    addresses += ["/api/v1/imports"]
    page = f"/admin/kb/import/{plan}/change/"

    before = [client.get(each).text for each in addresses]
    before += [page_client(curator).get(page).text]
    curator.groups.remove(group)
    after = [client.get(each).text for each in addresses]
    after += [page_client(curator).get(page).text]

    assert [text.count("SECRET") for text in before] == [2, 2, 2, 2]
    assert [text.count("SECRET") for text in after] == [0, 0, 0, 0]
    assert all("It is new." in text for text in after)
    examples = client.get(addresses[1]).json()["examples"]
    assert examples["retired"] == []
    assert [sorted(each) for each in examples["changed"]] == [["place", "text"]]
    with acting_for(curator):
        assert [each.text for each in PlannedEntry.objects.all()] == ["It is new."]
        delete_import(Import.objects.get(pk=plan))
    assert not PlannedEntry.objects.exists()


def test_a_plan_says_what_people_edited_and_what_becomes_of_it():
    curator = make_curator()
    curator.is_staff = True
    curator.save()
    post(curator, TWO.encode())
    work()
    for entry in Entry.objects.all():
        said = f"{entry.text} Ask Carla."
        edit_entry(entry_id=entry.pk, author=curator, may_verify=False, text=said)
    plan = planned_again(curator, TWO.replace("eight", "nine"))
    address = f"/api/v1/imports/{plan}"
    client = rest_client(curator)

    row = client.get(address).json()
    (changed,) = client.get(f"{address}/entries").json()["results"]
    page = page_client(curator).get(f"/admin/kb/import/{plan}/change/").text
    client.post(f"{address}/apply")
    work()
    again = client.get(f"/api/v1/imports/{planned_again(curator, TWO)}").json()

    assert row["notes"] == client.get(address).json()["notes"]
    assert [note.partition(".")[0] for note in row["notes"]] == [
        "Changed, although edited by people: 1",
        "Unchanged and edited by people: 1",
    ]
    assert (changed["before"], changed["is_edited"]) == (
        "The line opens at eight. Ask Carla.", True,
    )  # fmt: skip
    assert "before, edited by a person:" in page
    assert {*Entry.objects.values_list("text", flat=True)} == {
        "The line opens at nine.", "The branch closes at four. Ask Carla.",
    }  # fmt: skip
    assert [note.partition(".")[0] for note in again["notes"]] == [
        "Unchanged and edited by people: 1"
    ]


def by_a_newer_file(curator):
    post(curator, f"{TWO}3,It costs 2 euros.\n".encode())
    work()


def by_a_person(curator):
    entry = Entry.objects.get(text="The line opens at eight.")
    said = "The line opens at ten."
    edit_entry(entry_id=entry.pk, author=curator, may_verify=False, text=said)


@pytest.mark.parametrize("overtake", [by_a_newer_file, by_a_person])
def test_a_plan_that_was_overtaken_is_not_applied(overtake):
    curator = make_curator()
    post(curator, TWO.encode())
    work()
    new = TWO.replace("eight", "nine")
    plan = planned_again(curator, new)
    enqueued = planned_again(curator, new)
    apply = f"/api/v1/imports/{enqueued}/apply"
    assert rest_client(curator).post(apply).status_code == 202
    waiting = Job.objects.latest("created_at")
    overtake(curator)
    said = dict(Entry.objects.values_list("pk", "text"))

    refused = rest_client(curator).post(f"/api/v1/imports/{plan}/apply")
    with pytest.raises(ConflictError, match="check it again"):
        run_job(waiting.pk, HANDLERS)

    assert refused.status_code == 409
    assert "check it again" in refused.json()["error"]["message"]
    assert dict(Entry.objects.values_list("pk", "text")) == said
    again = planned_again(curator, new)
    assert (
        rest_client(curator).post(f"/api/v1/imports/{again}/apply").status_code == 202
    )
    work()
    assert Entry.objects.filter(text="The line opens at nine.").exists()


def test_a_plan_that_nobody_applies_ends_with_its_file(settings):
    curator = make_curator()
    post(curator, TWO.encode())
    work()
    plan = planned_again(curator, TWO.replace("eight", "nine"))
    file = Path(Import.objects.get(pk=plan).file.path)
    assert file.exists()

    prune()
    assert Import.objects.filter(pk=plan).exists()
    settings.JOB_KEEP = timedelta(0)
    prune()

    assert [each.state for each in Import.objects.all()] == ["applied"]
    assert not file.exists()
    assert not PlannedEntry.objects.exists()


@pytest.mark.parametrize("rows", [b"id,text\n1,\n2,\n", b"id,text\n"])
def test_an_import_without_a_good_row_is_not_applied(rows):
    curator = make_curator()
    curator.is_staff = True
    curator.save()
    post(curator, rows, dry_run="true")
    work()
    row = Import.objects.get()
    client = page_client(curator)
    page = reverse("admin:kb_import_change", args=[row.pk])
    apply = reverse("admin:kb_import_apply", args=[row.pk])

    shown = client.get(page).text
    posted = client.post(apply, follow=True).text
    over_rest = rest_client(curator).post(f"/api/v1/imports/{row.pk}/apply")

    assert apply not in shown
    assert "Nothing is written yet" not in shown
    assert f'<a class="underline" href="{reverse("admin:kb_import_bring")}">' in shown
    assert "No row could be read; correct the file." in client.get("/inbox").text
    assert "correct cards.csv and upload it again" in posted
    assert over_rest.status_code == 409
    assert over_rest.json()["error"]["message"] == (
        f"Import {row.pk} has no row that could be read; correct cards.csv and upload "
        "it again."
    )
    assert Job.objects.count() == 1


def test_an_import_of_which_nothing_could_be_read_is_not_applied():
    curator = make_curator()
    post(curator, b"thema,notiz\nWarum?,Darum.\n", dry_run="true")
    with pytest.raises(ImportFileError):
        work()
    row = Import.objects.get()

    refused = rest_client(curator).post(f"/api/v1/imports/{row.pk}/apply")

    assert (row.state, refused.status_code) == ("failed", 409)
    said = refused.json()["error"]["message"]
    assert "The first row must name the columns" in said
    assert said.endswith("Upload a corrected file.")
    assert Job.objects.count() == 1


def test_a_plan_says_that_a_tables_audiences_are_not_read():
    curator = make_curator()
    curator.is_staff = True
    curator.save()
    created = post(
        curator, b"text,audience\nA card costs 12 euros.,staff\n", dry_run="true"
    ).json()
    work()

    planned = rest_client(curator).get(f"/api/v1/imports/{created['id']}").json()
    page = page_client(curator).get(f"/admin/kb/import/{created['id']}/change/").text

    (note,) = planned["notes"]
    assert note.startswith("Columns that are not read: audience. All entries get")
    assert "Columns that are not read: audience." in page


def test_the_page_of_a_failed_import_says_why_once_and_in_plain_words():
    curator = make_curator()
    curator.is_staff = True
    curator.save()
    post(curator, b"thema,notiz\nWarum?,Darum.\n")
    with pytest.raises(ImportFileError):
        work()
    row = Import.objects.get()

    shown = page_client(curator).get(f"/admin/kb/import/{row.pk}/change/").text

    assert shown.count("The first row must name the columns") == 1
    assert "ImportFileError" not in shown
    assert "The job</a>" in shown


def test_the_admin_says_what_is_wrong_with_a_file():
    curator = make_curator()
    curator.is_staff = True
    curator.save()
    client = page_client(curator)
    form = {
        "file": SimpleUploadedFile("cards.docx", ROWS.encode()),
        "knowledge_base": make_knowledge_base().pk,
        "audience": make_audience().pk,
    }

    assert "is not DOCX" in (client.post("/admin/kb/import/upload/", form).text)


def test_several_files_are_checked_and_applied_together():
    curator = make_curator()
    curator.is_staff = True
    curator.save()
    client = page_client(curator)
    bring, page = "/admin/kb/import/upload/", "/admin/kb/import/"

    def form(*files: tuple[str, str], **fields: str) -> dict[str, object]:
        sent = [SimpleUploadedFile(name, text.encode()) for name, text in files]
        places = {
            "knowledge_base": make_knowledge_base().pk,
            "audience": make_audience().pk,
        }
        return {"file": sent, **places, **fields}

    one, other = (
        ("a.md", "# A\n\nA card costs 12 euros."),
        ("b.md", "# B\n\nB is free."),
    )
    broken = ("c.docx", "no document")

    assert (
        "c.docx: The content of &#x27;c.docx&#x27; is not DOCX"
        in client.post(bring, form(one, broken)).text
    )
    assert (
        "Leave it empty for 2 files"
        in client.post(bring, form(one, other, title="X")).text
    )
    assert "Two files are called" in client.post(bring, form(one, one)).text
    assert "This field is required" in client.post(bring, form()).text
    assert not Import.objects.exists()  # no half of them

    checked = client.post(bring, form(one, other), follow=True)
    assert checked.redirect_chain == [(page, 302)]
    assert "2 files are being checked" in checked.text
    chosen = {
        "action": "apply_chosen",
        "_selected_action": [*Import.objects.values_list("pk", flat=True)],
    }
    early = client.post(page, chosen, follow=True).text
    assert "a.md: Import" in early
    assert "is still being checked" in early
    work_all()
    assert "2 imports are being applied" in client.post(page, chosen, follow=True).text
    work_all()
    assert {*Entry.objects.values_list("text", flat=True)} == {
        "A card costs 12 euros.",
        "B is free.",
    }


def run_command(*arguments: str) -> str:
    out = StringIO()
    call_command("import_knowledge", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_the_command_plans_imports_and_vouches(tmp_path: Path):
    make_knowledge_base()
    make_audience()
    make_curator()
    file = tmp_path / "cards.jsonl"
    file.write_text(json.dumps({"text": "A card costs 12 euros."}))
    how = [str(file), "--knowledge-base", "cards", "--audience", "everyone"]

    assert "would be: 1 read, 1 created" in run_command(*how, "--dry-run")
    assert not Entry.objects.exists()
    assert "1 created" in run_command(*how, "--verify-as", "curator")
    assert "1 unchanged" in run_command(*how)

    entry = Entry.objects.get()
    assert (entry.state, entry.verified_by and entry.verified_by.username) == (
        "verified", "curator",
    )  # fmt: skip


def test_the_command_shows_questions_with_their_answers_and_that_a_file_is_empty(
    tmp_path: Path,
):
    make_knowledge_base()
    make_audience()
    how = ["--knowledge-base", "cards", "--audience", "everyone", "--dry-run"]
    file = tmp_path / "cards.csv"

    file.write_text("question,answer\nWhat does a new card cost?,12 euros.\n")
    assert "created line 2: What does a new card cost? 12 euros." in run_command(
        str(file), *how
    )
    file.write_text("question,answer\n")
    assert "cards.csv: would be: no entries found (" in run_command(str(file), *how)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"--knowledge-base": "absent"},
            "no knowledge base 'absent'; available: cards",
        ),
        ({"--audience": "absent"}, "no audience 'absent'; available: everyone"),
        ({"--verify-as": "nobody"}, "no active curator 'nobody'"),
    ],
)
def test_the_command_says_what_is_wrong(tmp_path: Path, change, why):
    make_knowledge_base()
    make_audience()
    file = tmp_path / "cards.csv"
    file.write_text(ROWS)
    how = {"--knowledge-base": "cards", "--audience": "everyone", **change}

    with pytest.raises(CommandError, match=why):
        run_command(str(file), *(part for pair in how.items() for part in pair))
