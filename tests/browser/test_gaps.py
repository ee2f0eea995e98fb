"""Gaps are filled, linked, dismissed and opened again, by keyboard."""

import pytest
from playwright.sync_api import expect

from accounts.roles import Role
from qa.models import Gap
from tests.qa.gaps.test_admin_and_api import make_gaps
from workers import tasks

from .conftest import make_signed_up, work

pytestmark = pytest.mark.usefixtures("knowledge")
QUESTION = "Who won the chess game?"
BLOCK = "How do I block a lost card?"
CAT = "How old does a cat get?"


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
    desk = curator.log_in("carla", "/admin/qa/gap/")
    row = desk.get_by_role("row").filter(has_text="2 times by 2 people")
    row.get_by_role("link").first.press("Enter")
    asked = desk.get_by_label("Question", exact=True)
    expect(asked).to_have_value(Gap.objects.get().question)
    asked.fill(QUESTION)
    desk.get_by_label("Answer, or why it is dismissed").fill("Anna won it.")
    desk.get_by_label("Verify now").press("Space")
    desk.get_by_role("button", name="Save", exact=True).press("Enter")
    desk.wait_for_url("**/admin/qa/gap/**")

    work()

    desk = curator.open(f"/admin/qa/gap/{Gap.objects.get().pk}/change/")
    expect(desk.get_by_text("answered: Anna won it.")).to_have_count(2)
    assert Gap.objects.get().state == "filled"
    for desk in agents.values():
        page = desk.open("/notices")
        expect(page.get_by_text("New: Your question is answered now")).to_be_visible()
        page.get_by_role("button", name="Mark all as read").press("Enter")
        expect(page.get_by_text("New:")).to_have_count(0)


def test_a_gap_is_linked_to_an_entry_another_dismissed_and_opened_again(curator):
    gap = make_gaps(BLOCK, CAT)
    page = curator.open("/inbox")
    page.get_by_role("link", name=BLOCK).press("Enter")
    page.get_by_label("Find other entries").fill("app Cards")
    page.get_by_label("link an existing entry").press("Space")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_text("Choose one of those found for")).to_be_visible()
    page.get_by_label("Block it at once in the app").press("Space")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_text("is asked again for all who asked it")).to_be_visible()
    work()
    page = curator.open(f"/admin/qa/gap/{gap.pk}/change/")
    expect(page.get_by_text("answered: Block it at once")).to_be_visible()

    page = curator.open("/inbox")
    expect(page.get_by_role("link", name=BLOCK)).to_have_count(0)
    page.get_by_role("link", name=CAT).press("Enter")
    dismiss = page.get_by_label("dismiss it and say why")
    expect(dismiss).to_be_visible()
    dismiss.press("Space")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_text("The reason is empty")).to_be_visible()
    page.get_by_label("Answer, or why it is dismissed").fill("We are a bank.")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    page.get_by_role("link", name=CAT).press("Enter")
    expect(page.get_by_text("We are a bank.")).to_be_visible()
    page.get_by_role("link", name="Reopen").press("Enter")
    page.get_by_role("button", name="Confirm").press("Enter")
    expect(page.get_by_text("is open again")).to_be_visible()
    expect(dismiss).to_be_visible()
    expect(page.get_by_role("link", name="Reopen")).to_have_count(0)
    page = curator.open("/inbox")
    expect(page.get_by_role("link", name=CAT)).to_be_visible()


def test_gaps_are_merged_in_their_list_and_split_on_their_page(curator):
    make_gaps(BLOCK, CAT)
    page = curator.open("/admin/qa/gap/?state__exact=open")
    for question in (BLOCK, CAT):
        row = page.get_by_role("row").filter(has_text=question)
        row.get_by_role("checkbox").press("Space")
    page.get_by_role("combobox", name="action").select_option(label="Merge")
    page.get_by_role("button", name="Run").press("Enter")
    expect(page.get_by_text("This gap of Cards is kept")).to_be_visible()
    page.get_by_role("button", name="Confirm").press("Enter")
    expect(page.get_by_text("2 gaps merged")).to_be_visible()
    page.get_by_role("button", name="Undo").press("Enter")
    expect(page.get_by_text("Undone: 2 gaps merged")).to_be_visible()
    for question in (BLOCK, CAT):
        row = page.get_by_role("row").filter(has_text=question)
        expect(row).to_contain_text("once by 1 person")
        row.get_by_role("checkbox").press("Space")
    page.get_by_role("combobox", name="action").select_option(label="Merge")
    page.get_by_role("button", name="Run").press("Enter")
    page.get_by_role("button", name="Confirm").press("Enter")
    expect(page.get_by_text("2 gaps merged")).to_be_visible()
    kept = Gap.objects.get()
    moved = CAT if kept.question == BLOCK else BLOCK

    page.get_by_role("link", name=kept.question).press("Enter")
    page.get_by_label("move the chosen questions").press("Space")
    page.get_by_role("checkbox", name=moved).press("Space")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    page = curator.open("/admin/qa/gap/?state__exact=open")
    for question in (BLOCK, CAT):
        expect(page.get_by_role("link", name=question)).to_be_visible()
