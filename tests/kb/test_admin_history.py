"""What an entry ever said, and what changed, in the admin."""

import pytest

from kb.admin.difference import word_difference
from kb.services.entries import edit_entry
from tests.factories import (
    make_entry,
)

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


def test_word_difference_loses_nothing():
    old, new = "It costs five euros  a year.", "It costs six euros\nor more."

    pieces = word_difference(old, new)

    assert "".join(piece.text for piece in pieces if piece.kind != "new") == old
    assert "".join(piece.text for piece in pieces if piece.kind != "gone") == new
    assert any(piece.kind == "same" for piece in pieces)
