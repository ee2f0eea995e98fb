"""All that waits for a person, found, assigned, put off and opened by keys alone."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import expect

from accounts.roles import Role
from kb.models import Entry
from qa.gaps.escalations import escalate
from qa.inbox.models import Kind
from qa.models import Escalation, InboxMark
from tests.qa.answer_rows import make_answer
from tests.qa.inbox.test_inbox import make_one_of_each

from .conftest import make_signed_up

pytestmark = pytest.mark.usefixtures("knowledge")
QUESTION = "Who won the chess game?"
DONE_AT = {
    Kind.IMPORT: ("link", "Apply this import"),
    Kind.REVIEW: ("button", "Review this one"),
    Kind.CONFLICT: ("button", "Keep both"),
}
"""What is there to do; the other kinds are opened from the inbox by tests of their own."""


def test_an_inbox_is_worked_off_by_keys_alone(make_desk):
    carla = make_signed_up(Role.CURATOR, "carla")
    asker = User.objects.get(username="agent")
    for question in (QUESTION, "Who lost it?", "Who watched it?"):
        escalate(make_answer(asker, question=question).pk, user=asker)
    entry = Entry.objects.get(text__startswith="The Tarn Gold")
    agent = make_desk()
    page = agent.log_in("agent", f"/knowledge/entries/{entry.pk}")
    page.get_by_text("Flag as wrong or outdated").press("Enter")
    page.get_by_label("Anything else?").fill("It costs 80 euros now.")
    page.get_by_role("button", name="Flag", exact=True).press("Enter")
    expect(
        page.get_by_text("The people who look after the entry are notified")
    ).to_be_visible()

    desk = make_desk()
    page = desk.log_in("carla")
    page.get_by_role("link", name="Inbox 4 waiting").press("Enter")
    page.wait_for_url("**/inbox")  # with its scripts: no key is pressed before them
    titles = page.locator("[data-opens]")
    expect(titles).to_have_text(
        [QUESTION, "Who lost it?", "Who watched it?", entry.text]
    )
    page.keyboard.press("j")
    expect(titles.nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(titles.nth(1)).to_be_focused()
    page.keyboard.press("a")
    expect(page.get_by_text("Assigned to you.")).to_be_visible()
    expect(titles.nth(0)).to_have_text("Who lost it?")  # one's own comes first
    expect(titles.nth(0)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("s")
    expect(page.get_by_role("button", name="Until tomorrow").first).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("s")
    page.keyboard.press("Enter")
    expect(titles).to_have_count(3)
    assert InboxMark.objects.get(user=carla).snoozed_until is not None
    page.locator("#inbox-undo").press("Enter")
    expect(titles).to_have_count(4)

    page.get_by_role("link", name="Due entry 1").press("Enter")
    expect(titles).to_have_count(1)
    expect(page).to_have_url(f"{desk.address}/inbox?kind=entry")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_text("It costs 80 euros now.")).to_be_visible()
    page.get_by_role("button", name="Still true").press("Enter")
    expect(page.get_by_text("It costs 80 euros now.")).to_have_count(0)
    page.get_by_role("link", name="Inbox 3 waiting").press("Enter")
    expect(titles).to_have_count(3)

    page = desk.open("/admin/kb/entry/")
    waiting = page.locator("[data-waiting]")
    expect(waiting).to_have_text("3 waiting")
    InboxMark.objects.all().delete()
    Escalation.objects.all().delete()
    page = desk.open("/admin/kb/entry/")
    page.wait_for_load_state("networkidle")
    expect(waiting).not_to_be_visible()


def test_every_kind_of_work_waits_there_and_is_assigned_snoozed_and_opened(make_desk):
    carla = make_signed_up(Role.CURATOR, "carla")
    make_one_of_each(carla)
    make_signed_up(Role.SME, "eva")
    desk = make_desk()
    page = desk.log_in("carla")
    page.get_by_role("link", name="Inbox 7 waiting").press("Enter")
    page.wait_for_url("**/inbox")
    kinds = page.get_by_role("list", name="Kind").get_by_role("link")
    expect(kinds).to_have_text(["All", *(f"{kind.label} 1" for kind in Kind)])

    for kind, (role, name) in DONE_AT.items():
        row = page.get_by_role("listitem").filter(has_text=f"{kind.label} waiting")
        row.get_by_role("heading").get_by_role("link").press("Enter")
        expect(page.get_by_role(role, name=name).first).to_be_visible()
        if kind is Kind.REVIEW:
            expect(page.get_by_role(role, name=name)).to_be_focused()
            page.keyboard.press("Enter")
            expect(page.get_by_label("no", exact=True).first).to_be_focused()
        page = desk.open("/inbox")

    page = desk.open("/inbox?kind=gap")
    page.get_by_text("Assign to …").press("Enter")
    page.get_by_label("Name").fill("nobody here")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("There is no user")
    desk.complaints.clear()  # Chromium reports the 422 itself
    page.get_by_text("Assign to …").press("Enter")
    page.get_by_label("Name").fill("eva")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Assigned to eva.")).to_be_visible()
    page = desk.open("/inbox?kind=import")
    page.get_by_text("Snooze", exact=True).first.press("Enter")
    day = f"{timezone.localdate() + timedelta(days=10):%Y-%m-%d}"
    page.get_by_label("Until", exact=True).fill(day)
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"Snoozed until {day}.")).to_be_visible()
    page.get_by_role("link", name="Inbox 5 waiting").press("Enter")
    page.get_by_role("link", name="Assigned to others").press("Enter")
    expect(page.get_by_role("link", name="Is there a student card?")).to_be_visible()
    page.get_by_role("link", name="Snoozed").press("Enter")
    page.get_by_role("button", name="Bring back").press("Enter")
    expect(page.get_by_text("You have not snoozed anything.")).to_be_visible()
