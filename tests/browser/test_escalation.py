"""A gap is closed: refused, filled by an expert, asked again, answered, told."""

import pytest
from playwright.sync_api import expect

from accounts.roles import Role
from kb.models import Entry
from qa.models import Answer, Repeat

from .conftest import make_signed_up, violations, work

pytestmark = pytest.mark.usefixtures("knowledge")
QUESTION = "Who won the chess game?"
BLOCK = "How do I block a lost card?"


def test_a_refusal_becomes_an_answer_by_way_of_an_expert_and_the_agent_is_told(
    make_desk,
):
    agent, curator = make_desk(), make_desk()
    agent.log_in("agent")
    page = agent.ask(QUESTION)
    expect(page.locator(".badge-refused").first).to_have_text("Not answered")
    page.get_by_label("What the expert should know").fill("A caller insists.")
    page.get_by_role("button", name="Send to an expert").press("Enter")
    expect(page.get_by_text("The reply appears here.").first).to_be_visible()

    make_signed_up(Role.CURATOR, "carla")
    desk = curator.log_in("carla", "/admin/qa/escalation/")
    desk.get_by_role("link", name=QUESTION).press("Enter")
    expect(desk.get_by_text("A caller insists.")).to_be_visible()
    desk.get_by_label("Reply").fill("Anna won it, in 40 moves.")
    desk.get_by_label("Verify now").press("Space")
    desk.get_by_role("button", name="Save", exact=True).press("Enter")
    desk.wait_for_url("**/admin/qa/escalation/")
    assert Entry.objects.get(question=QUESTION).state == "verified"

    page = agent.open("/answers")
    expect(page.get_by_text("An expert replied")).to_be_visible()
    expect(page.get_by_role("link", name="Notices 1 unread")).to_be_visible()

    work()

    page.reload()
    page.get_by_role("link", name="Notices 1 unread").press("Enter")
    notice = page.get_by_role("link", name="New: Your question is answered now")
    expect(notice).to_contain_text(QUESTION)
    expect(notice).to_contain_text("Anna won it")
    notice.press("Enter")
    expect(page.locator(".badge-answered").first).to_have_text("Answered")
    expect(page.locator(".answer-text").first).to_contain_text("Anna won it")
    expect(page.get_by_role("link", name="Notices", exact=True)).to_be_visible()

    repeat = Repeat.objects.get()
    assert (repeat.before.outcome, repeat.after.outcome) == ("refused", "answered")
    assert str(repeat.after.asker) == "agent"

    agent.open("/")
    page = agent.ask(QUESTION)
    expect(page.locator(".answer-text").first).to_contain_text("Anna won it")
    assert Answer.objects.filter(question=QUESTION).count() == 3


def test_a_wrong_answer_is_sent_too_and_the_reply_comes_first_on_its_page(make_desk):
    agent, expert = make_desk(), make_desk()
    agent.log_in("agent")
    page = agent.ask(BLOCK)
    page.locator("#vote-down").press("Enter")
    expect(page.locator("#vote-down")).to_have_attribute("aria-pressed", "true")
    page.get_by_text("Is it wrong? Send it to an expert").press("Enter")
    page.get_by_label("What the expert should know").fill("The app has no such page.")
    page.get_by_role("button", name="Send to an expert").press("Enter")
    expect(page.get_by_text("Waiting for an expert")).to_be_visible()
    address = page.url.removeprefix(agent.address)

    make_signed_up(Role.SME, "eva")
    desk = expert.log_in("eva")
    desk.get_by_role("link", name="Inbox 1 waiting").press("Enter")
    desk.get_by_role("link", name=BLOCK).press("Enter")
    expect(desk.get_by_text("answered: Block it at once in the app")).to_be_visible()
    desk.get_by_label("Reply").fill("Call the hotline; it blocks the card.")
    desk.get_by_label("Keep the answer as an entry").press("Space")
    desk.get_by_role("button", name="Save", exact=True).press("Enter")
    desk.wait_for_url("**/admin/qa/escalation/")

    page = agent.open("/notices")
    page.get_by_role("link", name="New: An expert replied").press("Enter")
    page.wait_for_url(f"**{address}")
    result = page.get_by_role("article", name="Result").get_by_role("heading", level=2)
    expect(result.nth(0)).to_have_text("An expert replied")
    expect(result.nth(1)).to_contain_text(BLOCK)
    expect(page.get_by_text("Call the hotline; it blocks the card.")).to_be_visible()
    assert violations(page) == []
    expect(page.get_by_role("link", name="Notices", exact=True)).to_be_visible()


def test_an_entry_that_says_it_already_is_the_reply(make_desk):
    agent, expert = make_desk(), make_desk()
    agent.log_in("agent")
    page = agent.ask(QUESTION)
    page.get_by_label("What the expert should know").fill("It is about the app.")
    page.get_by_role("button", name="Send to an expert").press("Enter")
    expect(page.get_by_text("Waiting for an expert")).to_be_visible()

    make_signed_up(Role.CURATOR, "carla")
    desk = expert.log_in("carla")
    desk = expert.open("/admin/qa/escalation/")
    desk.get_by_role("link", name=QUESTION).press("Enter")
    desk.get_by_label("Find other entries").fill("app Cards Block")
    desk.get_by_label("an existing entry that answers it").press("Space")
    desk.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(desk.get_by_text("Choose one of those found for")).to_be_visible()
    desk.get_by_label("Block it at once in the app").press("Space")
    desk.get_by_role("button", name="Save", exact=True).press("Enter")
    desk.wait_for_url("**/admin/qa/escalation/")

    page.reload()
    expect(page.get_by_text("An expert replied")).to_be_visible()
    expect(page.get_by_text("Block it at once in the app").first).to_be_visible()
