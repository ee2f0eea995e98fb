"""An agent says that an entry is out of date; its owner looks at it, by keyboard."""

import pytest
from playwright.sync_api import expect

from accounts.roles import Role
from kb.models import Entry
from tests.factories import make_entry

from .conftest import make_signed_up, violations

pytestmark = pytest.mark.usefixtures("knowledge")
LOUNGE = "The lounge in the main station opens at 6."


def test_an_owner_gets_notice_of_a_flag_and_says_that_the_entry_is_still_true(
    make_desk,
):
    carla = make_signed_up(Role.CURATOR, "carla")
    entry = make_entry(LOUNGE, owner=carla)
    agent, owner = make_desk(), make_desk()
    page = agent.log_in("agent", "/knowledge")
    page.get_by_role("searchbox").fill("lounge station")
    page.get_by_role("link", name=LOUNGE).press("Enter")
    page.get_by_text("Flag as wrong or outdated").press("Enter")
    page.get_by_role("checkbox", name="It is out of date").press("Space")
    page.get_by_label("Anything else?").fill("A caller stood there until 7.")
    assert violations(page) == []
    page.get_by_role("button", name="Flag", exact=True).press("Enter")
    expect(
        page.get_by_text("The people who look after the entry are notified")
    ).to_be_visible()

    page = owner.log_in("carla")
    page.get_by_role("link", name="Notices 1 unread").press("Enter")
    notice = page.get_by_role("link", name="New:")
    expect(notice).to_contain_text(LOUNGE)
    page = owner.open("/admin/kb/entry/due")
    expect(page.get_by_role("listitem").filter(has_text=LOUNGE)).to_contain_text(
        "flagged"
    )
    expect(page.get_by_text("A caller stood there until 7.")).to_contain_text(
        "It is out of date"
    )

    page = owner.open("/inbox")
    page.wait_for_load_state("networkidle")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_text("A caller stood there until 7.")).to_be_visible()
    page.get_by_role("button", name="Still true").press("Enter")
    expect(page.get_by_text("A caller stood there until 7.")).to_have_count(0)

    page = owner.open("/admin/kb/entry/due")
    expect(page.get_by_text("Nothing is due here.")).to_be_visible()
    page = owner.open("/")
    expect(page.get_by_role("link", name="Notices", exact=True)).to_be_visible()
    entry.refresh_from_db()
    assert (entry.state, entry.verified_by) == (Entry.State.VERIFIED, carla)
    page = agent.open(f"/knowledge/entries/{entry.pk}")
    expect(page.get_by_text("Still true.")).to_be_visible()
    expect(page.get_by_text("Flag as wrong or outdated")).to_be_visible()


def test_the_inbox_counts_an_entry_as_soon_as_it_is_flagged(curator):
    entry = make_entry(LOUNGE)
    page = curator.open(f"/knowledge/entries/{entry.pk}")
    page.wait_for_load_state("networkidle")
    inbox = page.get_by_role("navigation").get_by_role("link", name="Inbox")
    expect(inbox).to_have_text("Inbox ")

    page.get_by_text("Flag as wrong or outdated").press("Enter")
    page.get_by_role("button", name="Flag").press("Enter")

    expect(inbox).to_have_text("Inbox 1 waiting")
