"""Documents, sections, audiences and embedding models in the admin."""

import pytest
from django.urls import reverse

from accounts.roles import Role
from jobs.models import Job
from kb.embedding.services import active_model
from kb.models import Audience, Document, EmbeddingModel, KnowledgeBase, Section
from tests.factories import (
    make_audience,
    make_document,
    make_entry,
    make_knowledge_base,
    make_staff,
)

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_pages_of_every_kind_open(boss):
    document = make_document()
    Section.objects.create(document=document, heading="Fees", position=0)
    entry = make_entry(document=document)
    addresses = [
        reverse(f"admin:kb_{model}_{page}", args=arguments)
        for model, row in (
            ("entry", entry),
            ("document", document),
            ("audience", entry.audience),
            ("knowledgebase", entry.knowledge_base),
            ("embeddingmodel", active_model()),
        )
        for page, arguments in (("changelist", []), ("change", [row.pk]))
    ]
    addresses += [
        reverse(f"admin:kb_{model}_add")
        for model in ("entry", "document", "audience", "knowledgebase")
    ]

    statuses = {address: boss.get(address).status_code for address in addresses}

    assert statuses == dict.fromkeys(addresses, 200)


def test_audiences_are_listed_to_their_members_and_managers(curator):
    make_audience("everyone")
    make_audience("fraud-desk", groups=["fraud-desk"])
    manager = make_staff(Role.ADMIN)

    as_curator = curator.get("/admin/kb/audience/").content
    curator.force_login(manager)
    as_manager = curator.get("/admin/kb/audience/").content

    assert (b"fraud-desk" in as_curator, b"fraud-desk" in as_manager) == (False, True)


def test_curator_makes_no_audience(curator):
    assert curator.get("/admin/kb/audience/add/").status_code == 403


def _sections(document, rows):
    kept = [row for row in rows if "id" in row]
    values = {
        "knowledge_base": document.knowledge_base_id,
        "title": document.title,
        "source": document.source,
        "audience": document.audience_id,
        "sections-TOTAL_FORMS": len(rows),
        "sections-INITIAL_FORMS": len(kept),
    }
    for number, row in enumerate([*kept, *(row for row in rows if "id" not in row)]):
        for name, value in {"document": document.pk, **row}.items():
            values[f"sections-{number}-{name}"] = value
    return values


def test_sections_are_added_moved_and_removed_as_one_tree(boss):
    document = make_document()
    fees = Section.objects.create(document=document, heading="Fees", position=0)
    cash = Section.objects.create(document=document, heading="Cash", position=1)
    old = Section.objects.create(document=document, heading="Old", position=2)
    address = f"/admin/kb/document/{document.pk}/change/"

    response = boss.post(
        address,
        _sections(
            document,
            [
                {"id": fees.pk, "heading": "All fees", "position": 1},
                {"id": cash.pk, "heading": "Cash", "parent": fees.pk, "position": 0},
                {"id": old.pk, "heading": "Old", "position": 2, "DELETE": "on"},
                {"heading": "Preface", "position": 0},
            ],
        ),
    )

    assert response.status_code == 302, response.context["errors"]
    rows = document.sections.order_by("parent__heading", "position")
    assert set(rows.values_list("heading", "parent__heading", "position")) == {
        ("Cash", "All fees", 0),
        ("Preface", None, 0),
        ("All fees", None, 1),
    }


def test_section_below_itself_is_refused(boss):
    document = make_document()
    fees = Section.objects.create(document=document, heading="Fees", position=0)

    response = boss.post(
        f"/admin/kb/document/{document.pk}/change/",
        _sections(
            document,
            [{"id": fees.pk, "heading": "Fees", "parent": fees.pk, "position": 0}],
        ),
    )

    assert response.status_code == 200
    assert "is below itself" in str(
        response.context["inline_admin_formsets"][0].formset.non_form_errors()
    )
    assert document.sections.count() == 1


def test_document_and_audience_are_written_through_the_services(boss):
    boss.post(
        "/admin/kb/audience/add/",
        {"slug": "leads", "name": "Team leads", "everyone": "on"},
    )
    audience = Audience.objects.get(slug="leads")
    response = boss.post(
        "/admin/kb/document/add/",
        {
            "knowledge_base": make_knowledge_base().pk,
            "title": " Price list ",
            "source": "",
            "audience": audience.pk,
            "sections-TOTAL_FORMS": 1,
            "sections-INITIAL_FORMS": 0,
            "sections-0-heading": "Fees",
        },
    )

    assert response.status_code == 302, response.context["errors"]
    document = Document.objects.get()
    assert (document.title, document.created_by) == ("Price list", boss.user)
    assert document.sections.get().heading == "Fees"


def test_switching_the_embedding_model_is_a_job(boss):
    active_model()
    candidate = EmbeddingModel.objects.create(
        name="other", fingerprint="f" * 64, dimensions=8
    )

    boss.post(
        "/admin/kb/embeddingmodel/",
        {"action": "switch", "_selected_action": [candidate.pk]},
    )

    assert Job.objects.get().kind == "kb.embed"


@pytest.mark.parametrize("how", ["one", "chosen"])
def test_an_audience_that_holds_what_one_may_not_see_is_not_deleted(client, how):
    manager = make_staff(Role.ADMIN)
    client.force_login(manager)
    audience = make_audience("board", groups=["board"])
    make_entry("The limit is 900 euros.", audience=audience)
    free = make_audience("free", groups=["free"])

    def delete(row):
        if how == "one":
            address = reverse("admin:kb_audience_delete", args=[row.pk])
            return client.post(address, {"post": "yes"}, follow=True)
        said = {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"}
        return client.post(reverse("admin:kb_audience_changelist"), said, follow=True)

    refused, deleted = delete(audience), delete(free)

    assert "that you may not see still belongs to it" in refused.content.decode()
    assert "may not see still" not in deleted.content.decode()
    left = set(Audience.objects.values_list("slug", flat=True))
    assert ("board" in left, "free" in left) == (True, False)


def test_what_keeps_rows_from_being_deleted_is_counted_where_it_is_much(
    client, monkeypatch
):
    monkeypatch.setattr("accounts.base_admin._LISTED", 1)
    monkeypatch.setattr("accounts.base_admin._COUNTED", 2)
    client.force_login(make_staff(Role.ADMIN))
    many, one = make_audience("many"), make_audience("one")
    for number in range(3):
        make_entry(f"Card {number} costs 9 euros.", audience=many)
    make_entry("The limit is 900 euros.", audience=one)

    def page(audience):
        address = reverse("admin:kb_audience_delete", args=[audience.pk])
        return client.get(address).content.decode()

    assert "more than 2 entries" in page(many)
    assert "Card 1 costs" not in page(many)
    assert "would result in deleting related objects" in page(one)  # Django's own


@pytest.mark.parametrize(
    ("language", "embedder", "is_told"),
    [("en", "bundled", False), ("de", "bundled", True), ("de", "another", False)],
)
def test_a_language_that_the_embedder_does_not_read_is_told(
    boss, language, embedder, is_told
):
    model = active_model()
    EmbeddingModel.objects.filter(pk=model.pk).update(name=embedder)
    form = {
        "name": "Town hall", "slug": "town", "language": language,
        "when_overdue": "mark", "overdue_grace_days": 30,
        "roles-TOTAL_FORMS": 0, "roles-INITIAL_FORMS": 0,
    }  # fmt: skip

    page = boss.post("/admin/kb/knowledgebase/add/", form, follow=True)

    assert KnowledgeBase.objects.get(slug="town").language == language
    said = page.content.decode()
    assert ("The bundled models read English" in said) is is_told
