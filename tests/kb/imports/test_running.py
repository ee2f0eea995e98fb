"""Imports planned and applied: what changes, what stays, and who may."""

import io
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psutil
import pytest
from django.db import connection, transaction
from django.utils import timezone
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from accounts.exceptions import ConflictError
from jobs.models import Job
from jobs.run import run_job
from kb.entries.services import edit_entry
from kb.entries.states import retire_entry
from kb.entries.wordings import Wording, add_wordings
from kb.exceptions import InvalidKnowledgeError
from kb.imports import pieces, running
from kb.imports.readers import Fact, ImportFileError, SourceDocument
from kb.imports.readers.blocks import HEADED
from kb.imports.running import run_import
from kb.imports.services import (
    Upload,
    enqueue_import,
    import_in_background,
    start_import,
)
from kb.models import Document, Entry, EntryEmbedding, Import, ImportedKey, Section
from kb.text.cleaning import MAX_WORDINGS
from tests.examples import SHARED_FIXTURES
from tests.factories import make_audience, make_curator, make_knowledge_base, make_user

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("import_directory"),
    pytest.mark.slow,
]

TEXT = """# Cards

A replacement card costs 12 euros.

A gold card costs 72 euros a year.

## Abroad

A transfer abroad costs 3 euros.
"""


@contextmanager
def writing(done: int, total: int | None) -> Iterator[None]:
    with transaction.atomic():
        yield


def bring(content: str, name: str = "cards.md", *, apply=True, by=None, **how):
    upload = Upload(
        file=io.BytesIO(content.encode()),
        name=name,
        knowledge_base=make_knowledge_base(),
        audience=how.pop("audience", None) or make_audience(),
        **how,
    )
    begun = start_import(upload, by=by or make_curator())
    return run_import(begun.pk, apply=apply, writing=writing)


def planned(content: str, *, by=None) -> Import:
    upload = Upload(
        file=io.BytesIO(content.encode()),
        name="cards.csv",
        knowledge_base=make_knowledge_base(),
        audience=make_audience(),
    )
    return start_import(upload, by=by or make_curator())


def counted(done: Import) -> dict[str, int]:
    return {name: n for name, n in done.counts.items() if n and name != "read"}


def said() -> dict[str, str]:
    return dict(Entry.objects.values_list("text", "state"))


def test_a_document_becomes_entries_with_sections_places_and_vectors():
    done = bring(TEXT)

    assert (done.state, counted(done)) == ("applied", {"created": 3})
    entry = Entry.objects.get(text__startswith="A transfer")
    assert (entry.origin, entry.state, entry.place) == (
        "imported",
        "in_review",
        "line 9",
    )
    assert entry.section
    assert entry.section.parent
    assert (entry.section.heading, entry.section.parent.heading) == ("Abroad", "Cards")
    assert entry.document
    assert (entry.document.title, entry.document.source) == ("Cards", "cards.md")
    assert EntryEmbedding.objects.filter(part=1).count() == 3
    assert not ImportedKey.objects.exists()


def test_the_same_file_again_changes_nothing():
    bring(TEXT)
    before = list(Entry.objects.order_by("pk").values())

    done = bring(TEXT)

    assert counted(done) == {"unchanged": 3}
    assert list(Entry.objects.order_by("pk").values()) == before


def test_a_new_version_changes_only_what_changed():
    bring(TEXT, verify=True)
    ids = dict(Entry.objects.values_list("text", "pk"))

    new = TEXT.replace("12 euros", "15 euros").replace(
        "A transfer abroad costs 3 euros.", "The branch in Graz opens at nine."
    )
    plan = bring(new, apply=False)
    done = bring(new)

    expected = {"created": 1, "changed": 1, "retired": 1, "unchanged": 1}
    assert (plan.state, counted(plan)) == ("planned", expected)
    assert counted(done) == expected
    assert plan.examples["changed"][0]["before"] == "A replacement card costs 12 euros."
    gone = "A transfer abroad costs 3 euros."
    assert plan.examples["retired"] == [{"text": gone, "entry": ids[gone]}]
    assert said() == {
        "A replacement card costs 15 euros.": "needs_review",
        "A gold card costs 72 euros a year.": "verified",
        "A transfer abroad costs 3 euros.": "retired",
        "The branch in Graz opens at nine.": "in_review",
    }
    changed = Entry.objects.get(text__contains="15 euros")
    assert changed.pk == ids["A replacement card costs 12 euros."]
    assert changed.revisions.count() == 2


def test_thousands_of_short_sentences_are_soon_compared_with_what_stands():
    base = "The desk opens at nine on weekdays and closes at five.\n"
    bring(base, "desk.txt")
    began = time.process_time()

    pages = "Page 1.\n" * 4000
    again = f"{base}\n{pages}\n{'Go! ' * 1000}\n"
    plan = bring(again, "desk.txt", apply=False)

    assert plan.counts["unchanged"] == 1
    assert time.process_time() - began < 30


def test_the_comparison_with_what_stands_can_be_ended(monkeypatch):
    bring(TEXT)
    monkeypatch.setattr(pieces, "CHECK_SECONDS", 0)
    facts = (Fact("It is new.", "line 1"),)
    read = SourceDocument(title="", source="", headings=(), facts=facts)

    def end() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        pieces.as_it_stands(read, Document.objects.get(), "en", check=end)


def test_what_has_expired_is_changed_and_not_verified():
    bring("id,text\n1,A card costs 12 euros.\n", "a.csv")
    entry = Entry.objects.get()
    past = timezone.now() - timedelta(days=1)
    edit_entry(entry_id=entry.pk, author=None, may_verify=False, valid_until=past)

    done = bring("id,text\n1,A card costs 13 euros.\n", "a.csv", verify=True)

    assert counted(done) == {"changed": 1}
    assert said() == {"A card costs 13 euros.": "in_review"}


def test_what_comes_back_is_restored():
    bring(TEXT)
    bring(TEXT.replace("A transfer abroad costs 3 euros.", ""))

    done = bring(TEXT)

    assert counted(done) == {"restored": 1, "unchanged": 2}
    assert said()["A transfer abroad costs 3 euros."] == "in_review"


def test_what_a_curator_did_stays_while_the_source_says_the_same():
    bring(TEXT)
    edited, retired, _ = Entry.objects.order_by("pk")
    edit_entry(
        entry_id=edited.pk, author=None, may_verify=False, text="It is 12 euros."
    )
    retire_entry(entry_id=retired.pk, by=make_curator())

    done = bring(TEXT)

    assert counted(done) == {"unchanged": 3}
    assert said()["It is 12 euros."] == "in_review"
    assert said()[retired.text] == "retired"


BEFORE = """# Visits

We open at nine.

Maintained by the front office.

The museum opens at nine and closes at five from Tuesday to Sunday.

Groups of more than ten persons are asked to come in the morning.

Book at least six weeks ahead.
"""
CUT_ANEW = """# Visits

The museum opens at nine and closes at five from Tuesday to Sunday. Groups of more than
ten persons are asked to come in the morning. Book at least six weeks ahead.

We open at nine. Maintained by the front office.
"""


def test_what_was_cut_otherwise_before_is_known_and_stays_verified():
    bring(BEFORE, verify=True)
    before = dict(Entry.objects.values_list("pk", "text"))

    plan = bring(CUT_ANEW, apply=False)
    done = bring(CUT_ANEW)

    assert len(before) == 5
    assert counted(plan) == counted(done) == {"unchanged": 5}
    assert (plan.notes, done.notes) == ([], [])
    assert dict(Entry.objects.filter(state="verified").values_list("pk", "text")) == (
        before
    )
    assert Entry.objects.get(text__startswith="Maintained").revisions.count() == 1


def test_a_change_costs_only_its_sentence_where_a_paragraph_is_several_entries():
    bring(BEFORE, verify=True)

    done = bring(CUT_ANEW.replace("ten persons", "twelve persons"))

    assert counted(done) == {"changed": 1, "unchanged": 4}
    assert list(
        Entry.objects.exclude(state="verified").values_list("text", "state")
    ) == [
        (
            "Groups of more than twelve persons are asked to come in the morning.",
            "needs_review",
        )
    ]


def test_a_changed_sentence_that_leans_is_put_together_with_what_it_leans_on():
    bring(BEFORE)

    done = bring(CUT_ANEW.replace("Book at least six", "Book at least eight"))

    assert counted(done) == {"created": 1, "retired": 3, "unchanged": 2}
    assert Entry.objects.filter(
        text__endswith="Book at least eight weeks ahead."
    ).exists()


def test_a_paragraph_that_grows_stays_one_entry():
    bring("# Visits\n\nThe museum opens at nine and closes at five.\n")

    done = bring(
        "# Visits\n\nThe museum opens at nine and closes at five. Groups come at ten.\n"
    )

    assert counted(done) == {"changed": 1}
    assert list(said()) == [
        "The museum opens at nine and closes at five. Groups come at ten."
    ]


def test_what_a_document_says_of_itself_is_left_out_and_counted():
    done = bring(f"Version 7, for staff.\n\n{TEXT}\nMaintained by the branch.\n")

    assert counted(done) == {"created": 3}
    assert done.notes == [
        "2 lines about the document itself, or beside its text, made no entry: "
        "'Version 7, for staff.', 'Maintained by the branch.'."
    ]


def test_rows_are_known_by_their_id_else_by_their_question():
    bring("id,text\n1,A card costs 12 euros.\n2,A card lasts 4 years.\n", "a.csv")
    bring("question,answer\nHow much?,12 euros.\nHow long?,4 years.\n", "b.csv")

    by_id = bring(
        "id,text\n2,A card lasts 5 years.\n1,A card costs 12 euros.\n", "a.csv"
    )
    by_question = bring("question,answer\nHow much?,13 euros.\n", "b.csv", verify=True)

    assert counted(by_id) == {"changed": 1, "unchanged": 1}
    assert counted(by_question) == {"changed": 1, "retired": 1}
    answer = Entry.objects.get(question="How much?")
    assert (answer.text, answer.state) == ("13 euros.", "verified")


def test_what_stands_twice_is_written_once_and_a_contradiction_is_told(monkeypatch):
    monkeypatch.setattr(running, "BATCH", 2)
    content = "id,text\n1,One.\n2,Two.\n1,One.\n2,Three.\n3,Four.\n"

    done = bring(content, "a.csv")

    assert counted(done) == {"created": 3, "repeated": 1, "bad": 1}
    assert done.bad_rows[0]["place"] == "line 5"
    assert "'2' appears above" in done.bad_rows[0]["reason"]


def test_columns_that_are_not_read_are_noted_and_so_is_what_becomes_of_an_audience():
    columns = [f"c{number}" for number in range(30)]

    plain = bring("id,text,team\n1,A card costs 12 euros.,desk\n", "a.csv")
    restricted = bring(
        f"id,text,{','.join(columns)},audience\n1,A card costs 12 euros.\n2,\n",
        "b.csv",
        apply=False,
    )
    complete = bring("id,text\n1,A card costs 12 euros.\n", "c.csv")

    assert plain.notes == ["Columns that are not read: team."]
    assert restricted.notes == [
        f"Columns that are not read: {', '.join(columns[:20])} and 11 more. All entries get "
        "the audience 'everyone', whatever the column audience says."
    ]
    assert (restricted.counts["read"], complete.notes) == (2, [])


def test_rows_are_sorted_under_the_headings_that_they_name():
    table = (
        "category,question,answer\nLoans,How old?,18 years.\nLoans,Why?,So.\n"
        "Savings,How old?,16 years.\nSavings,Why?,So.\n"
    )

    first = bring(table, "faq.csv")
    moved = table.replace("Loans,Why?,So.\n", "").replace("16 years", "14 years")
    again = bring(moved, "faq.csv")

    assert (first.counts["created"], first.counts["repeated"]) == (3, 1)
    assert (again.counts["changed"], again.counts["unchanged"]) == (1, 2)
    assert again.counts["retired"] == 0
    said = Entry.objects.order_by("section__heading", "question")
    assert [*said.values_list("section__heading", "question", "text")] == [
        ("Loans", "How old?", "18 years."),
        ("Savings", "How old?", "14 years."),
        ("Savings", "Why?", "So."),
    ]


def test_an_entry_stays_where_a_curator_put_it_while_its_table_sorts_nothing():
    bring("question,answer\nHow old?,18 years.\n", "faq.csv")
    entry = Entry.objects.get()
    assert entry.document
    section = Section.objects.create(
        document=entry.document, heading="Loans", position=0
    )
    edit_entry(entry_id=entry.pk, author=None, may_verify=False, section=section)

    bring("question,answer\nHow old?,21 years.\nWhy?,So.\n", "faq.csv")

    entry.refresh_from_db()
    assert (entry.text, entry.section) == ("21 years.", section)


def test_a_row_that_becomes_a_draft_is_told_and_its_entry_retired():
    table = "question,answer,status\nHow old?,18 years.,live\nWhy?,So.,live\n"
    bring(table, "faq.csv")

    done = bring(table.replace("So.,live", "So.,Draft"), "faq.csv")

    assert done.notes == ["1 row is a draft or withdrawn, and left out: line 3."]
    assert done.counts["retired"] == 1
    assert Entry.objects.get(question="Why?").state == Entry.State.RETIRED


def test_articles_of_an_export_are_one_document():
    table = (
        "id,title,body\n1,Fees,<p>A late fee is 12 euros.</p>\n"
        "2,Cards,<p>Cards last 4 years.</p>\n"
    )

    bring(table, "help_centre.csv")
    again = bring(table.replace("12 euros", "15 euros"), "help_centre.csv")

    assert (again.counts["changed"], again.counts["unchanged"]) == (1, 1)
    document = Document.objects.get()
    assert document.title == "Help centre"
    assert [
        *document.entries.order_by("pk").values_list("section__heading", "text")
    ] == [
        ("Fees", "A late fee is 15 euros."),
        ("Cards", "Cards last 4 years."),
    ]


def test_an_encoding_that_was_guessed_is_told():
    table = "question,answer\nWas kostet der Zählerwechsel?,Fünfzig Euro.\n"
    upload = Upload(
        file=io.BytesIO(table.encode("cp1252")),
        name="faq.csv",
        knowledge_base=make_knowledge_base(),
        audience=make_audience(),
    )
    begun = start_import(upload, by=make_curator())

    (note,) = run_import(begun.pk, apply=False, writing=writing).notes

    assert note.startswith("It declares no encoding and is read as cp125")


def test_a_file_of_another_name_that_says_mostly_the_same_is_told():
    bring(TEXT)
    added = f"{TEXT}\nA new card comes by letter.\n"

    plan = bring(added, "cards-2.md", apply=False)
    done = bring(added, "cards-2.md")
    again = bring(added, "cards-2.md")
    of_title = bring("# Cards\n\nAll is new in this one.\n", "new.md", apply=False)
    of_others = bring(
        TEXT, "cards-3.md", apply=False, audience=make_audience("insiders")
    )

    note = (
        "3 of 4 are already in 'Cards' (cards.md): to import a new version of it, give "
        "its source."
    )
    assert (plan.notes, done.notes, again.notes) == ([note], [note], [])
    assert of_title.notes == [
        "There is already a document titled 'Cards' (cards.md): to import a new version "
        "of it, give its source."
    ]
    assert of_others.notes == []


def test_a_run_that_goes_on_notes_the_columns_too(monkeypatch):
    monkeypatch.setattr("kb.imports.running.BATCH", 1)
    row = planned(
        "id,text,audience\n1,A card costs 12 euros.\n2,A PIN costs 5 euros.\n"
    )

    @contextmanager
    def killed(done: int, total: int | None) -> Iterator[None]:
        with transaction.atomic():
            yield
        if done == 1:
            raise SystemExit

    with pytest.raises(SystemExit):
        run_import(row.pk, apply=True, writing=killed)
    done = run_import(row.pk, apply=True, writing=writing)

    assert done.counts["read"] == 2
    assert "whatever the column audience says" in done.notes[0]


def test_nothing_is_retired_while_a_row_is_bad():
    bring("id,text\n1,One.\n2,Two.\n", "a.csv")

    done = bring("id,text\n1,One.\n2,\n", "a.csv")

    assert counted(done) == {"unchanged": 1, "bad": 1}
    assert "Nothing was retired" in done.notes[0]
    assert said()["Two."] == "in_review"


def test_json_lines_bring_many_documents_each_with_its_own_version():
    rows = [{"title": f"Page {n}", "text": f"Rule {n} holds here."} for n in range(3)]
    bring("\n".join(map(json.dumps, rows)), "pages.jsonl")

    rows[1]["text"] = "Rule 1 holds no more here."
    done = bring("\n".join(map(json.dumps, [*rows, rows[0]])), "pages.jsonl")

    assert counted(done) == {"changed": 1, "unchanged": 2, "bad": 1}
    assert "appears above" in done.bad_rows[0]["reason"]


def test_a_killed_import_goes_on_behind_its_last_batch(monkeypatch):
    monkeypatch.setattr(running, "BATCH", 2)
    content = "text\n" + "".join(f"Rule {n} holds.\n" for n in range(7))
    begun = start_import(
        Upload(
            file=io.BytesIO(content.encode()),
            name="a.csv",
            knowledge_base=make_knowledge_base(),
            audience=make_audience(),
        ),
        by=None,
    )
    steps: list[int] = []

    @contextmanager
    def dying(done: int, total: int | None) -> Iterator[None]:
        steps.append(done)
        with transaction.atomic():
            yield
            if len(steps) == 4:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_import(begun.pk, apply=True, writing=dying)
    assert Entry.objects.count() == 4
    done = run_import(begun.pk, apply=True, writing=writing)

    assert (done.state, counted(done)) == ("applied", {"created": 7})
    assert Entry.objects.count() == 7
    assert EntryEmbedding.objects.filter(part=1).count() == 7


def test_an_import_is_applied_once():
    done = bring(TEXT)

    with pytest.raises(ConflictError, match="applied already"):
        run_import(done.pk, apply=True, writing=writing)


def test_a_file_that_can_not_be_read_says_why():
    with pytest.raises(ImportFileError, match="must name the columns"):
        bring("fees\n12\n", "a.csv")

    assert Import.objects.get().state == "failed"
    assert "must name the columns" in Import.objects.get().error


def test_what_who_imports_may_not_see_is_left_alone():
    bring(TEXT)
    secret = Entry.objects.get(text__startswith="A transfer")
    Entry.objects.filter(pk=secret.pk).update(audience=make_audience("s", groups=["x"]))

    done = bring("# Cards\n\nA gold card costs 72 euros a year.\n")

    assert counted(done) == {"unchanged": 1, "retired": 1}
    assert said()[secret.text] == "in_review"


def test_a_document_keeps_its_audience_and_hidden_ones_do_not_show():
    from accounts.roles import Role

    secret = make_audience("secret", groups=["secret"])
    bring(TEXT, audience=secret, by=make_user(Role.CURATOR, groups=["secret"]))

    done = bring(TEXT)  # who does not see the other one makes one of his own

    assert counted(done) == {"created": 3}
    with pytest.raises(InvalidKnowledgeError, match="'everyone' already"):
        bring(TEXT, audience=make_audience("other"))


_FACTS = st.lists(
    st.sampled_from([f"Rule {n} is about {'abcdefgh'[n]}." for n in range(8)]),
    max_size=8,
)


@hypothesis_settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=SHARED_FIXTURES,
)
@given(first=_FACTS, second=_FACTS, tree=st.booleans())
def test_after_an_import_the_knowledge_is_what_the_file_says(first, second, tree):
    def content(facts):
        lines = ["", *facts] if tree else ["text", *facts]
        return ("\n\n" if tree else "\n").join(lines) + "\n"

    name = "p.md" if tree else "p.csv"
    with transaction.atomic():
        bring(content([*first, "It always begins with this rule."]), name)
        done = bring(content([*second, "It always begins with this rule."]), name)
        again = bring(content([*second, "It always begins with this rule."]), name)
        now = set(Entry.objects.exclude(state="retired").values_list("text", flat=True))
        transaction.set_rollback(True)

    whole = " ".join(now)
    assert all(fact in whole for fact in second)
    assert not any(fact in whole for fact in set(first) - set(second))
    assert done.counts["bad"] == 0
    assert set(counted(again)) <= {"unchanged", "repeated"}


def test_what_is_still_looked_through_or_applied_is_not_applied():
    curator = make_curator()
    row = planned("text\nA card costs 12 euros.\n", by=curator)
    enqueue_import(row, apply=False, by=curator)

    with pytest.raises(ConflictError, match="still being checked"):
        enqueue_import(row, apply=True, by=curator)
    Job.objects.update(state=Job.State.SUCCEEDED, finished_at=timezone.now())
    first = enqueue_import(row, apply=True, by=curator)
    assert enqueue_import(row, apply=True, by=curator) == first
    run_import(row.pk, apply=True, writing=writing)
    with pytest.raises(ConflictError, match="applied already"):
        enqueue_import(row, apply=True, by=curator)


@pytest.mark.django_db(transaction=True)
def test_a_job_killed_after_its_imports_last_step_ends_well():
    curator = make_curator()
    row = planned("text\nA card costs 12 euros.\n", by=curator)
    job = enqueue_import(row, apply=True, by=curator)
    run_import(row.pk, apply=True, writing=writing)

    run_job(job.pk, {job.kind: import_in_background})

    job.refresh_from_db()
    assert (job.state, job.result["created"], len(said())) == ("succeeded", 1, 1)


def test_a_plan_does_not_go_on_where_applying_has_begun(monkeypatch):
    monkeypatch.setattr(running, "BATCH", 1)
    row = planned("text\nA card costs 12 euros.\nA loan costs 5 euros.\n")
    steps: list[int] = []

    @contextmanager
    def interrupted(done, total):
        if done == 1 and not steps:
            steps.append(done)
            run_import(row.pk, apply=True, writing=writing)
        with writing(done, total):
            yield

    with pytest.raises(ConflictError, match="another run"):
        run_import(row.pk, apply=False, writing=interrupted)

    row.refresh_from_db()
    assert (row.state, len(said())) == ("applied", 2)


def test_who_is_no_curator_any_more_imports_nothing():
    curator = make_curator()
    row = planned("text\nA card costs 12 euros.\n", by=curator)
    job = enqueue_import(row, apply=True, by=curator)
    curator.groups.clear()

    with pytest.raises(InvalidKnowledgeError, match="no longer a curator of Cards"):
        run_job(job.pk, {job.kind: import_in_background})

    job.refresh_from_db()
    assert (job.state, said()) == (Job.State.FAILED, {})


@pytest.mark.django_db(transaction=True)
def test_cancelling_ends_an_import_while_its_file_is_read():
    job = enqueue_import(planned("text\n" + "\n" * 40_000_000), apply=True, by=None)
    before = set(psutil.Process().children())
    readers: list[psutil.Process] = []

    def cancel() -> None:
        while not readers and Job.objects.get(pk=job.pk).state != "succeeded":
            readers.extend(set(psutil.Process().children()) - before)
        Job.objects.filter(pk=job.pk).update(cancel_requested=True)
        connection.close()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    run_job(job.pk, {job.kind: import_in_background})
    canceller.join()

    job.refresh_from_db()
    assert (job.state, job.done) == ("cancelled", 0)
    assert readers
    assert not any(reader.is_running() for reader in readers)


def test_a_document_that_can_not_be_read_costs_only_its_line():
    lines = [
        {"title": "Empty", "text": "", "format": "html"},
        {"title": "Cards", "text": "A card costs 12 euros.", "format": "text"},
    ]

    done = bring("\n".join(map(json.dumps, lines)), "pages.jsonl")

    assert counted(done) == {"created": 1, "bad": 1}
    assert "empty" in done.bad_rows[0]["reason"]


def test_more_headings_than_a_document_may_have_are_told_beforehand(monkeypatch):
    monkeypatch.setattr(pieces, "SECTIONS_LIMIT", 2)
    done = bring(
        "# A\n\nOne card.\n\n# B\n\nTwo cards.\n\n# C\n\nThree cards.\n", apply=False
    )

    assert counted(done) == {"bad": 1}
    assert "3 headings" in done.bad_rows[0]["reason"]


def test_a_changed_row_leaves_its_entry_in_the_section_that_a_curator_gave_it():
    bring("id,text\n1,A card costs 12 euros.\n", "prices.csv")
    entry = Entry.objects.get()
    assert entry.document
    fees = Section.objects.create(document=entry.document, heading="Fees", position=0)
    edit_entry(entry_id=entry.pk, author=make_curator(), may_verify=True, section=fees)

    done = bring("id,text\n1,A card costs 14 euros.\n", "prices.csv")

    assert counted(done) == {"changed": 1}
    entry.refresh_from_db()
    assert (entry.section, entry.text) == (fees, "A card costs 14 euros.")


def test_a_row_of_a_price_list_whose_price_changes_is_the_same_entry():
    rows = "Tariff,Price,Term\nBasic,{},none\nFix 12,14,12 months\n"
    bring(rows.format(12), "prices.csv")
    entry = Entry.objects.get(text__contains="Basic")

    done = bring(rows.format(13), "prices.csv")

    assert counted(done) == {"changed": 1, "unchanged": 1}
    entry.refresh_from_db()
    assert "Basic | 13 | none" in entry.text


def test_rows_that_their_first_cell_does_not_tell_apart_are_all_read():
    below = "".join(f"Zone {n},Call,{n}\n" for n in range(50))
    rows = f"Zone,What,Price\n{below}Zone 1,Call,7\nZone 2,Text,8\n"

    assert counted(bring(rows, "prices.csv")) == {"created": 52}


ASKED = "question,answer,also_asked\nHow much?,12 euros.,{}\n"


def also_asked() -> set[str]:
    return set(Wording.objects.values_list("text", flat=True))


def test_a_file_says_how_else_its_questions_are_asked():
    curator = make_curator()
    done = bring(
        ASKED.format("what does it cost|the price"), "a.csv", verify=True, by=curator
    )
    entry = Entry.objects.get()
    add_wordings(entry, ["is it dear"], by=curator)
    vectors = entry.embeddings.filter(part__gte=EntryEmbedding.Part.WORDINGS)
    assert (counted(done), vectors.count()) == ({"created": 1}, 3)
    assert done.examples["created"][0]["also_asked"] == "what does it cost; the price"

    again = bring(
        ASKED.format("what does it cost|the price"), "a.csv", verify=True, by=curator
    )
    assert counted(again) == {"unchanged": 1}

    bring(ASKED.format("the price|how dear"), "a.csv", verify=True, by=curator)
    entry.refresh_from_db()
    assert entry.state == "verified"
    assert also_asked() == {"the price", "how dear", "is it dear"}
    assert vectors.count() == 3

    bring(ASKED.format(""), "a.csv", verify=True, by=curator)
    assert also_asked() == {"is it dear"}


def test_a_question_that_nobody_vouched_for_sends_its_entry_to_review():
    bring(ASKED.format(""), "a.csv", verify=True)

    bring(ASKED.format("what does it cost"), "a.csv")

    assert said() == {"12 euros.": "needs_review"}
    assert also_asked() == {"what does it cost"}


def test_what_experts_confirmed_is_not_pushed_out_by_a_file():
    curator = make_curator()
    bring(ASKED.format(""), "a.csv", verify=True, by=curator)
    confirmed = [f"confirmed {n}" for n in range(MAX_WORDINGS - 1)]
    add_wordings(Entry.objects.get(), confirmed, by=curator)

    bring(ASKED.format("one|two|three"), "a.csv", verify=True, by=curator)

    assert also_asked() == {*confirmed, "one"}


def test_what_an_export_made_inert_is_read_as_it_was():
    bring("text\n'- cards cost 12 euros\n'+49 30 123456 is the number\n", "cells.csv")

    assert set(said()) == {"- cards cost 12 euros", "+49 30 123456 is the number"}


def test_an_applied_import_lets_a_worker_look_for_conflicts_once():
    bring(TEXT, apply=False)
    assert not Job.objects.filter(kind="kb.find_conflicts").exists()

    done = bring(TEXT)

    job = Job.objects.get(kind="kb.find_conflicts")
    assert job.idempotency_key == f"kb.find_conflicts import {done.pk}"


def test_a_plan_says_under_which_headings_each_entry_is():
    plan = bring(TEXT, apply=False)

    assert [each.section for each in plan.planned.all()] == [
        "Cards",
        "Cards",
        "Cards > Abroad",
    ]


def test_a_table_that_stands_without_its_mark_stays_verified():
    table = "# Fees\n\nCard | Fee\n--- | ---\nGold | 72\nBlue | 12\n"
    bring(table, name="fees.md", verify=True)
    entry = Entry.objects.get()
    assert HEADED in entry.text
    bare = entry.text.replace(f"\n{HEADED}", "")  # as earlier versions wrote it
    fact = Fact(bare, "", headings=("Fees",))
    Entry.objects.update(text=bare, source_key=fact.key, source_digest=fact.digest)

    bring(table + "\nA copy costs 3 euros.\n", name="fees.md")

    entry.refresh_from_db()
    assert (entry.text, entry.state) == (bare, Entry.State.VERIFIED)


def test_a_table_is_titled_by_its_files_name_in_words():
    bring("text\nA card costs 12 euros.\n", name="faq_renamed.csv")

    document = Entry.objects.get().document
    assert document
    assert document.title == "Faq renamed"


@pytest.mark.parametrize("verify", [True, False])
def test_an_import_that_verifies_lets_its_knowledge_base_calibrate_itself(verify):
    bring(TEXT, verify=verify)

    assert Job.objects.filter(kind="qa.calibrate_where_due").exists() is verify
