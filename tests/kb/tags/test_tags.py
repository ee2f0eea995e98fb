"""What entries are about: set by hand, in bulk, by import and over REST, one of each facet."""

import io
from datetime import date, timedelta

import pytest
from django.db import transaction
from django.urls import reverse

from accounts.roles import Role
from kb.entries.bulk import Action, BulkChange, change_visible
from kb.entries.services import edit_entry
from kb.exceptions import InvalidKnowledgeError
from kb.imports.running import run_import
from kb.imports.services import Upload, start_import
from kb.models import Entry, Tag
from qa.dashboard.models import DailyLatency
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_tag,
    make_user,
    set_role,
)

pytestmark = pytest.mark.django_db


def retail() -> Tag:
    return make_tag("retail", facet=Tag.Facet.LINE_OF_BUSINESS)


def test_a_tag_of_the_other_facet_is_refused():
    with pytest.raises(InvalidKnowledgeError, match="is a line of business"):
        make_entry(product_line=retail())

    entry = make_entry()
    with pytest.raises(InvalidKnowledgeError, match="name a line of business"):
        edit_entry(
            entry_id=entry.pk,
            author=make_curator(),
            may_verify=True,
            line_of_business=make_tag(),
        )


def test_a_change_of_a_tag_is_in_the_history_and_leaves_the_verification():
    entry = make_entry()
    edit_entry(
        entry_id=entry.pk,
        author=make_curator(),
        may_verify=False,
        product_line=make_tag(),
    )

    entry.refresh_from_db()
    newest = entry.revisions.latest("number")
    assert (entry.state, newest.product_line) == ("verified", make_tag())
    assert newest.reason == "Changed product_line."


def test_the_page_that_deletes_a_tag_reads_no_counts(
    client, django_assert_max_num_queries
):
    tag = make_tag()
    counts = [
        DailyLatency(
            day=date(2026, 1, 1) + timedelta(days=day),
            knowledge_base=make_knowledge_base(),
            tag=tag,
            outcome="answered",
            answers=3,
            bucket=1,
        )
        for day in range(20)
    ]
    DailyLatency.objects.bulk_create(counts)
    entry = make_entry(product_line=tag)
    set_role(admin := make_user(role=None), role=Role.ADMIN)
    client.force_login(admin)
    page = reverse("admin:kb_tag_delete", args=[tag.pk])

    with django_assert_max_num_queries(8):
        asked = client.get(page).content.decode()
    client.post(page, {"post": "yes"})

    assert str(tag) in asked
    assert "2026-01-01" not in asked
    assert not DailyLatency.objects.exists()
    entry.refresh_from_db()
    assert entry.product_line is None


def test_many_entries_are_tagged_at_once():
    entries = [make_entry(), make_entry("Loans take a week.", product_line=make_tag())]
    change = BulkChange(Action.PRODUCT_LINE, make_tag().pk)

    report = change_visible([e.pk for e in entries], change, by=make_curator())

    assert (report.changed, report.unchanged) == (1, 1)
    assert Entry.objects.filter(product_line=make_tag()).count() == 2
    wrong = BulkChange(Action.PRODUCT_LINE, retail().pk)
    with pytest.raises(InvalidKnowledgeError, match="There is no product_line"):
        change_visible([entries[0].pk], wrong, by=make_curator())


def test_an_import_tags_what_it_brings():
    upload = Upload(
        file=io.BytesIO(b"question,text\n,A card costs 12 euros.\n"),
        name="prices.csv",
        knowledge_base=make_knowledge_base(),
        audience=make_audience(),
        product_line=make_tag(),
        line_of_business=retail(),
    )

    begun = start_import(upload, by=make_curator())
    run_import(begun.pk, apply=True, writing=lambda *_: transaction.atomic())

    entry = Entry.objects.get()
    assert (entry.product_line, entry.line_of_business) == (make_tag(), retail())


def test_tags_are_written_read_and_filtered_by_over_rest(api):
    client = api(make_curator())
    make_tag(), retail()
    make_entry("Untagged.")

    made = client.post(
        "/api/v1/entries",
        {
            "text": "A card costs 12 euros.",
            "audience": make_audience().slug,
            "product_line": "gold-card",
        },
        format="json",
    ).json()
    changed = client.patch(
        f"/api/v1/entries/{made['id']}", {"line_of_business": "retail"}, format="json"
    ).json()
    found = client.get("/api/v1/entries?product_line=gold-card").json()["results"]
    refused = client.patch(
        f"/api/v1/entries/{made['id']}", {"product_line": "retail"}, format="json"
    )

    assert (changed["product_line"], changed["line_of_business"]) == (
        "gold-card",
        "retail",
    )
    assert [entry["id"] for entry in found] == [made["id"]]
    assert refused.status_code == 400


def test_a_deleted_tag_leaves_its_entries():
    entry = make_entry(product_line=make_tag("old", make_user()))
    Tag.objects.get(slug="old").delete()

    entry.refresh_from_db()
    assert entry.product_line is None


def test_curators_make_tags_and_name_experts_over_rest(api):
    expert = make_user(Role.SME, username="olga")
    make_user(username="agent")
    client = api(make_curator())
    new = {"slug": "gold", "name": "Gold card", "facet": "product_line"}

    made = client.post("/api/v1/tags", new, format="json")
    again = client.post("/api/v1/tags", new, format="json")
    changed = client.patch("/api/v1/tags/gold", {"experts": ["olga"]}, format="json")

    assert (made.status_code, again.status_code) == (201, 409)
    assert changed.json() == {**new, "experts": ["olga"]}
    assert [*Tag.objects.of_expert(expert)] == [Tag.objects.get(slug="gold")]
    assert api(expert).get("/api/v1/tags").json() == [changed.json()]
    assert api(expert).post("/api/v1/tags", new, format="json").status_code == 403
    agents = client.patch("/api/v1/tags/gold", {"experts": ["agent"]}, format="json")
    assert agents.status_code == 400
    assert client.patch("/api/v1/tags/none", {}, format="json").status_code == 404


def test_a_curator_names_experts_in_the_admin(client):
    boss, expert = make_curator(), make_user(Role.SME, username="olga")
    make_user(Role.AGENT, username="agent")
    boss.is_staff = True
    boss.save()
    client.force_login(boss)

    form = client.get("/admin/kb/tag/add/").content.decode()
    given = {"name": "Gold", "slug": "gold", "facet": "product_line"}
    client.post("/admin/kb/tag/add/", {**given, "experts": [expert.pk]})

    assert "olga</option>" in form
    assert "agent</option>" not in form
    assert [*Tag.objects.get().experts.all()] == [expert]
    assert "olga" in client.get("/admin/kb/tag/?experts=some").content.decode()
    assert "olga" not in client.get("/admin/kb/tag/?experts=none").content.decode()
