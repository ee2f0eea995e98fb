"""An owner's first run, from an empty database to a program that asks, by keyboard."""

from urllib.parse import urlsplit

import pytest
import requests
from playwright.sync_api import expect

from accounts.roles import Role
from kb.models import Entry

from .conftest import PASSWORD, make_signed_up, violations, work

FAQ = b"""question,answer
Is the hotline free of charge?,"Yes, from every network in the country."
When is the branch open?,Monday to Friday from 9 to 17.
"""
QUESTION = "Is the hotline free of charge?"

pytestmark = pytest.mark.usefixtures("transactional_db", "import_directory")


def test_first_steps_lead_from_an_empty_database_to_a_colleague_who_asks(make_desk):
    make_signed_up(Role.ADMIN, "owner")
    owner = make_desk(permissions=["clipboard-read", "clipboard-write"])
    owner.sign_in("owner")
    page = owner.open("/admin/")
    steps = page.locator("#first-steps li")
    expect(steps).to_have_count(5)
    expect(steps.filter(has_text="done")).to_have_count(0)

    page.get_by_role("link", name="Create a knowledge base").press("Enter")
    page.get_by_label("Name").fill("Help desk")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_text("was added successfully")).to_be_visible()

    page = owner.open("/admin/")
    page.get_by_role("link", name="Import your knowledge").press("Enter")
    file = {"name": "faq.csv", "mimeType": "text/csv", "buffer": FAQ}
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_label("Verify").press("Space")
    page.get_by_role("button", name="Check the files").press("Enter")
    expect(page.get_by_text("Checking what would change")).to_be_visible()
    work("kb.import")
    page.reload()
    expect(page.get_by_text("Nothing is written yet.")).to_be_visible()
    assert not Entry.objects.exists()
    page.get_by_text("Apply this import").first.press("Enter")
    page.get_by_role("button", name="Confirm").press("Enter")
    page.get_by_text("The import is being applied.").wait_for()
    work("kb.import")
    page.reload()
    expect(page.get_by_text("Nothing is written yet.")).to_have_count(0)

    page = owner.open("/admin/")
    page.get_by_role("link", name="Invite people").press("Enter")
    page.get_by_label("Username").fill("ben")
    page.get_by_label("agent", exact=True).press("Space")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_text("ben was added. Pass this link on to ben")).to_be_visible()

    link = page.locator("#secret").inner_text()
    page.get_by_role("button", name="Copy", exact=True).press("Enter")
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == link
    assert violations(page, "#secret") == []

    ben = make_desk()
    page = ben.open(urlsplit(link).path)
    assert violations(page) == []
    page.get_by_label("New password", exact=True).fill(PASSWORD)
    page.get_by_label("New password confirmation").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_label("Your question").wait_for()
    page = ben.ask(QUESTION)
    expect(page.locator(".answer-text")).to_contain_text("from every network")

    page = owner.open("/admin/")
    expect(steps.filter(has_text="done")).to_have_count(3)


def test_a_token_made_in_the_page_asks_until_it_is_revoked(desk, knowledge):
    desk.log_in("agent")
    page = desk.page
    page.get_by_role("link", name="API tokens").press("Enter")
    page.get_by_label("What it is for").fill("help desk system")
    page.keyboard.press("Enter")
    secret = page.locator("#secret").inner_text()

    def ask() -> requests.Response:
        return requests.post(
            f"{desk.address}/api/v1/ask",
            headers={"Authorization": f"Bearer {secret}"},
            json={"question": "How do I block a lost card?"},
            timeout=60,
        )

    answered = ask()
    assert answered.status_code == 200
    assert answered.json()["text"] == "Block it at once in the app under Cards, Block."

    page.get_by_role("button", name="Revoke help desk system").press("Enter")
    expect(page.get_by_text("You have no tokens.")).to_be_visible()
    refused = ask()
    assert refused.status_code == 401
    assert "revoked" in refused.json()["error"]["message"]
