"""The playground by keyboard: compare, save a test case; and what it looks like to whom."""

import pytest
from playwright.sync_api import expect

from accounts.roles import Role
from kb.models import Entry
from qa.models import Answer, SavedCase
from qa.policies.services import active_policy, new_version
from tests.browser.conftest import make_signed_up, violations_in_all_looks
from tests.factories import (
    make_audience,
    make_entry,
    make_knowledge_base,
    make_user,
)

QUESTION = "How do I block a lost card?"

pytestmark = pytest.mark.usefixtures("knowledge")


@pytest.fixture
def expert(transactional_db, knowledge):
    new_version(
        active_policy(make_knowledge_base()), by=None, verbatim_distance=0.0, alpha=0.0
    )
    return make_signed_up(Role.SME, "berta")


def test_a_question_is_compared_and_saved_by_keyboard(desk, expert):
    page = desk.log_in("berta", "/playground")
    page.get_by_label("Compare with").select_option(label="default v2")
    page.get_by_label("Stop before the language model").press("Space")

    page.get_by_label("Question").fill(QUESTION)
    page.get_by_label("Question").press("Enter")

    expect(page.get_by_role("heading", name="What differs")).to_be_visible()
    expect(page.locator(".play-sides article")).to_have_count(2)
    differing = page.locator(".play-differences")
    expect(differing).to_contain_text("Answered, word for word")
    expect(differing).to_contain_text("Not answered")

    page.get_by_role("button", name="Save test case").press("Enter")

    expect(page.locator("#saved")).to_contain_text("is to be answered")
    case = SavedCase.objects.get()
    assert list(case.entries.all()) == [Entry.objects.get(question=QUESTION)]
    assert not Answer.objects.exists()


def test_a_question_is_asked_as_somebody_who_may_see_less(desk, expert):
    vault = "What is the word of the vault?"
    leads = make_audience("leads", groups=["leads"])
    make_entry("The vault's word is sesame.", question=vault, audience=leads)
    expert.groups.add(*leads.groups.all())
    boss = make_user(Role.ADMIN, username="boss", groups=["board"])
    make_audience("board", groups=["board"])
    page = desk.log_in("berta", "/playground")
    tried = page.get_by_role("article")
    page.get_by_label("Stop before the language model").press("Space")
    page.get_by_label("Question").fill(vault)
    page.keyboard.press("Enter")
    expect(tried).to_contain_text("sesame")

    page.get_by_label("Ask as").fill("agent")
    page.keyboard.press("Enter")
    expect(
        page.get_by_text("Asked as agent, with what that user may see.")
    ).to_be_visible()
    expect(tried).not_to_contain_text("sesame")
    page.get_by_label("It is refused").press("Space")
    page.get_by_role("button", name="Save test case").press("Enter")
    expect(page.locator("#saved")).to_contain_text("is to be refused")

    page.get_by_label("Ask as").fill(boss.username)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("You can't ask as “boss”")
    desk.complaints.clear()  # Chromium reports the 400 itself


def test_one_sees_that_a_question_is_being_tried(desk, expert):
    page = desk.log_in("berta", "/playground")
    held = []
    page.route("**/playground", lambda route: held.append(route))
    working = page.get_by_text("Trying the question…")
    expect(working).to_be_hidden()

    page.get_by_label("Question").fill(QUESTION)
    page.get_by_label("Question").press("Enter")

    expect(working).to_be_visible()
    for _ in range(50):  # it is seen before the request reaches the route
        if held:
            break
        page.wait_for_timeout(20)
    held[0].continue_()
    expect(page.locator("#tried article").first).to_be_visible()
    expect(working).to_be_hidden()


def test_another_version_shows_its_own_thresholds_and_a_slider_fills_a_number(desk, expert):  # fmt: skip
    page = desk.log_in("berta", "/playground")
    distance = page.get_by_label("Maximum distance", exact=True)
    page.locator("#thresholds summary").press("Enter")

    page.get_by_label("Maximum distance, slider", exact=True).press("ArrowLeft")
    expect(distance).not_to_have_value("")
    page.get_by_label("Policy version").select_option(label="default v2")

    expect(page.locator("#thresholds summary")).to_contain_text("default v2")
    expect(distance).to_have_attribute("placeholder", "0.0")


def test_everyone_can_use_the_page(make_desk, expert):
    desk = make_desk(reduced_motion="reduce")
    page = desk.log_in("berta", "/playground")
    page.locator("#thresholds summary").click()
    found = {"form": violations_in_all_looks(page)}
    page.get_by_label("Compare with").select_option(label="default v2")
    page.get_by_label("Question").fill(QUESTION)
    page.get_by_label("Question").press("Enter")
    page.locator(".play-sides article").first.wait_for()
    for details in page.locator("#tried details").all():
        details.locator("summary").click()

    found["tried"] = violations_in_all_looks(page)

    assert found == {"form": [], "tried": []}
