"""Writing entries in the admin: everything goes through the services."""

from datetime import UTC, datetime

import pytest
from django.core.management import call_command
from django.utils import timezone

from accounts.roles import Role
from kb.entries.values import UNVERIFIED_CONFIDENCE
from kb.models import Entry
from tests.factories import (
    make_audience,
    make_document,
    make_entry,
    make_knowledge_base,
    make_staff,
)

pytestmark = pytest.mark.django_db

LIST = "/admin/kb/entry/"


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
    inlines = {
        f"{name}-{kind}_FORMS": "0"
        for name in ("revisions", "wordings")
        for kind in ("TOTAL", "INITIAL")
    }
    return {**values, **inlines, **changes}


def _save(client, entry: Entry | None = None, **changes):
    address = f"{LIST}{entry.pk}/change/" if entry else f"{LIST}add/"
    return client.post(address, _form(entry, **changes))


@pytest.fixture
def in_vienna():
    with timezone.override("Europe/Vienna"):
        yield


def test_the_only_knowledge_base_is_chosen_beforehand(boss):
    only = make_knowledge_base()
    chosen = [boss.get(f"{LIST}add/").context["adminform"].form["knowledge_base"]]
    make_knowledge_base(slug="other")
    chosen.append(boss.get(f"{LIST}add/").context["adminform"].form["knowledge_base"])

    assert [field.value() for field in chosen] == [only.pk, None]


def test_the_only_audience_that_one_is_in_is_chosen_beforehand(curator):
    def chosen():
        page = curator.get(f"{LIST}add/")
        return page.context["adminform"].form["audience"].value()

    only = make_audience()
    make_audience("vault", groups=["vault"])
    assert chosen() == only.pk
    make_audience("staff")
    assert chosen() is None


def test_a_new_entry_shows_nothing_that_only_a_saved_one_has(boss):
    new = boss.get(f"{LIST}add/").content.decode()
    saved = boss.get(f"{LIST}{make_entry().pk}/change/").content.decode()

    for section in ("Verified by", "Revisions"):
        assert section not in new
        assert section in saved
    assert "Verified entries have 1; no others do." in new


def test_entry_written_in_the_admin_has_revision_and_vector(boss):
    response = _save(boss, text="Cash costs 3 percent.", reason="New price list.")

    entry = Entry.objects.get()
    assert response.status_code == 302, response.context["adminform"].form.errors
    assert (entry.text, entry.confidence) == ("Cash costs 3 percent.", 0.8)
    assert entry.embeddings.count() == 1
    revision = entry.revisions.get()
    assert (revision.author, revision.reason) == (boss.user, "New price list.")


@pytest.mark.usefixtures("in_vienna")
def test_a_date_without_a_time_is_the_end_of_that_day(boss):
    _save(boss, valid_until_0="2031-01-31")
    end = datetime(2031, 1, 31, 22, 59, 59, tzinfo=UTC)
    entry = Entry.objects.get()
    assert entry.valid_until == end

    page = boss.get(f"{LIST}{entry.pk}/change/").content.decode()
    assert 'value="23:59:59"' in page
    _save(boss, entry, valid_until_0="2031-01-31", valid_until_1="12:00")
    entry.refresh_from_db()
    assert entry.valid_until == datetime(2031, 1, 31, 11, tzinfo=UTC)


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


def test_who_saves_a_contradiction_as_verified_reads_that_it_is_not(boss):
    make_entry("The gold card costs 72 euros a year.")
    entry = make_entry("The gold card costs 72 euros a year, as ever.")

    _save(boss, entry, text="The gold card costs 95 euros a year.")

    entry.refresh_from_db()
    assert entry.state == "needs_review"
    shown = boss.get(LIST).content.decode()
    assert "The entry is saved, but it is not verified" in shown


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
        ({"confidence": "0"}, "not at least 0.001 and below 1"),
        ({"confidence": "1"}, "means that a person verified it"),
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
    sme = make_staff(Role.SME)
    client.force_login(sme)
    entry = make_entry("A fact.")

    looked = client.get(f"{LIST}{entry.pk}/change/")
    changed = _save(client, entry, text="Another.")

    assert looked.status_code == 200
    assert changed.status_code == 403


def test_erasing_an_entry_takes_its_revisions_along(boss):
    entry = make_entry()

    response = boss.post(f"{LIST}{entry.pk}/delete/", {"post": "yes"})

    assert response.status_code == 302
    assert not Entry.objects.exists()
