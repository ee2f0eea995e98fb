"""A gap is closed: refused, sent to an expert, answered, asked again."""

import pytest
from playwright.sync_api import expect

from accounts.roles import Role
from kb.models import Entry
from qa.models import Answer

from .conftest import make_signed_up

pytestmark = pytest.mark.usefixtures("knowledge")
QUESTION = "Who won the chess game?"


def test_a_refusal_becomes_an_answer_by_way_of_an_expert(make_desk):
    agent, curator = make_desk(), make_desk()
    agent.log_in("agent")
    page = agent.ask(QUESTION)
    page.get_by_label("What the expert should know").fill("A caller insists.")
    page.get_by_role("button", name="Send to an expert").press("Enter")
    expect(page.get_by_text("The reply appears here.").first).to_be_visible()

    make_signed_up(Role.CURATOR, "carla")
    desk = curator.log_in("carla")
    desk = curator.open("/admin/qa/escalation/")
    desk.get_by_role("link", name=QUESTION).click()
    expect(desk.get_by_text("A caller insists.")).to_be_visible()
    desk.get_by_label("Reply").fill("Anna won it, in 40 moves.")
    desk.get_by_label("I vouch for it").check(force=True)
    desk.get_by_role("button", name="Save", exact=True).click()
    desk.wait_for_url("**/admin/qa/escalation/")

    page = agent.open("/answers")
    expect(page.get_by_text("An expert replied")).to_be_visible()
    page.get_by_role("link", name=QUESTION).click()
    expect(page.locator("#escalation")).to_contain_text("Anna won it")
    page.get_by_role("button", name="Ask again").click()
    expect(page.locator(".badge-answered").first).to_have_text("Answered")
    expect(page.locator(".answer-text").first).to_contain_text("Anna won it")

    assert Entry.objects.get(question=QUESTION).state == "verified"
    assert Answer.objects.filter(question=QUESTION).count() == 2
