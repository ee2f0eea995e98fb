"""Two entries that disagree are found, decided and read afterwards, by keyboard."""

import pytest
from playwright.sync_api import expect

from kb.conflicts.background import KIND
from kb.conflicts.finding import find_entry_conflicts
from kb.entries.states import mark_for_review
from kb.models import Conflict, Entry
from tests.factories import make_curator, make_entry

from .conftest import violations, work

FIVE = "The Savings account costs 5 euros a month."
SEVEN = "The Savings account costs 7 euros a month."

pytestmark = pytest.mark.usefixtures("knowledge")


def test_a_contradiction_is_found_and_decided_and_the_losing_entry_says_why(curator):
    make_entry(FIVE)
    wrong = make_entry(SEVEN)
    page = curator.open("/admin/kb/conflict/")
    page.get_by_role("link", name="Check now").press("Enter")
    page.get_by_role("button", name="Confirm").press("Enter")
    expect(page.get_by_text("The comparison has begun")).to_be_visible()
    work(KIND)
    page.reload()
    row = page.get_by_role("row").filter(has_text=SEVEN)
    row.get_by_role("link", name=FIVE).press("Enter")

    right = page.get_by_role("region", name="A: entry")
    expect(right.locator("mark")).to_have_text("5 euros")
    button = right.get_by_role("button", name="A is right: retire the other")
    button.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("reason")
    curator.complaints.clear()  # Chromium reports the 400 itself
    page.get_by_label("Reason").fill("The price list of May says so.")
    button.press("Enter")

    expect(page.get_by_text("overridden.")).to_be_visible()
    expect(page.get_by_role("link", name=SEVEN)).to_have_count(0)
    page = curator.open(f"/knowledge/entries/{wrong.pk}")
    expect(page.get_by_text("This is retired.")).to_be_visible()
    expect(page.get_by_text("The price list of May says so.")).to_be_visible()
    curator.open("/")
    page = curator.ask("What does the Savings account cost?")
    expect(page.locator(".result-main")).not_to_contain_text("7 euros")
    assert Conflict.objects.get().state == Conflict.State.OVERRIDDEN


def test_what_is_contradicted_is_verified_only_once_that_is_decided(curator):
    make_entry(FIVE)
    entry = make_entry(SEVEN)
    mark_for_review(entry_id=entry.pk, by=make_curator())
    find_entry_conflicts(entry.pk)

    page = curator.open(f"/knowledge/entries/{entry.pk}")
    expect(page.get_by_label("Open conflicts")).to_contain_text(FIVE)
    assert violations(page) == []
    page.get_by_role("button", name="Verify").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("first")
    curator.complaints.clear()  # Chromium reports the 409 itself
    page = curator.open("/admin/kb/entry/due")
    page.get_by_role("button", name="Still true").press("Enter")
    expect(page.get_by_text("first. Open conflicts")).to_be_visible()
    entry.refresh_from_db()
    assert entry.state == Entry.State.NEEDS_REVIEW

    page = curator.open(f"/knowledge/entries/{entry.pk}")
    page.get_by_role("link", name="Compare and decide").press("Enter")
    page.get_by_label("Reason").fill("One is of last year.")
    page.get_by_role("button", name="Keep both").press("Enter")
    expect(page.get_by_text("both kept.")).to_be_visible()
    page.get_by_role("button", name="Undo").press("Enter")
    expect(page.get_by_text("Undone")).to_be_visible()
    page = curator.open(f"/knowledge/entries/{entry.pk}")
    page.get_by_role("link", name="Compare and decide").press("Enter")
    page.get_by_label("Reason").fill("One is of last year.")
    page.get_by_role("button", name="Keep both").press("Enter")
    expect(page.get_by_text("both kept.")).to_be_visible()
    page = curator.open(f"/knowledge/entries/{entry.pk}")
    page.get_by_role("button", name="Verify").press("Enter")
    expect(page.get_by_text("✓ Verified")).to_be_visible()


def test_of_two_that_say_the_same_one_is_kept(curator):
    kept = make_entry("Blocking a card is free of charge.")
    other = make_entry("There is no charge for blocking a card.")
    find_entry_conflicts(other.pk)
    page = curator.open("/inbox?kind=conflict")
    page.get_by_role("link", name=kept.text).press("Enter")
    page.get_by_role("button", name="Merge into A").press("Enter")
    expect(page.get_by_text("merged.")).to_be_visible()

    kept.refresh_from_db()
    other.refresh_from_db()
    assert {kept.state, other.state} == {Entry.State.VERIFIED, Entry.State.RETIRED}
