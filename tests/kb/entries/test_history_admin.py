"""What an entry ever said, and what changed, in the admin."""

import pytest
from django.core.management import call_command
from django.db import connection

from accounts.roles import Role
from kb.entries.history_admin import word_difference
from kb.entries.services import edit_entry
from kb.models import Entry
from tests.factories import make_audience, make_entry, make_staff

pytestmark = pytest.mark.django_db

LIST = "/admin/kb/entry/"


def test_history_shows_every_revision_and_what_changed(boss):
    entry = make_entry("It costs five euros.")
    edit_entry(
        entry_id=entry.pk,
        author=boss.user,
        may_verify=True,
        text="It costs six euros.",
    )

    page = boss.get(f"{LIST}{entry.pk}/change/").content.decode()
    history = boss.get(f"{LIST}{entry.pk}/history/").content.decode()
    compared = boss.get(f"{LIST}{entry.pk}/compare?old=1&new=2").content.decode()

    assert f"{LIST}{entry.pk}/compare?old=1&new=2" in page
    assert ">five </del>" in compared
    assert ">six </ins>" in compared
    assert f"{LIST}{entry.pk}/revisions/1/restore" in history
    assert f"{LIST}{entry.pk}/revisions/2/restore" not in history


def test_a_revision_is_restored_once_it_was_asked_for_and_confirmed(boss):
    entry = make_entry("It costs five euros.")
    edit_entry(entry_id=entry.pk, author=None, may_verify=False, text="It costs six.")
    address = f"{LIST}{entry.pk}/revisions/1/restore"

    asked = boss.get(address).content.decode()
    entry.refresh_from_db()
    assert (entry.text, "It costs five euros." in asked) == ("It costs six.", True)
    done = boss.post(address, follow=True).content.decode()

    entry.refresh_from_db()
    assert entry.text == "It costs five euros."
    assert "restored to revision 1" in done
    assert boss.get(f"{LIST}{entry.pk}/revisions/9/restore").status_code == 404


def test_who_may_only_look_restores_nothing(client):
    entry = make_entry("It costs five euros.")
    looking = make_staff(Role.SME)
    call_command("migrate", "--verbosity", "0")  # gives the roles their permissions
    client.force_login(looking)

    page = client.get(f"{LIST}{entry.pk}/history/")
    refused = client.post(f"{LIST}{entry.pk}/revisions/1/restore")

    assert (page.status_code, refused.status_code) == (200, 403)
    assert "/restore" not in page.content.decode()


def test_the_history_names_who_wrote_past_the_services_and_no_audience_of_others(
    curator,
):
    hidden = make_audience("merger", groups=["merger"])
    entry = make_entry("First.")
    for audience in (hidden, make_audience()):
        edit_entry(entry_id=entry.pk, author=None, may_verify=False, audience=audience)
    Entry.objects.filter(pk=entry.pk).update(text="By hand.")
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")

    page = curator.get(f"{LIST}{entry.pk}/history/").content.decode()
    compared = curator.get(f"{LIST}{entry.pk}/compare?old=2&new=4")

    assert f"database user {connection.settings_dict['USER']}" in page
    assert "Merger" not in page
    assert compared.status_code == 404


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
    with django_assert_max_num_queries(12):
        boss.get(f"{LIST}{entry.pk}/history/")
    with django_assert_max_num_queries(12):
        boss.get(f"{LIST}{entry.pk}/compare?old=1&new=8")


def test_word_difference_loses_nothing():
    old, new = "It costs five euros  a year.", "It costs six euros\nor more."

    pieces = word_difference(old, new)

    assert "".join(piece.text for piece in pieces if piece.kind != "new") == old
    assert "".join(piece.text for piece in pieces if piece.kind != "gone") == new
    assert any(piece.kind == "same" for piece in pieces)
