from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.urls import reverse

from accounts.roles import Role
from jobs.models import Job
from kb.admin.difference import word_difference
from kb.embedding import active_model
from kb.models import Audience, Document, EmbeddingModel, Entry, Section
from kb.services.entries import edit_entry
from kb.services.entry_values import UNVERIFIED_CONFIDENCE
from qa.models import Answer, AnswerEvidence
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entries,
    make_entry,
    make_knowledge_base,
    make_user,
)

pytestmark = pytest.mark.django_db

LIST = "/admin/kb/entry/"


@pytest.fixture
def boss(client):
    """Return a client signed in as a superuser."""
    user = User.objects.create_superuser("boss")
    client.force_login(user)
    client.user = user
    return client


@pytest.fixture
def curator(client):
    """Return a client signed in as a curator who may use the admin."""
    user = make_curator()
    user.is_staff = True
    user.save()
    client.force_login(user)
    client.user = user
    return client


def _form(entry: Entry | None = None, **changes):
    """What the browser would post for an entry, with some fields changed."""
    values = {
        "knowledge_base": make_knowledge_base().pk,
        "question": "",
        "text": "A fact.",
        "state": "draft",
        "confidence": "0.8",
        "audience": make_audience().pk,
        "language": "en",
        "origin": "manual",
        "valid_until_0": "",
        "valid_until_1": "",
        "reason": "",
    }
    if entry is not None:
        values |= {
            "question": entry.question,
            "text": entry.text,
            "state": entry.state,
            "confidence": str(entry.confidence),
            "audience": entry.audience_id,
            "revision": entry.revisions.latest("number").number,
        }
    revisions = {
        "revisions-TOTAL_FORMS": "0",
        "revisions-INITIAL_FORMS": "0",
    }
    return {**values, **revisions, **changes}


def _save(client, entry: Entry | None = None, **changes):
    address = f"{LIST}{entry.pk}/change/" if entry else f"{LIST}add/"
    return client.post(address, _form(entry, **changes))


@pytest.mark.parametrize("rows", [1, 30])
def test_list_costs_the_same_queries_for_any_number_of_rows(
    boss, rows, django_assert_max_num_queries
):
    make_entries([f"Fact {n}." for n in range(rows)])
    boss.get(LIST)

    with django_assert_max_num_queries(12) as captured:
        response = boss.get(LIST)

    assert response.status_code == 200
    assert response.content.count(b"Fact ") >= rows
    statements = " ".join(query["sql"] for query in captured.captured_queries)
    assert "search_vector" not in statements
    assert "vector" not in statements


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


def test_entry_written_in_the_admin_has_revision_and_vector(boss):
    response = _save(boss, text="Cash costs 3 percent.", reason="New price list.")

    entry = Entry.objects.get()
    assert response.status_code == 302, response.context["adminform"].form.errors
    assert (entry.text, entry.confidence) == ("Cash costs 3 percent.", 0.8)
    assert entry.embeddings.count() == 1
    revision = entry.revisions.get()
    assert (revision.author, revision.reason) == (boss.user, "New price list.")


def test_choosing_the_state_verified_verifies(boss):
    _save(boss, state="verified")

    entry = Entry.objects.get()
    assert (entry.state, entry.confidence) == ("verified", 1.0)
    assert entry.verified_by == boss.user


def test_edit_goes_through_the_services(boss):
    entry = make_entry("It costs 5 euros.")

    response = _save(boss, entry, text="It costs 6 euros.", reason="Dearer.")

    entry.refresh_from_db()
    assert response.status_code == 302, response.context["errors"]
    assert (entry.text, entry.verified_by) == ("It costs 6 euros.", boss.user)
    assert entry.revisions.latest("number").reason == "Dearer."


def test_taking_the_state_verified_away_lowers_confidence(boss):
    entry = make_entry()

    _save(boss, entry, state="needs_review")

    entry.refresh_from_db()
    assert (entry.state, entry.confidence) == ("needs_review", UNVERIFIED_CONFIDENCE)


@pytest.mark.parametrize(
    ("before", "after"),
    [("verified", "retired"), ("retired", "verified"), ("retired", "draft")],
)
def test_choosing_a_state_retires_and_restores(boss, before, after):
    entry = make_entry(**({"state": "retired"} if before == "retired" else {}))

    response = _save(boss, entry, state=after)

    entry.refresh_from_db()
    assert response.status_code == 302, response.context["errors"]
    assert entry.state == after


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"text": "bell \x07"}, "U+0007"),
        ({"text": "x" * 8001}, "may have 8000"),
        ({"text": " "}, "required"),
        ({"confidence": "0"}, "not in (0, 1]"),
        ({"confidence": "1"}, "what a person verified"),
        ({"confidence": "nan"}, "number"),
        ({"document": "999999"}, "valid choice"),
        ({"section": "999999"}, "valid choice"),
        ({"revision": "9", "text": "New."}, "at revision 1"),
    ],
)
def test_what_the_services_refuse_is_told_in_the_form(boss, changes, said):
    entry = make_entry("It stays.", state="draft")

    response = _save(boss, entry, **changes)

    entry.refresh_from_db()
    assert response.status_code == 200
    errors = str(response.context["adminform"].form.errors)
    assert said in errors.replace("&#x27;", "'")
    assert entry.text == "It stays."
    assert entry.revisions.count() == 1


def test_what_a_rehearsal_wrote_is_not_there_when_the_form_is_refused(boss):
    response = _save(boss, text="A fact.", confidence="1")

    assert response.status_code == 200
    assert not Entry.objects.exists()


@pytest.mark.parametrize(
    ("action", "state"),
    [
        ("verify", "verified"),
        ("mark_for_review", "needs_review"),
        ("retire", "retired"),
    ],
)
def test_actions_call_the_services_for_each_entry(boss, action, state):
    made = [make_entry("One.", state="draft"), make_entry("Two.", state="in_review")]

    boss.post(
        LIST, {"action": action, "_selected_action": [entry.pk for entry in made]}
    )

    assert set(Entry.objects.values_list("state", flat=True)) == {state}
    assert [entry.revisions.latest("number").author for entry in made] == [
        boss.user
    ] * 2


def test_action_that_fails_for_one_entry_is_done_for_the_others(boss):
    retired = make_entry("One.", state="retired")
    draft = make_entry("Two.", state="draft")

    response = boss.post(
        LIST,
        {"action": "verify", "_selected_action": [retired.pk, draft.pk]},
        follow=True,
    )

    said = [str(message) for message in response.context["messages"]]
    draft.refresh_from_db()
    assert draft.state == "verified"
    assert said == [
        f"Entry {retired.pk} is retired; restore it first.",
        "1 entry verified.",
    ]


def test_restore_action_undoes_retirements(boss):
    entry = make_entry(state="retired")

    boss.post(LIST, {"action": "restore", "_selected_action": [entry.pk]})

    entry.refresh_from_db()
    assert entry.state == "verified"


def test_list_is_searched_and_filtered(boss):
    make_entry("The gold card costs 72 euros.")
    make_entry("Cash abroad costs 3 percent.", state="draft")

    def found(query: str) -> int:
        count: int = boss.get(f"{LIST}?{query}").context["cl"].result_count
        return count

    assert found("q=cards") == 1
    assert found("q=cost") == 2
    assert found("state__exact=draft") == 1
    assert found("audience=everyone") == 2
    assert found("expiry=expired") == 0
    assert found("expiry=current") == 2
    assert found("q=%00") == 2


def test_list_shows_who_verified_and_when_it_expires(boss):
    make_entry("Old.", valid_until=datetime(2020, 5, 4, tzinfo=UTC))
    make_entry("Young.", valid_until=datetime(2099, 5, 4, tzinfo=UTC))

    page = boss.get(LIST).content.decode()

    assert "expired 2020-05-04" in page
    assert "2099-05-04" in page
    assert f"curator, {datetime.now(UTC):%Y-%m-%d}" in page


def test_curator_sees_and_changes_only_own_audiences(curator):
    fraud = make_audience("fraud-desk", groups=["fraud-desk"])
    secret = make_entry("Freeze the account first.", audience=fraud)
    hidden = make_document("Fraud manual", audience=fraud)
    open_entry = make_entry("Everyone may know.")

    listed = curator.get(LIST)
    opened = curator.get(f"{LIST}{open_entry.pk}/change/")

    assert b"Freeze" not in listed.content
    assert b"fraud-desk" not in listed.content
    assert b"Everyone may know." in listed.content
    assert b"Fraud-Desk" not in opened.content
    assert curator.get(f"{LIST}{secret.pk}/change/").status_code == 302
    assert curator.get(f"{LIST}{secret.pk}/compare").status_code == 404
    assert curator.get(f"/admin/kb/document/{hidden.pk}/change/").status_code == 302
    refused = _save(curator, open_entry, audience=fraud.pk)
    assert "audience" in refused.context["adminform"].form.errors


def test_sme_looks_and_does_not_change(client):
    call_command("migrate", verbosity=0)  # grants what the roles may do
    sme = make_user(Role.SME)
    sme.is_staff = True
    sme.save()
    client.force_login(sme)
    entry = make_entry("A fact.")

    looked = client.get(f"{LIST}{entry.pk}/change/")
    changed = _save(client, entry, text="Another.")

    assert looked.status_code == 200
    assert changed.status_code == 403


def test_history_shows_every_revision_and_what_changed(boss):
    entry = make_entry("It costs five euros.")
    edit_entry(
        entry_id=entry.pk,
        author=boss.user,
        may_verify=True,
        text="It costs six euros.",
    )

    page = boss.get(f"{LIST}{entry.pk}/change/").content.decode()
    compared = boss.get(f"{LIST}{entry.pk}/compare?old=1&new=2").content.decode()

    assert f"{LIST}{entry.pk}/compare?old=1&new=2" in page
    assert ">five </del>" in compared
    assert ">six </ins>" in compared


@pytest.mark.parametrize("query", ["old=9&new=1", "old=x", "new=%00"])
def test_comparing_what_is_not_there_is_not_found(boss, query):
    entry = make_entry()

    assert boss.get(f"{LIST}{entry.pk}/compare?{query}").status_code == 404


def test_history_costs_the_same_queries_for_any_number_of_revisions(
    boss, django_assert_max_num_queries
):
    entry = make_entry("Version 0.")
    for number in range(1, 8):
        edit_entry(
            entry_id=entry.pk,
            author=boss.user,
            may_verify=True,
            text=f"Version {number}.",
        )

    with django_assert_max_num_queries(25):
        boss.get(f"{LIST}{entry.pk}/change/")


def test_list_counts_the_answers_that_used_an_entry(boss):
    entry, other = make_entry("Used."), make_entry("Unused.")
    for _ in range(2):
        answer = Answer.objects.create(
            knowledge_base=entry.knowledge_base, channel="api", question="Used?"
        )
        AnswerEvidence.objects.create(
            answer=answer,
            entry=entry,
            revision=entry.revisions.get(),
            rank=1,
            role="cited",
            distance=0.5,
            confidence=1.0,
        )

    rows = boss.get(LIST).context["cl"].result_list

    assert {row.pk: row.use_count for row in rows} == {entry.pk: 2, other.pk: 0}


def test_audiences_are_listed_to_their_members_and_managers(curator):
    make_audience("everyone")
    make_audience("fraud-desk", groups=["fraud-desk"])
    manager = make_user(Role.ADMIN)
    manager.is_staff = True
    manager.save()

    as_curator = curator.get("/admin/kb/audience/").content
    curator.force_login(manager)
    as_manager = curator.get("/admin/kb/audience/").content

    assert (b"fraud-desk" in as_curator, b"fraud-desk" in as_manager) == (False, True)


def test_curator_makes_no_audience(curator):
    assert curator.get("/admin/kb/audience/add/").status_code == 403


def test_erasing_an_entry_takes_its_revisions_along(boss):
    entry = make_entry()

    response = boss.post(f"{LIST}{entry.pk}/delete/", {"post": "yes"})

    assert response.status_code == 302
    assert not Entry.objects.exists()


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
    assert "hangs below itself" in str(
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


def test_word_difference_loses_nothing():
    old, new = "It costs five euros  a year.", "It costs six euros\nor more."

    pieces = word_difference(old, new)

    assert "".join(piece.text for piece in pieces if piece.kind != "new") == old
    assert "".join(piece.text for piece in pieces if piece.kind != "gone") == new
    assert any(piece.kind == "same" for piece in pieces)
