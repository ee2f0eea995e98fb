"""What another system calls its entries: kept, found by, and brought back by a table."""

import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import transaction

from accounts.services import set_knowledge_roles
from kb.entries.services import edit_entry
from kb.entries.states import retire_entry
from kb.entries.wordings import add_wordings
from kb.imports.running import run_import
from kb.imports.services import Upload, start_import
from kb.models import Document, Entry, Import
from tests.clients import rest_client
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_user,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("import_directory"),
    pytest.mark.slow,
]

ENTRIES = "/api/v1/entries"
ROWS = (
    "id,question,answer\n"
    "T01,What does a card cost?,A card costs 12 euros.\n"
    "T02,How long does it last?,A card lasts four years.\n"
    ",Is it free for pupils?,It is free for pupils.\n"
)


@contextmanager
def writing(done: int, total: int | None) -> Iterator[None]:
    with transaction.atomic():
        yield


def bring(content: str | bytes, name: str = "cards.csv", *, apply=True, by=None, **how):
    upload = Upload(
        file=io.BytesIO(content if isinstance(content, bytes) else content.encode()),
        name=name,
        knowledge_base=make_knowledge_base(),
        audience=make_audience(),
        **how,
    )
    begun = start_import(upload, by=by or make_curator())
    return run_import(begun.pk, apply=apply, writing=writing)


def counted(done: Import) -> dict[str, int]:
    return {name: n for name, n in done.counts.items() if n and name != "read"}


def found(client, **asked) -> list[tuple[int, str]]:
    response = client.get(ENTRIES, asked)
    assert response.status_code == 200, response.content
    return [(row["id"], row["own_key"]) for row in response.json()["results"]]


def table(client, **asked) -> bytes:
    return b"".join(client.get("/api/v1/entries.csv", asked).streaming_content)


def test_an_entry_is_found_by_what_its_system_calls_it():
    bring(ROWS)
    bring(ROWS.replace("12 euros", "15 euros"), "other.csv")
    document = Document.objects.get(source="other.csv")
    entry = Entry.objects.get(text="A card costs 15 euros.")
    client = rest_client(make_curator())

    assert len(found(client, own_key="T01")) == 2
    assert found(client, own_key="T01", document=document.pk) == [(entry.pk, "T01")]
    assert found(client, own_key="T0") == []
    assert client.get(ENTRIES, {"own_key": "\x07"}).status_code == 400
    client.post(f"{ENTRIES}/{entry.pk}/verify")
    assert client.get(f"{ENTRIES}/{entry.pk}").json()["verified"]


def test_who_may_not_see_an_entry_finds_nothing_by_its_key():
    bring(ROWS)
    Entry.objects.update(audience=make_audience("staff", groups=["staff"]))

    assert found(rest_client(make_user()), own_key="T01") == []


def test_nobody_writes_a_key_over_rest():
    bring(ROWS)
    entry = Entry.objects.get(own_key="T01")
    client = rest_client(make_curator())

    refused = client.patch(f"{ENTRIES}/{entry.pk}", {"own_key": "T9"}, format="json")

    assert refused.status_code == 400


def test_a_plan_names_the_entries_that_are_there_already():
    curator = make_curator()
    bring(ROWS)
    ids = dict(Entry.objects.values_list("own_key", "pk"))
    new = ROWS.replace("12 euros", "15 euros").replace("T02", "T03")

    plan = bring(new, apply=False, by=curator)

    rows = rest_client(curator).get(f"/api/v1/imports/{plan.pk}/entries").json()
    assert {
        (row["action"], row["own_key"], row["entry"]) for row in rows["results"]
    } == {
        ("changed", "T01", ids["T01"]),
        ("created", "T03", None),
        ("retired", "T02", ids["T02"]),
    }


def test_an_exported_table_imported_again_changes_nothing():
    curator = make_curator()
    bring(ROWS, verify=True)
    document = Document.objects.get()
    edited = Entry.objects.get(own_key="T01")
    edit_entry(
        entry_id=edited.pk,
        author=curator,
        may_verify=True,
        text="A card costs 9 euros.",
    )
    add_wordings(edited, ["card price?", "how much for a card"], by=curator)
    plain = Entry.objects.get(own_key="", document=document)
    edit_entry(
        entry_id=plain.pk, author=curator, may_verify=True, question="Free for pupils?"
    )
    retired = Entry.objects.get(own_key="T02")
    retire_entry(entry_id=retired.pk, by=curator)
    by_hand = make_entry("It has a chip.", document=document, author=curator)
    given_up = make_entry("It has a stripe.", document=document, author=curator)
    retire_entry(entry_id=given_up.pk, by=curator)
    said = ("pk", "state", "text", "question", "own_key", "source_key")
    before = list(Entry.objects.order_by("pk").values_list(*said))
    revisions = edited.revisions.count()
    exported = table(rest_client(curator), document=document.pk)

    done = bring(exported)

    assert counted(done) == {"unchanged": 5}
    assert list(Entry.objects.order_by("pk").values_list(*said)) == before
    assert edited.revisions.count() == revisions
    assert by_hand.wordings.count() == 0
    assert "id" in done.notes[0].split(": ")[1].rstrip(".").split(", ")


def test_a_changed_row_of_an_exported_table_changes_its_entry_alone():
    curator = make_curator()
    bring(ROWS)
    document = Document.objects.get()
    ids = dict(Entry.objects.values_list("own_key", "pk"))
    exported = table(rest_client(curator), document=document.pk).decode()

    done = bring(exported.replace("12 euros", "15 euros"))

    assert counted(done) == {"changed": 1, "unchanged": 2}
    assert dict(Entry.objects.values_list("own_key", "pk")) == ids
    assert Entry.objects.get(own_key="T01").text == "A card costs 15 euros."


def test_a_line_of_json_may_give_the_key_by_its_new_name():
    bring(ROWS)
    line = '{"id": 7, "own_key": "T01", "question": "What does a card cost?", '
    line += '"answer": "A card costs 12 euros."}\n'

    done = bring(line, "cards.jsonl", source="cards.csv", apply=False)

    assert counted(done) == {"unchanged": 1, "retired": 2}


def test_a_key_that_was_not_kept_finds_its_entry_and_comes_with_the_next_import():
    bring(ROWS)
    Entry.objects.update(own_key="")  # as what was imported before has none
    client = rest_client(make_curator())
    exported = table(client)

    ((entry_id, own_key),) = found(client, own_key="T01")
    assert own_key == ""
    assert counted(bring(exported)) == {"unchanged": 3}
    assert counted(bring(ROWS)) == {"unchanged": 3}
    assert found(client, own_key="T01") == [(entry_id, "T01")]


def test_what_the_same_words_say_in_a_new_row_with_more_questions_keeps_its_key():
    bring(ROWS)
    Entry.objects.update(own_key="")
    entry = Entry.objects.get(text="A card costs 12 euros.")
    key = entry.source_key
    row = "question,answer,also_asked\n"
    row += "What does a card cost?,A card costs 12 euros.,card price?\n"

    assert counted(bring(row)) == {"changed": 1, "retired": 2}
    entry.refresh_from_db()
    assert entry.source_key == key
    assert [each.text for each in entry.wordings.all()] == ["card price?"]


def test_by_its_words_nobody_learns_of_an_entry_that_they_may_not_see():
    bring(ROWS)
    board = make_audience("board", groups=["board"])
    document = Document.objects.get()
    make_entry("It has a chip.", document=document, audience=board)

    row = ",,,It has a chip.\n"
    done = bring(ROWS.replace("answer", "answer,text") + row, apply=False)

    assert counted(done) == {"unchanged": 3, "created": 1}


def test_a_curator_of_another_knowledge_base_changes_nothing_by_a_key():
    bring(ROWS)
    entry = Entry.objects.get(own_key="T01")
    other = make_user()
    set_knowledge_roles(other, {make_knowledge_base("travel").pk: "curator"})
    client = rest_client(other)

    refused = client.post(f"{ENTRIES}/{entry.pk}/retire")

    assert refused.status_code == 403
