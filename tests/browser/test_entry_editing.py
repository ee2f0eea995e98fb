"""A curator edits an entry on its own page, by keyboard."""

import pytest
from playwright.sync_api import expect

from accounts.roles import Role
from kb.entries.services import edit_entry
from kb.models import Entry
from qa.inbox.services import flag_entry
from tests.factories import make_curator, make_user

from .conftest import make_signed_up, violations_in_all_looks

pytestmark = pytest.mark.usefixtures("knowledge")


@pytest.fixture
def entry():
    return Entry.objects.get(text__startswith="Cash withdrawals")


def test_an_entry_is_edited_in_its_place_by_keys(curator, entry):
    page = curator.open(f"/knowledge/entries/{entry.pk}")
    page.keyboard.press("e")
    text = page.get_by_label("Text")
    expect(text).to_be_focused()
    expect(page.get_by_text("Saving creates a new version.")).to_be_visible()

    page.keyboard.press("Escape")
    edit = page.get_by_role("link", name="Edit", exact=True)
    expect(edit).to_be_focused()
    page.keyboard.press("Enter")
    text.fill("Cash withdrawals abroad cost 4 percent of the amount.")
    # What was typed is not left by a slip of the finger.
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.keyboard.press("Escape")
    expect(text).to_be_focused()
    page.keyboard.press("Control+Enter")

    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(edit).to_be_focused()
    expect(page.get_by_text("cost 4 percent").first).to_be_visible()
    expect(page.get_by_text("Changed text.")).to_be_visible()
    assert page.url.endswith(f"/knowledge/entries/{entry.pk}")
    entry.refresh_from_db()
    assert entry.text == "Cash withdrawals abroad cost 4 percent of the amount."


def test_what_an_entry_waited_for_is_counted_again_as_it_is_saved(curator, entry):
    flag_entry(entry_id=entry.pk, by=make_user(), note="4 percent now")
    page = curator.open(f"/knowledge/entries/{entry.pk}")
    expect(page.get_by_role("link", name="Inbox 1 waiting")).to_be_visible()
    page.keyboard.press("e")
    page.get_by_label("Text").fill("Cash withdrawals abroad cost 4 percent.")
    page.keyboard.press("Control+Enter")

    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_role("link", name="Inbox", exact=True)).to_be_visible()


def test_an_error_stays_in_the_form_and_a_comment_begun_stays_below_it(curator, entry):
    page = curator.open(f"/knowledge/entries/{entry.pk}")
    page.get_by_label("Add a comment").fill("To be discussed")
    page.get_by_role("link", name="Edit", exact=True).press("Enter")
    page.get_by_label("Text").fill("x" * 8_001)
    page.keyboard.press("Control+Enter")

    expect(page.get_by_text("may have 8000; shorten it")).to_be_visible()
    expect(page.get_by_label("Text")).to_be_focused()
    assert page.get_by_label("Text").input_value() == "x" * 8_001
    expect(page.get_by_label("Add a comment")).to_have_value("To be discussed")
    curator.complaints.pop()  # Chromium reports the 422 itself


def test_what_somebody_else_saved_is_compared_before_it_is_replaced(curator, entry):
    page = curator.open(f"/knowledge/entries/{entry.pk}")
    page.keyboard.press("e")
    page.get_by_label("Text").fill("Cash withdrawals abroad cost 4 percent.")
    edit_entry(
        entry_id=entry.pk,
        author=make_curator(),
        may_verify=True,
        text="Cash withdrawals abroad cost 2 percent of the amount.",
    )
    page.keyboard.press("Control+Enter")

    alert = page.get_by_role("alert").filter(has_text="while you were editing it")
    expect(alert).to_be_visible()
    curator.complaints.pop()  # Chromium reports the 422 itself
    now = page.get_by_role("region", name="Current version")
    expect(now).to_contain_text("cost 2 percent of the amount.")
    expect(page.get_by_label("Text")).to_be_focused()
    expect(page.get_by_label("Text")).to_have_value(
        "Cash withdrawals abroad cost 4 percent."
    )
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Saved.")).to_be_visible()
    entry.refresh_from_db()
    assert entry.text == "Cash withdrawals abroad cost 4 percent."


def test_it_is_edited_without_scripts(make_desk, entry):
    make_signed_up(Role.CURATOR, "carla")
    desk = make_desk(java_script_enabled=False)
    page = desk.log_in("carla", f"/knowledge/entries/{entry.pk}")
    page.get_by_role("link", name="Edit", exact=True).press("Enter")
    page.get_by_label("Text").fill("Cash withdrawals abroad cost 4 percent.")
    page.get_by_role("button", name="Save").press("Enter")
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.locator(".answer-text")).to_contain_text("4 percent.")


def test_the_form_has_no_accessibility_violation(make_desk, entry):
    make_signed_up(Role.CURATOR, "carla")
    desk = make_desk(reduced_motion="reduce")
    page = desk.log_in("carla", f"/knowledge/entries/{entry.pk}")
    found = {"read": violations_in_all_looks(page)}
    page = desk.open(f"/knowledge/entries/{entry.pk}/edit")
    found["edited"] = violations_in_all_looks(page)
    edit_entry(
        entry_id=entry.pk,
        author=make_curator(),
        may_verify=True,
        text="Cash withdrawals abroad cost 2 percent of the amount.",
    )
    page.get_by_label("Text").fill("Cash withdrawals abroad cost 4 percent.")
    page.keyboard.press("Control+Enter")
    page.get_by_role("region", name="Current version").wait_for()
    found["both"] = violations_in_all_looks(page)

    desk.complaints.pop()  # Chromium reports the 422 itself
    assert found == {name: [] for name in found}
