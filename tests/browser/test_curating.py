"""A curator finds, edits, verifies and retires an entry, by keyboard."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from kb.entries.states import mark_for_review
from kb.models import Entry
from qa.inbox.services import flag_entry
from tests.factories import make_curator, make_entry, make_user

from .conftest import OURS_IN_ADMIN, choose_by_typing, violations

pytestmark = pytest.mark.usefixtures("knowledge")


def test_an_entry_is_found_by_a_misspelt_word_edited_compared_and_restored(curator):
    page = curator.open("/admin/kb/entry/")
    page.keyboard.press("/")
    page.keyboard.type("witdrawals abroad")
    page.keyboard.press("Enter")
    expect(page.get_by_text("these are close in meaning")).to_be_visible()
    page.get_by_role("link", name="Cash withdrawals abroad").press("Enter")
    text = page.get_by_label("Text")
    text.fill("Cash withdrawals abroad cost 4 percent of the amount.")
    page.get_by_label("Reason").fill("Price list of May.")
    page.get_by_role("button", name="Save and continue editing").press("Enter")
    expect(page.get_by_text("was changed successfully")).to_be_visible()

    page.get_by_role("link", name=re.compile("History$")).press("Enter")
    expect(
        page.get_by_role("row").filter(has_text="Price list of May.")
    ).to_contain_text("carla")
    page.get_by_role("button", name="Compare the two").press("Enter")
    expect(page.locator("ins")).to_have_text("4")
    expect(page.locator("del")).to_have_text("3")
    page.get_by_role("link", name="Restore revision 1").press("Enter")
    page.get_by_role("button", name="Confirm").press("Enter")
    restored = page.get_by_role("row").filter(has_text="Restored revision 1.")
    expect(restored).to_contain_text("cost 3 percent")


def test_a_new_entry_is_written_and_found(curator):
    page = curator.open("/admin/kb/entry/")
    page.get_by_title("Add entry").press("Enter")
    page.get_by_label("Text").fill("A lounge ticket costs 30 euros.")
    chosen = page.get_by_label("Audience").locator("option:checked")
    expect(chosen).to_have_text("Everyone")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_text("was added successfully")).to_be_visible()

    page.keyboard.press("/")
    page.keyboard.type("lounge ticket")
    page.keyboard.press("Enter")
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="Cash withdrawals")).to_have_count(0)
    expect(rows.filter(has_text="A lounge ticket")).to_be_visible()
    assert Entry.objects.get(text__startswith="A lounge").audience.slug == "everyone"


def test_who_saves_as_verified_what_contradicts_reads_that_it_is_not(curator):
    page = curator.open("/admin/kb/entry/add/")
    said = "The Tarn Gold card costs 80 euros a year."
    page.get_by_label("Text").fill(said)
    choose_by_typing(page.get_by_label("State"), "verified")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(
        page.get_by_text("The entry is saved, but it is not verified")
    ).to_be_visible()
    page.get_by_role("link", name="compare").press("Enter")
    expect(page.get_by_role("region", name="A: entry")).to_be_visible()
    page = curator.open(f"/knowledge/entries/{Entry.objects.get(text=said).pk}")
    expect(page.get_by_text("Nobody has verified this.")).to_be_visible()


def test_an_entry_is_verified_and_retired_with_a_reason_and_that_is_undone(curator):
    entry = make_entry("A lounge ticket costs 30 euros.")
    mark_for_review(entry_id=entry.pk, by=make_curator())
    page = curator.open(f"/knowledge/entries/{entry.pk}")
    page.get_by_role("button", name="Verify").press("Enter")
    expect(page.get_by_text("✓ Verified")).to_be_visible()

    page = curator.open("/admin/kb/entry/")
    row = page.get_by_role("row").filter(has_text="A lounge ticket")
    row.get_by_role("checkbox").press("Space")
    page.get_by_role("combobox", name="action").select_option(label="Retire")
    page.get_by_role("button", name="Run").press("Enter")
    page.get_by_label("Reason").fill("The lounge has closed.")
    page.get_by_role("button", name="Confirm").press("Enter")
    expect(page.get_by_text("1 entry retired.")).to_be_visible()

    page = curator.open(f"/knowledge/entries/{entry.pk}")
    expect(page.get_by_text("The lounge has closed.")).to_be_visible()
    restore = page.get_by_role("button", name="Restore")
    expect(restore).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("✓ Verified")).to_be_visible()


def test_what_has_expired_gets_a_later_day_under_due_and_on_its_page(curator):
    entry = make_entry("A lounge ticket costs 30 euros.", valid_until=timezone.now())
    page = curator.open("/admin/kb/entry/due")
    expect(page.get_by_role("button", name="Still true")).to_have_count(0)
    day = page.get_by_label("Valid until")
    expect(day).to_be_focused()
    day.fill("2099-12-31")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Valid until 2099-12-31: A lounge ticket")).to_be_visible()

    page = curator.open(f"/knowledge/entries/{entry.pk}")
    day = page.get_by_label("Valid until")
    expect(day).to_have_value("2099-12-31")
    day.fill("")
    page.keyboard.press("Enter")
    expect(page.get_by_text("no date is set")).to_be_visible()


def test_still_true_is_undone_from_the_message(curator):
    entry = Entry.objects.get(text__startswith="Cash withdrawals")
    mark_for_review(entry_id=entry.pk, by=make_curator())
    page = curator.open("/admin/kb/entry/due")
    page.get_by_role("button", name="Still true").press("Enter")
    expect(page.get_by_text("Still true: Cash withdrawals")).to_be_visible()
    assert violations(page, OURS_IN_ADMIN) == []
    page.get_by_role("button", name="Undo").press("Enter")
    expect(page.get_by_text("Undone: Still true: Cash withdrawals")).to_be_visible()
    expect(page.get_by_role("button", name="Still true")).to_be_visible()
    entry.refresh_from_db()
    assert entry.state == Entry.State.NEEDS_REVIEW

    page = curator.open(f"/knowledge/entries/{entry.pk}")
    page.get_by_role("button", name="Verify").press("Enter")
    expect(page.locator(".notice[role=status]")).to_contain_text("Verified.")
    assert violations(page) == []
    page.get_by_role("button", name="Undo").press("Enter")
    expect(page.get_by_text("Undone: Verified.", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Verify")).to_be_visible()


def test_what_is_due_is_retired_and_that_is_undone_from_the_message(curator):
    entry = Entry.objects.get(text__startswith="Cash withdrawals")
    mark_for_review(entry_id=entry.pk, by=make_curator())
    page = curator.open("/admin/kb/entry/due")
    page.get_by_role("button", name="Retire").press("Enter")
    expect(page.get_by_text("Retired: Cash withdrawals")).to_be_visible()
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Undone: Retired: Cash withdrawals")).to_be_visible()
    expect(page.get_by_role("button", name="Retire")).to_be_visible()
    entry.refresh_from_db()
    assert entry.state == Entry.State.NEEDS_REVIEW


def test_what_is_verified_in_bulk_is_undone_from_the_message(curator):
    entries = Entry.objects.filter(text__contains="Tarn")
    for entry in entries:
        mark_for_review(entry_id=entry.pk, by=make_curator())
    page = curator.open("/admin/kb/entry/?state__exact=needs_review")
    for name in ("Gold", "Silver"):
        row = page.get_by_role("row").filter(has_text=f"Tarn {name}")
        row.get_by_role("checkbox").press("Space")
    page.get_by_role("combobox", name="action").select_option(label="Verify")
    page.get_by_role("button", name="Run").press("Enter")
    page.get_by_role("button", name="Confirm").press("Enter")
    expect(page.get_by_text("2 entries verified.")).to_be_visible()
    assert violations(page, "#main ul:has(.undo)") == []
    silver = entries.get(text__contains="Silver")
    flag_entry(entry_id=silver.pk, by=make_user())

    page.get_by_role("button", name="Undo").press("Enter")

    expect(page.get_by_text("Undone: 2 entries verified.")).to_be_visible()
    expect(page.get_by_text("was flagged since")).to_be_visible()
    assert page.url.endswith("/admin/kb/entry/?state__exact=needs_review")
    states = {entry.text[9:13]: entry.state for entry in entries.all()}
    assert states == {"Gold": "needs_review", "Silv": "verified"}
