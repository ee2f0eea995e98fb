"""One changes one's own password and signs in with it, by keyboard."""

import pytest
from playwright.sync_api import expect

from .conftest import PASSWORD

pytestmark = pytest.mark.usefixtures("knowledge")
NEW = "another horse, another battery"


def test_a_password_is_changed_on_the_profile_and_opens_the_desk(make_desk):
    desk, elsewhere = make_desk(), make_desk()
    elsewhere.sign_in("agent")
    page = desk.sign_in("agent")
    page.get_by_role("link", name="agent", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="Profile")).to_be_visible()
    old = page.get_by_label("Old password")
    old.fill("a wrong guess")
    page.get_by_label("New password", exact=True).fill(NEW)
    page.get_by_label("New password confirmation").fill(NEW)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text(
        "old password was entered incorrectly"
    )
    desk.complaints.clear()  # Chromium reports the 400 itself
    old.fill(PASSWORD)
    page.get_by_label("New password", exact=True).fill(NEW)
    page.get_by_label("New password confirmation").fill(NEW)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Your password was changed.")).to_be_visible()

    page.get_by_label("Language of refusals").select_option("German")
    page.get_by_role("button", name="Save").press("Enter")
    expect(page.get_by_text("Saved.")).to_be_visible()
    desk.open("/")
    desk.ask("Who won the chess game?")
    expect(page.locator("article.result p[lang=de]")).to_contain_text("rate nicht")

    page.get_by_role("button", name="Sign out").press("Enter")
    page.get_by_label("Name").fill("agent")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Password").fill(NEW)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Your question")).to_be_focused()

    page = elsewhere.open("/answers")  # was signed in with the old one
    expect(page.get_by_label("Password")).to_be_visible()
