"""A followed folder: what changes, what is proposed, who may see it, and what is refused."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from threading import Barrier, BrokenBarrierError

import pytest
from django.db import connection
from django.utils import timezone

from accounts.acting import acting_for, unrestricted
from accounts.exceptions import ConflictError, NescioError
from accounts.models import AuditEntry
from accounts.roles import Role
from jobs.exceptions import JobInterruptedError, RetryableJobError
from jobs.models import Job
from jobs.run import run_job
from jobs.services import request_cancel
from kb.entries.states import retire_entry, verify_entry
from kb.exceptions import AudienceNotFoundError, InvalidKnowledgeError
from kb.imports.services import start_import
from kb.models import Document, Entry, Flag, FollowedSource, Import, Section
from kb.sources import checking
from kb.sources.checking import audience_for, follow_in_background
from kb.sources.kinds import Bounds
from kb.sources.kinds.interface import SourceBoundsError
from kb.sources.models import FollowRule
from kb.sources.services import (
    KIND,
    Following,
    Rule,
    change_source,
    check_due,
    check_now,
    unfollow_source,
)
from tests.factories import make_audience, make_curator, make_knowledge_base, make_user
from tests.kb.sources.following import (
    ABROAD,
    CARDS,
    LOANS,
    check,
    failed,
    follow,
    proposed,
    texts,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

GOLD = "A gold card costs 72 euros a year."
TRANSFER = "A transfer abroad costs 3 euros."


@pytest.fixture
def folder(directory):
    (directory / "cards.md").write_text(CARDS)
    (directory / "help").mkdir()
    (directory / "help" / "abroad.md").write_text(ABROAD)
    return directory


def touch(path, text: str) -> None:
    """Write a file so that its time differs, however fast the test is."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    os.utime(path, ns=(before + 10**9, before + 10**9))


def test_a_folder_becomes_documents_with_entries_to_be_reviewed(folder):
    counted = check(follow("folder", folder))

    assert counted == {"listed": 2, "new": 2, "entries_created": 3}
    assert set(Document.objects.values_list("source", "title")) == {
        ("Help/cards.md", "Cards"),
        ("Help/help/abroad.md", "Abroad"),
    }
    assert set(Entry.objects.values_list("state", flat=True)) == {"in_review"}
    assert Section.objects.count() == 2
    assert not Import.objects.exists()


def test_nothing_is_written_where_nothing_changed(folder):
    source = follow("folder", folder)
    check(source)
    before = list(Entry.objects.order_by("pk").values())

    assert check(source) == {"listed": 2, "unchanged": 2}
    assert list(Entry.objects.order_by("pk").values()) == before


def test_a_second_check_brings_only_what_changed_was_added_or_is_gone(folder):
    source = follow("folder", folder)
    check(source)
    touch(folder / "cards.md", CARDS.replace("12 euros", "15 euros"))
    (folder / "loans.md").write_text(LOANS)
    (folder / "help" / "abroad.md").unlink()

    counted = check(source)

    assert counted == {
        "listed": 2, "new": 1, "changed": 1, "gone": 1,
        "entries_created": 1, "entries_changed": 1, "proposed": 1,
    }  # fmt: skip
    assert "A replacement card costs 15 euros." in texts()
    assert (proposed(), TRANSFER in texts()) == ({TRANSFER}, True)
    flag = Flag.objects.get()
    assert flag.user is None
    assert "no longer in the followed source Help (help/abroad.md)" in flag.note
    assert check(source) == {"listed": 2, "unchanged": 2}


def test_a_fact_that_left_its_document_is_proposed_and_stays(folder):
    source = follow("folder", folder)
    check(source)
    touch(folder / "cards.md", CARDS.replace(GOLD, ""))

    assert check(source)["proposed"] == 1
    assert (proposed(), GOLD in texts()) == ({GOLD}, True)

    touch(folder / "cards.md", CARDS)
    check(source)
    assert proposed() == set()


def test_a_document_that_comes_back_takes_its_proposals_back(folder):
    source = follow("folder", folder)
    check(source)
    (folder / "help" / "abroad.md").unlink()
    check(source)

    (folder / "help" / "abroad.md").write_text(ABROAD)
    check(source)

    assert proposed() == set()
    assert source.documents.kept().count() == 2


def test_a_declined_proposal_is_not_made_again_and_a_retired_entry_stays(folder):
    source = follow("folder", folder)
    check(source)
    touch(folder / "cards.md", "# Cards\n\nA blue card costs 1 euro.\n")
    check(source)
    curator = make_curator()
    for entry in Entry.objects.filter(text=GOLD):
        verify_entry(entry_id=entry.pk, by=curator)
    gone = Entry.objects.get(text__startswith="A replacement")
    retire_entry(entry_id=gone.pk, by=curator)
    touch(folder / "cards.md", "# Cards\n\nA blue card costs 2 euros today.\n")

    check(source)

    assert GOLD not in proposed()
    gone.refresh_from_db()
    assert gone.state == "retired"


def test_a_source_that_suddenly_lacks_most_proposes_nothing_and_says_so(folder):
    (folder / "loans.md").write_text(LOANS)
    source = follow("folder", folder)
    check(source)
    for name in ("cards.md", "help/abroad.md"):
        (folder / name).unlink()

    assert "proposed" not in check(source)
    assert "Only 1 of 3 documents are still there" in source.note
    assert proposed() == set()

    assert check(source, accept_loss=True)["proposed"] == 3
    assert source.note == ""


def test_what_no_rule_names_is_not_imported_and_the_first_rule_decides(folder):
    (folder / "help" / "staff").mkdir()
    (folder / "help" / "staff" / "loans.md").write_text(LOANS)
    make_audience("staff", groups=["staff"])
    curator = make_user(Role.CURATOR, groups=["staff"])

    source = follow(
        "folder", folder, by=curator, rules={"help/staff": "staff", "help": "everyone"}
    )
    counted = check(source, by=curator)

    assert counted["unnamed"] == 1
    assert set(Entry.objects.values_list("text", "audience__slug")) == {
        (TRANSFER, "everyone"),
        ("A loan is paid back within 60 months.", "staff"),
    }


def test_a_rule_that_changes_takes_documents_and_their_entries_along(folder):
    make_audience("staff", groups=["staff"])
    curator = make_user(Role.CURATOR, groups=["staff"])
    source = follow("folder", folder, by=curator)
    check(source, by=curator)
    said = Following(
        name="Help",
        kind="folder",
        address=str(folder),
        knowledge_base=make_knowledge_base(),
        rules=[
            Rule("help", make_audience("staff")),
            Rule("", make_audience()),
        ],
    )
    change_source(source.pk, said, by=curator)

    counted = check(source, by=curator)

    assert counted == {"listed": 2, "moved": 1, "unchanged": 2}
    assert Entry.objects.get(text=TRANSFER).audience.slug == "staff"
    assert Document.objects.get(source="Help/help/abroad.md").audience.slug == "staff"


@pytest.mark.parametrize(
    ("groups", "audience"),
    [
        (("prices",), "one"),
        (("Prices/Gold",), "one"),
        (("prices-old",), "rest"),
        (("label", "prices"), "one"),
        (("restricted",), None),
        (("restricted", "prices"), None),
    ],
)
def test_a_rule_names_a_whole_folder_and_nothing_restricted(groups, audience):
    one, rest = make_audience("one"), make_audience("rest")
    rules = [
        FollowRule(group="/prices/", audience=one),
        FollowRule(group="", audience=rest),
    ]

    found = audience_for(groups, rules)

    assert (found and found.slug) == audience


def test_a_document_that_can_not_be_read_is_named_and_the_rest_goes_on(folder):
    (folder / "broken.pdf").write_bytes(b"no pdf")
    (folder / "huge.md").write_text("x" * 100)
    (folder / "picture.png").write_bytes(b"\x89PNG")
    source = follow("folder", folder)

    counted = check(source)

    assert counted["failed"] == 1
    assert (counted["new"], counted["listed"]) == (3, 4)
    broken = source.documents.get(key="broken.pdf")
    assert (broken.state, "content of 'broken.pdf' is not PDF" in broken.error) == (
        "failed",
        True,
    )


def test_a_file_that_is_too_large_is_left_out(folder, settings):
    settings.IMPORT_MAX_MIB = 1
    (folder / "huge.md").write_text("word " * 300_000)
    source = follow("folder", folder)

    assert check(source)["failed"] == 1
    assert "more than 1 MiB" in source.documents.get(key="huge.md").error


def test_a_source_with_too_many_documents_or_bytes_is_not_read(folder, settings):
    settings.SOURCE_MAX_DOCUMENTS = 1
    source = follow("folder", folder)

    assert "more than 1 documents" in failed(source, InvalidKnowledgeError)

    settings.SOURCE_MAX_DOCUMENTS, settings.SOURCE_MAX_MIB = 10, 0
    assert "more than 0 MiB" in failed(source, SourceBoundsError)

    settings.SOURCE_MAX_MIB, settings.SOURCE_MAX_SECONDS = 10, 0
    assert "within 0 s" in failed(source, SourceBoundsError)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/etc", "not below"),
        ("{root}/../outside", "not below"),
        ("{root}/link", "not below"),
        ("relative", "not below"),
        ("{root}/missing", "no "),
        ("{root}/cards.md", "not a folder"),
    ],
)
def test_a_folder_outside_of_what_the_operator_names_is_refused(folder, address, said):
    (folder.parent / "outside").mkdir()
    (folder / "link").symlink_to(folder.parent / "outside")

    with pytest.raises(InvalidKnowledgeError, match=said):
        follow("folder", address.format(root=folder))


def test_nothing_may_be_followed_unless_an_operator_names_it(folder, settings):
    settings.SOURCE_DIRECTORIES = []

    with pytest.raises(InvalidKnowledgeError, match="NESCIO_SOURCE_DIRECTORIES"):
        follow("folder", folder)


def test_links_and_hidden_files_are_left_out(folder):
    secret = folder.parent / "secret.md"
    secret.write_text("The key is under the mat.")
    (folder / "link.md").symlink_to(secret)
    (folder / "loop").symlink_to(folder)
    (folder / ".hidden.md").write_text(LOANS)

    assert check(follow("folder", folder))["listed"] == 2
    assert not any("key" in text for text in texts())


def test_a_folder_that_became_a_link_outside_fails_and_changes_nothing(directory):
    inside = directory / "team"
    inside.mkdir()
    (inside / "cards.md").write_text(CARDS)
    source = follow("folder", inside)
    check(source)
    inside.rename(directory.parent / "moved")
    inside.symlink_to(directory.parent / "moved")

    assert "not below" in failed(source, InvalidKnowledgeError)
    assert (proposed(), source.documents.kept().count()) == (set(), 1)


def test_a_check_that_is_broken_off_goes_on_where_it_was(folder):
    (folder / "loans.md").write_text(LOANS)
    source = follow("folder", folder)
    job = check_now(source.pk, by=make_curator())
    stops = iter([False, False, False, False, False, False, False])

    run_job(job.pk, {KIND: follow_in_background}, is_stopping=lambda: next(stops, True))
    job.refresh_from_db()
    assert (job.state, source.documents.count() < 3) == (Job.State.QUEUED, True)

    run_job(job.pk, {KIND: follow_in_background})

    job.refresh_from_db()
    source.refresh_from_db()
    assert (job.state, job.done, job.total) == (Job.State.SUCCEEDED, 3, 3)
    assert (source.counts["new"], source.counts["entries_created"]) == (3, 4)
    assert (len(texts()), Import.objects.exists()) == (4, False)


def test_a_check_of_an_owner_who_is_no_curator_fails_with_the_remedy(folder):
    curator = make_user(Role.CURATOR)
    source = follow("folder", folder, by=curator)
    curator.groups.clear()

    assert "save the source again" in failed(source, InvalidKnowledgeError)


def test_a_source_is_due_by_its_schedule_and_enqueued_once(folder):
    source = follow("folder", folder, every_hours=6)
    assert (check_due(), Job.objects.filter(kind=KIND).count()) == (0, 1), "at once"
    check(source)
    FollowedSource.objects.update(next_check_at=timezone.now())

    assert (check_due(), check_due()) == (1, 0)
    source.refresh_from_db()
    assert source.next_check_at
    assert source.next_check_at > timezone.now() + timedelta(hours=5)
    FollowedSource.objects.update(next_check_at=timezone.now(), is_active=False)
    assert check_due() == 0
    assert Job.objects.filter(kind=KIND).count() == 2


def test_what_is_not_read_on_schedule_is_not_read_until_somebody_wants_it(folder):
    source = follow("folder", folder, is_active=False)

    assert (check_due(), Job.objects.exists()) == (0, False)
    assert check(source)["new"] == 2


def test_an_audience_of_others_and_a_made_up_credential_are_refused(folder):
    make_audience("staff", groups=["staff"])

    with pytest.raises(AudienceNotFoundError):
        follow("folder", folder, rules={"": "staff"})
    with pytest.raises(InvalidKnowledgeError, match="never the credential itself"):
        follow("folder", folder, credential="NESCIO_SECRET_KEY")
    with pytest.raises(InvalidKnowledgeError, match="already follows a source 'Help'"):
        follow("folder", folder), follow("folder", folder)


def test_a_missing_credential_is_said(folder):
    name = "NESCIO_SOURCE_CREDENTIAL_HELP"
    source = follow("folder", folder, credential=name)

    assert f"{name} is not set" in failed(source, InvalidKnowledgeError)


def test_who_lacks_one_audience_of_a_source_sees_nothing_of_it(folder):
    make_audience("staff", groups=["staff"])
    insider = make_user(Role.CURATOR, groups=["staff"])
    rules = {"help": "staff", "": "everyone"}
    source = follow("folder", folder, by=insider, rules=rules)
    check(source, by=insider)
    outsider = make_user(Role.CURATOR)

    seen: dict[int, list[int]] = {}
    for user in (insider, outsider):
        with acting_for(user), connection.cursor() as cursor:
            seen[user.pk] = []
            for table in ("followedsource", "followrule", "followeddocument"):
                cursor.execute(f"SELECT count(*) FROM kb_{table}")
                seen[user.pk].append(cursor.fetchone()[0])
            visible = FollowedSource.objects.visible_to(user).exists()
            assert visible is (user == insider)

    assert seen == {insider.pk: [1, 2, 2], outsider.pk: [0, 0, 0]}
    with pytest.raises(NescioError, match="There is no source"):
        check_now(source.pk, by=outsider)


def test_every_change_is_in_the_audit_without_words_and_a_check_is_none(folder):
    source = follow("folder", folder)
    check(source)
    before = AuditEntry.objects.filter(subject=f"source {source.pk}")
    assert set(before.values_list("kind", "action")) == {
        ("source", "insert"),
        ("source audience", "insert"),
    }
    assert "Help" not in str(list(before.values_list("changes", flat=True)))

    with unrestricted("tests"):
        unfollow_source(source.pk, by=make_curator())

    assert before.filter(kind="source", action="delete").count() == 1
    assert len(texts()) == 3


def test_a_bound_ends_a_cancelled_check():
    def stop() -> None:
        raise JobInterruptedError("Stop.")

    with pytest.raises(JobInterruptedError):
        Bounds(stop).seconds_left()


def test_a_source_that_is_renamed_goes_on_with_its_documents(folder):
    source = follow("folder", folder)
    check(source)
    FollowedSource.objects.filter(pk=source.pk).update(name="Help centre")
    source.refresh_from_db()
    (folder / "cards.md").write_text(CARDS.replace("12 euros", "14 euros"))
    (folder / "loans.md").write_text(LOANS)
    before = Document.objects.count()

    counted = check(source)

    assert (counted["new"], counted["changed"]) == (1, 1)
    assert Document.objects.count() == before + 1
    assert not any("12 euros" in text for text in texts() - proposed())


def test_a_source_called_as_another_was_has_documents_of_its_own(folder):
    first = follow("folder", folder)
    check(first)
    FollowedSource.objects.filter(pk=first.pk).update(name="Old help")
    (folder / "cards.md").rename(folder / "help" / "cards.md")
    (folder / "help" / "cards.md").write_text(LOANS)
    (folder / "cards.md").write_text(CARDS)
    (folder / "help" / "help").mkdir()
    (folder / "help" / "help" / "abroad.md").write_text(LOANS)

    second = follow("folder", folder / "help")

    assert check(second)["new"] == 3
    assert proposed() == set()
    called = second.documents.order_by("key").values_list("document__source", flat=True)
    assert list(called) == [
        "Help/abroad.md", f"Help/cards.md#{second.pk}", f"Help/help/abroad.md#{second.pk}",
    ]  # fmt: skip
    assert check(second) == {"listed": 3, "unchanged": 3}


def test_a_document_that_another_check_is_about_to_bring_is_left_to_it(folder):
    first = follow("folder", folder)
    FollowedSource.objects.filter(pk=first.pk).update(name="Old help")
    Import.objects.create(
        source="Help/cards.md", followed=first, file_name="cards.md", format="markdown",
        knowledge_base=first.knowledge_base, audience=make_audience(),
    )  # fmt: skip

    second = follow("folder", folder)
    check(second)

    assert Document.objects.filter(source=f"Help/cards.md#{second.pk}").exists()


@pytest.mark.django_db(transaction=True)
def test_two_checks_at_once_give_their_documents_names_of_their_own(
    directory, monkeypatch
):
    (directory / "cards.md").write_text(CARDS)
    (directory / "loans").mkdir()
    (directory / "loans" / "cards.md").write_text(LOANS)
    first = follow("folder", directory / "loans")
    FollowedSource.objects.filter(pk=first.pk).update(name="Old help")
    second = follow("folder", directory)
    FollowedSource.objects.filter(pk=first.pk).update(name="Help")
    both = Barrier(2)

    def start_with_the_other(*given, **options):
        with suppress(BrokenBarrierError):  # where the other one waits for this one
            both.wait(timeout=3)
        return start_import(*given, **options)

    monkeypatch.setattr(checking, "start_import", start_with_the_other)

    def checked(source):
        try:
            with unrestricted("tests"):
                return check(source)["new"]
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(checked, (first, second)))

    assert counts == [1, 2]
    called = FollowedSource.objects.values_list("documents__document", flat=True)
    assert (len(set(called)), Document.objects.count()) == (3, 3)


def test_a_check_that_is_cancelled_says_nothing_of_its_source(folder):
    source = follow("folder", folder)
    job = check_now(source.pk, by=make_curator())

    def cancelled(run):
        request_cancel(job.pk, by=make_curator())
        return follow_in_background(run)

    run_job(job.pk, {KIND: cancelled})

    job.refresh_from_db()
    source.refresh_from_db()
    assert (job.state, source.error) == (Job.State.CANCELLED, "")


@pytest.mark.parametrize(("attempts", "said"), [(2, ""), (1, "Come back later.")])
def test_a_source_fails_when_nothing_is_tried_again(folder, attempts, said):
    source = follow("folder", folder)
    job = check_now(source.pk, by=make_curator())
    Job.objects.filter(pk=job.pk).update(max_attempts=attempts)

    def busy(run):
        def check() -> None:
            raise RetryableJobError("Come back later.")

        run.check = check
        return follow_in_background(run)

    run_job(job.pk, {KIND: busy})

    job.refresh_from_db()
    source.refresh_from_db()
    assert job.state == (Job.State.QUEUED if attempts == 2 else Job.State.FAILED)
    assert source.error == said


def test_retirement_is_proposed_where_the_check_that_waits_would_not(folder):
    source = follow("folder", folder)
    job = check_now(source.pk, by=make_curator())
    assert job.parameters == {"source": source.pk, "accept_loss": False}

    check_now(source.pk, by=make_curator(), accept_loss=True)

    job.refresh_from_db()
    assert job.parameters == {"source": source.pk, "accept_loss": True}
    check(source)
    job = check_now(source.pk, by=make_curator())

    def ask_meanwhile(run):
        with pytest.raises(ConflictError, match="ask again"):
            check_now(source.pk, by=make_curator(), accept_loss=True)
        return {}

    run_job(job.pk, {KIND: ask_meanwhile})
    job.refresh_from_db()
    assert job.state == Job.State.SUCCEEDED
