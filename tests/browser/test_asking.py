"""An agent at work: keys, live stages, citations, votes."""

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from kb.models import Document, Entry
from qa.answers import wording
from qa.models import Answer, Vote
from qa.pipeline.gates import SIGNALS
from tests.browser.conftest import violations
from tests.factories import make_entry, make_knowledge_base
from tests.qa.answer_rows import make_answer

VERBATIM = "How do I block a lost card?"
GENERATED = "What does the Tarn Gold card cost per year?"
UNKNOWN = "Who won the chess game?"

pytestmark = pytest.mark.usefixtures("knowledge")


def test_answer_comes_live_with_its_evidence(desk):
    desk.log_in("agent")

    page = desk.ask(VERBATIM)

    expect(page.locator(".badge-answered").first).to_have_text("Answered")
    expect(page.locator(".answer-text")).to_contain_text("under Cards, Block.")
    expect(page.locator("#evidence-1")).to_contain_text("Price list")
    expect(page.locator("#evidence-1")).to_contain_text("Verified")
    expect(page.locator("#announcement")).to_contain_text("Answered, with 1 source")
    assert page.url.endswith(f"/answers/{Answer.objects.get().pk}")


def test_language_model_decides_live_and_the_link_shows_the_same(desk):
    desk.log_in("agent")
    page = desk.ask(GENERATED)
    live = page.locator(".result-main").inner_text().replace("Link to this answer", "")

    page.reload()

    kept = page.locator(".result-main").inner_text()
    assert _words(kept) == _words(live)
    answer = Answer.objects.get()
    assert answer.language_model != ""
    assert answer.outcome in ("answered", "refused")
    assert set(answer.milliseconds) <= set(wording.STAGES)
    assert {signal["name"] for signal in answer.signals} <= set(SIGNALS)


def _words(text: str) -> list[str]:
    return text.split()


def test_refusal_is_calm_and_says_what_to_do(desk):
    desk.log_in("agent")

    page = desk.ask(UNKNOWN)

    expect(page.locator(".badge-refused").first).to_have_text("Not answered")
    expect(page.get_by_text("What you can do now")).to_be_visible()
    expect(page.locator(".citation")).to_have_count(0)
    expect(page.locator(".gate-refused")).to_contain_text("Hard refusal")
    expect(page.locator("#announcement")).to_contain_text("Not answered.")


def test_agent_says_by_keyboard_which_entry_answers_a_refusal(desk):
    desk.log_in("agent")
    agent = User.objects.get(username="agent")
    near = tuple(Entry.objects.order_by("pk")[:3])
    refused = make_answer(agent, question="Gold price?", near_misses=near)
    page = desk.open(f"/answers/{refused.pk}")
    expect(page.locator("#near-title")).to_have_text("Does one of these answer it?")

    page.locator("#near-2 button").press("Enter")

    expect(page.locator("#near-title")).to_have_text("You chose an entry")
    expect(page.locator("#near-2")).to_contain_text("Your choice")
    expect(page.locator("#near-2 button")).to_be_focused()
    expect(page.locator("#vote-down")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#announcement")).to_have_text("Kept as your own choice.")
    assert Vote.objects.get().answering_entry == near[1]
    assert violations(page) == []

    page.locator("#near-2 button").press("Enter")

    expect(page.locator("#near-title")).to_have_text("Does one of these answer it?")
    assert not Vote.objects.exists()


@pytest.mark.verifier
def test_agent_chooses_by_keyboard_which_product_is_meant_or_says_it(desk):
    business = make_entry(
        "The Tarn Business card costs 96 euros a year.",
        document=Document.objects.get(title="Price list"),
    )
    desk.log_in("agent")
    page = desk.ask("What does my card cost a year?")
    near = page.locator("#near-title")
    expect(near).to_have_text("Do you mean one of these?")
    expect(page.get_by_role("button", name="I mean this one")).to_have_count(3)
    expect(page.locator("#announcement")).to_contain_text("Do you mean one of 3")
    assert violations(page) == []

    page.get_by_role("link", name="these entries").press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="I mean this one").first).to_be_focused()
    meant = page.locator(".card", has_text=business.text)
    meant.get_by_role("button", name="I mean this one").press("Enter")
    expect(near).to_have_text("You chose an entry")
    expect(meant).to_contain_text("Your choice")

    page.locator("body").press("f")
    expect(page.locator("#follow-up")).to_be_focused()
    page.keyboard.type("the Business card")
    page.keyboard.press("Enter")
    expect(page.locator("#result-title")).to_contain_text(
        "What does my Business card cost a year?"
    )
    expect(page.locator(".answer-text").first).to_contain_text(business.text)


def test_who_never_asked_is_shown_questions_that_are_answered(desk):
    page = desk.log_in("agent")
    expect(page.locator(".examples button")).to_have_count(1)

    page.get_by_role("button", name=VERBATIM).press("Enter")

    expect(page.locator(".answer-text")).to_contain_text("under Cards, Block.")
    page.get_by_role("link", name="Help").press("Enter")
    expect(page.get_by_role("heading", name="When there is no answer")).to_be_visible()


def test_a_question_is_asked_while_examples_of_another_knowledge_base_load(desk):
    loans = make_knowledge_base("loans")
    make_entry("A loan is paid back within ten years.", knowledge_base=loans)
    page = desk.log_in("agent")
    held = []
    page.route("**/?knowledge_base=*", lambda route: held.append(route))

    page.get_by_label("Knowledge base").select_option(label="Loans")
    page.get_by_label("Your question").fill(UNKNOWN)
    page.get_by_label("Your question").press("Enter")

    expect(page.locator("#result-title")).to_have_text(UNKNOWN)
    for route in held:
        route.continue_()


def test_keys_ask_break_lines_and_jump_to_the_box(desk):
    page = desk.log_in("agent")
    box = page.get_by_label("Your question")
    expect(box).to_be_focused()
    box.press_sequentially("How do I block")
    box.press("Shift+Enter")
    box.press_sequentially("a lost card?")
    assert box.input_value() == "How do I block\na lost card?"

    box.press("Enter")
    page.locator("article.result").wait_for()
    page.locator("#result-title").click()
    expect(box).not_to_be_focused()
    page.keyboard.press("/")

    expect(box).to_be_focused()
    page.keyboard.type("x")  # what stood there was selected
    assert box.input_value() == "x"


def test_a_follow_up_by_keyboard_is_shown_edited_and_left(desk):
    make_entry("It costs 9 euros.", question="How do I block a stolen phone?")
    desk.log_in("agent")
    page = desk.ask(VERBATIM)

    page.keyboard.press("Escape")
    page.keyboard.press("f")
    expect(page.locator("#follow-up")).to_be_focused()
    page.keyboard.type("and a stolen phone?")
    page.keyboard.press("Enter")

    asked = page.locator("#result-title")
    expect(asked).to_contain_text("How do I block a stolen phone?", timeout=90_000)
    expect(page.locator(".answer-text")).to_contain_text("9 euros", timeout=90_000)
    expect(page.locator("p.asked-as")).to_contain_text("typed and a stolen phone?")
    expect(page.locator(".turns a")).to_have_text(VERBATIM)
    expect(page.locator("#follow-up")).to_be_focused()
    assert violations(page) == []
    page.get_by_text("Not what you meant?").press("Enter")
    page.get_by_label("Question as it is asked").fill(VERBATIM)
    page.get_by_label("Question as it is asked").press("Enter")
    expect(page.locator(".turns li")).to_have_count(3, timeout=90_000)
    expect(page.locator(".answer-text")).to_contain_text("under Cards, Block.")
    page.get_by_role("link", name="New question").press("Enter")
    expect(page.locator("#follow-up")).to_have_count(0)
    assert len(set(Answer.objects.values_list("conversation"))) == 2


def test_a_question_of_one_word_is_answered_by_choosing_what_is_meant(desk):
    make_entry("It costs 9 euros.", question="How do I block a stolen phone?")
    desk.log_in("agent")
    page = desk.ask("block?")
    meant = page.get_by_role("form", name="Do you mean one of these?")
    expect(meant.get_by_role("button", name="a stolen phone")).to_be_visible()
    assert violations(page) == []

    meant.get_by_role("button", name=VERBATIM).press("Enter")

    expect(page.locator("#result-title")).to_contain_text(VERBATIM)
    expect(page.locator(".answer-text")).to_contain_text("under Cards, Block.")
    expect(meant).to_have_count(0)


def test_citation_leads_to_its_card_by_keyboard(desk):
    desk.log_in("agent")
    page = desk.ask(VERBATIM)

    page.locator("a.citation").first.focus()
    page.keyboard.press("Enter")

    card = page.locator("#evidence-1")
    expect(card).to_be_focused()
    expect(card).to_have_class(re.compile("is-chosen"))


@pytest.mark.parametrize("question", [VERBATIM, UNKNOWN])
def test_vote_with_comment_and_its_taking_back(desk, question):
    ticked = ["should_be_known"] if question == UNKNOWN else []
    desk.log_in("agent")
    page = desk.ask(question)
    down = page.locator("#vote-down")

    down.press("Enter")
    expect(down).to_have_attribute("aria-pressed", "true")
    expect(down).to_be_focused()
    form = page.locator("#vote")  # a source has the same fields, to be flagged
    is_known = form.get_by_label("We should know this").and_(page.locator(":checked"))
    expect(is_known).to_have_count(len(ticked))
    form.get_by_label("Something else").check()
    form.get_by_label("Anything else?").fill("It misses <b>the fee</b>.")
    page.get_by_label("What should it have said?").fill("Twelve euros.")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_text("Your feedback is saved.")).to_be_visible()
    said = Vote.objects.get()

    page.locator("#vote-down").click()
    expect(page.locator("#vote-down")).to_have_attribute("aria-pressed", "false")

    assert (said.is_up, said.comment) == (False, "It misses <b>the fee</b>.")
    assert (said.reasons, said.expected_answer) == (
        [*ticked, "other"],
        "Twelve euros.",
    )
    assert not Vote.objects.exists()


def test_answer_is_copied_without_its_marks(make_desk):
    desk = make_desk(permissions=["clipboard-read", "clipboard-write"])
    desk.log_in("agent")
    page = desk.ask(VERBATIM)

    page.get_by_role("button", name="Copy answer").click()

    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "Block it at once in the app under Cards, Block."


def test_bad_question_is_said_at_the_box(desk):
    page = desk.log_in("agent")

    page.get_by_label("Your question").fill("?!")
    page.get_by_label("Your question").press("Enter")

    expect(page.locator("#ask-error")).to_contain_text("has no words")
    assert not Answer.objects.exists()
    desk.complaints.clear()  # Chromium reports the 400 itself


def test_back_leads_to_the_ask_page(desk):
    page = desk.log_in("agent")
    desk.ask(VERBATIM)

    page.go_back()

    expect(page.get_by_role("heading", name="Your recent questions")).to_be_visible()
    expect(page.locator("article.result")).to_have_count(0)


def test_ended_session_leads_to_the_login(desk):
    page = desk.log_in("agent")
    page.context.clear_cookies(name="sessionid")

    page.get_by_label("Your question").fill(VERBATIM)
    page.get_by_label("Your question").press("Enter")

    page.get_by_label("Password").wait_for()
    assert "/login" in page.url
    desk.complaints.clear()  # Chromium reports the refused request itself


def test_without_scripts_a_plain_form_answers(make_desk):
    desk = make_desk(java_script_enabled=False)
    page = desk.log_in("agent")

    page.get_by_label("Your question").fill(VERBATIM)
    page.get_by_role("button", name="Ask", exact=True).click()

    expect(page.locator(".answer-text")).to_contain_text("under Cards, Block.")
    page.get_by_role("button", name="Helpful", exact=True).click()
    expect(page.locator("#vote-up")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="Copy answer")).to_be_hidden()


def test_agent_finds_an_entry_while_typing_and_reads_its_document(desk):
    page = desk.log_in("agent", "/knowledge")
    expect(page.get_by_role("link", name="Price list")).to_be_visible()

    page.keyboard.type("witdrawals abroad")  # the field has the focus
    row = page.locator("#found .list a").first
    expect(row).to_contain_text("Cash withdrawals abroad")
    expect(page.locator("#announcement")).to_contain_text("related.")
    expect(page).to_have_url(re.compile(r"q=witdrawals%20abroad"))
    row.press("Enter")

    expect(page.locator(".answer-text")).to_contain_text("3 percent")
    page.get_by_label("Place").get_by_role("link", name="Price list").press("Enter")
    expect(page.locator(".reader-entry")).to_have_count(4)
