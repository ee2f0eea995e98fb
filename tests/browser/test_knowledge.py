"""Agents look up entries, documents and their own questions, and comment on an entry."""

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from accounts.roles import Role
from kb.entries.states import mark_for_review
from kb.models import Document, Entry, Section
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entry,
    make_tag,
    make_user,
)
from tests.qa.answer_rows import make_answer

from .conftest import choose_by_typing, make_signed_up

pytestmark = pytest.mark.usefixtures("knowledge")
LOUNGE = "A lounge ticket costs 30 euros."
LATE = "The lounge closes at 22."


@pytest.fixture
def rules() -> Document:
    """A document of two levels of headings, with tags and an entry that is to be reviewed."""
    document = make_document("Rules for travel")
    abroad = Section.objects.create(document=document, heading="Abroad", position=0)
    lounges = Section.objects.create(
        document=document, parent=abroad, heading="Lounges", position=0
    )
    gold, cards = make_tag("gold-card"), make_tag("cards", facet="line_of_business")
    make_entry(LOUNGE, document=document, section=lounges, product_line=gold)
    late = make_entry(LATE, document=document, section=lounges, line_of_business=cards)
    mark_for_review(entry_id=late.pk, by=make_curator())
    return document


def choose(page: Page, field: str, begins: str = "") -> None:
    """Choose an option as one does by keyboard, by how it begins; or the first."""
    chosen = page.get_by_label(field, exact=True)
    if begins:
        choose_by_typing(chosen, begins)
    else:
        chosen.focus()
        page.keyboard.press("Home")


def test_an_agent_narrows_a_search_and_reads_the_document_by_its_headings(desk, rules):
    desk.log_in("agent")
    page = desk.page
    page.get_by_role("link", name="Knowledge").press("Enter")
    expect(page.get_by_role("searchbox")).to_be_focused()
    found = page.locator("#found").get_by_role("link")
    expect(found).to_contain_text(["Price list", "Rules for travel"])
    page.keyboard.type("lounge")
    heading = page.get_by_role("heading", name="2 entries contain these words")
    expect(heading).to_be_visible()
    choose(page, "State", "Not")
    expect(page.get_by_role("heading", name="1 entry contains")).to_be_visible()
    expect(found).to_have_text([re.compile(LATE)])
    choose(page, "State")
    expect(heading).to_be_visible()
    choose(page, "Product", "Gold")
    expect(found).to_have_text([re.compile(LOUNGE)])
    choose(page, "Product")
    choose(page, "Line of business", "Cards")
    expect(found).to_have_text([re.compile(LATE)])
    page.get_by_role("searchbox").fill("")
    choose(page, "Line of business")
    choose(page, "Document", "Price")
    expect(page.get_by_role("heading", name="4 entries")).to_be_visible()
    expect(found.filter(has_text=LOUNGE)).to_have_count(0)

    choose(page, "Document")
    found.filter(has_text="Rules for travel").press("Enter")
    contents = page.get_by_role("navigation", name="Contents").get_by_role("link")
    expect(contents).to_have_text(["Abroad", "Lounges"])
    contents.filter(has_text="Lounges").press("Enter")
    region = page.get_by_role("region", name="Lounges")
    expect(page).to_have_url(re.compile("#section-"))
    expect(region).to_contain_text(LOUNGE)
    region.get_by_role("link").first.press("Enter")
    place = page.get_by_role("navigation", name="Place").get_by_role("link")
    expect(place).to_have_text(["Knowledge", "Rules for travel", "Abroad", "Lounges"])
    place.last.press("Enter")
    expect(region).to_be_in_viewport()


def test_agents_write_to_each_other_below_an_entry_that_they_may_see(make_desk):
    entry = make_entry(LOUNGE)
    secret = make_entry(LATE, audience=make_audience("leads", groups=["leads"]))
    make_signed_up(Role.CURATOR, "carla")
    desks = {name: make_desk() for name in ("agent", "carla")}

    def say(name, said):
        page = desks[name].log_in(name, f"/knowledge/entries/{entry.pk}")
        page.get_by_label("Add a comment").fill(said)
        page.get_by_role("button", name="Comment", exact=True).press("Enter")
        comments = page.get_by_role("region", name="Comments")
        expect(comments).to_contain_text(said)
        return comments.get_by_role("listitem")

    asked = say("agent", "Is it 30 in Rome too?")
    both = [re.compile("30 in Rome"), re.compile("I called")]
    listed = say("carla", "Yes, I called.")
    expect(listed).to_have_text(both)
    delete = re.compile("Delete the comment")
    expect(listed.get_by_role("button", name=delete)).to_have_count(2)  # a curator's

    page = desks["agent"].page
    page.reload()
    expect(asked).to_have_text(both)
    asked.get_by_role("button", name=delete).press("Enter")  # one's own alone
    expect(asked).to_have_text(both[1:])
    page = desks["agent"].open(f"/knowledge/entries/{secret.pk}")
    expect(page.get_by_text("or you may not see it")).to_be_visible()
    expect(page.get_by_label("Add a comment")).to_have_count(0)
    desks["agent"].complaints.clear()  # Chromium reports the 404 itself


def test_an_agent_finds_an_own_question_of_the_past_again(desk):
    agent, other = (User.objects.get(username="agent"), make_user())
    entry = Entry.objects.get(text__startswith="The Tarn Gold")
    make_answer(agent, question="What does Gold cost?", cited=(entry,))
    make_answer(agent, question="What does Platinum cost?")
    make_answer(agent, question="Who won the chess game?")
    make_answer(other, question="What does Copper cost?")
    desk.log_in("agent")
    page = desk.page
    page.get_by_role("link", name="My questions").press("Enter")
    rows = page.locator("main .list .question")
    expect(rows).to_have_count(3)
    page.get_by_label("Words in the question").fill("cost")
    page.keyboard.press("Enter")
    expect(rows).to_have_text(["What does Platinum cost?", "What does Gold cost?"])
    choose(page, "Outcome", "Not answered")
    page.get_by_role("button", name="Show").press("Enter")
    expect(rows).to_have_text(["What does Platinum cost?"])
    page.get_by_role("link", name="What does Platinum cost?").press("Enter")
    expect(page.locator(".badge-refused").first).to_have_text("Not answered")
    page = desk.open("/answers")
    page.get_by_label("Words in the question").fill("copper")
    page.keyboard.press("Enter")
    expect(page.get_by_text("None of your questions match.")).to_be_visible()
