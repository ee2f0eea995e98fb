"""A gap is closed: refused, filled by an expert, asked again, answered, told."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from accounts.roles import Role
from kb.models import Entry
from qa.gaps.escalations import escalate
from qa.models import Answer, Escalation, Gap, InboxMark, Repeat
from tests.qa.answer_rows import make_answer
from workers import tasks

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
    desk = curator.log_in("carla")
    desk = curator.open("/admin/qa/escalation/")
    desk.get_by_role("link", name=QUESTION).click()
    expect(desk.get_by_text("A caller insists.")).to_be_visible()
    desk.get_by_label("Reply").fill("Anna won it, in 40 moves.")
    desk.get_by_label("Verify now").check(force=True)
    desk.get_by_role("button", name="Save", exact=True).click()
    desk.wait_for_url("**/admin/qa/escalation/")
    assert Entry.objects.get(question=QUESTION).state == "verified"

    page = agent.open("/answers")
    expect(page.get_by_text("An expert replied")).to_be_visible()
    expect(page.get_by_role("link", name="Notices 1 unread")).to_be_visible()

    work()

    page.reload()
    page.get_by_role("link", name="Notices 1 unread").click()
    notice = page.get_by_role("link", name="New: Your question is answered now")
    expect(notice).to_contain_text(QUESTION)
    expect(notice).to_contain_text("Anna won it")
    notice.click()
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


def test_a_gap_is_filled_by_an_expert_and_everybody_who_asked_is_answered(make_desk):
    make_signed_up(Role.AGENT, "berta")
    agents = {name: make_desk() for name in ("agent", "berta")}
    for name, question in (("agent", QUESTION), ("berta", "Who has won at chess?")):
        agents[name].log_in(name)
        agents[name].ask(question)
    tasks.find_gaps()
    work()

    make_signed_up(Role.CURATOR, "carla")
    curator = make_desk()
    curator.log_in("carla")
    desk = curator.open("/admin/qa/gap/")
    row = desk.get_by_role("row").filter(has_text="2 times by 2 people")
    row.get_by_role("link").first.click()
    asked = desk.get_by_label("Question", exact=True)
    expect(asked).to_have_value(Gap.objects.get().question)
    asked.fill(QUESTION)
    desk.get_by_label("Answer, or why it is dismissed").fill("Anna won it.")
    desk.get_by_label("Verify now").press("Space")
    desk.get_by_role("button", name="Save", exact=True).click()
    desk.wait_for_url("**/admin/qa/gap/**")

    work()

    desk = curator.open(f"/admin/qa/gap/{Gap.objects.get().pk}/change/")
    expect(desk.get_by_text("answered: Anna won it.")).to_have_count(2)
    assert Gap.objects.get().state == "filled"
    for desk in agents.values():
        page = desk.open("/notices")
        expect(page.get_by_text("New: Your question is answered now")).to_be_visible()
        page.get_by_role("button", name="Mark all as read").click()
        expect(page.get_by_text("New:")).to_have_count(0)


def test_an_inbox_is_worked_off_by_keys_alone(make_desk):
    carla = make_signed_up(Role.CURATOR, "carla")
    asker = User.objects.get(username="agent")
    for question in (QUESTION, "Who lost it?", "Who watched it?"):
        escalate(make_answer(asker, question=question).pk, user=asker)
    entry = Entry.objects.get(text__startswith="The Tarn Gold")
    agent = make_desk()
    agent.log_in("agent")
    page = agent.open(f"/knowledge/entries/{entry.pk}")
    page.get_by_text("Flag as outdated").press("Enter")
    page.get_by_label("What is out of date?").fill("It costs 80 euros now.")
    page.get_by_role("button", name="Flag").press("Enter")
    expect(page.get_by_text("Who looks after the entry is notified")).to_be_visible()

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
