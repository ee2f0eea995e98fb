"""An expert judges with the keyboard alone, in a real browser."""

import pytest
from playwright.sync_api import expect

from accounts.roles import Role
from qa.models import Review
from tests.qa.reviews.review_rows import make_review

from .conftest import OURS_IN_ADMIN, make_signed_up, violations_in_all_looks

pytestmark = pytest.mark.usefixtures("knowledge")


def test_answers_are_judged_one_after_the_other_without_a_mouse(desk):
    answered, refused = make_review(), make_review(refused=True)
    make_signed_up(Role.SME, "olga")
    page = desk.log_in("olga", "/admin/qa/review/")
    page.get_by_role("button", name="Review the next").press("Enter")
    expect(page.get_by_label("no", exact=True).first).to_be_focused()
    page.get_by_role("heading", name="Question", exact=True).click()
    expect(page.locator("body")).to_be_focused()  # and the keys go on
    for key in ("2", "1", "2"):
        page.keyboard.press(key)
    page.keyboard.press("Shift+Digit1")
    expect(page.get_by_role("button", name="Save and next")).to_be_focused()
    page.get_by_label("yes").first.focus()
    page.keyboard.press("e")
    page.keyboard.type("It costs 12 euros, 0 cents.")
    page.keyboard.press("Control+Enter")

    expect(page.get_by_text("Should it have been answered?")).to_be_visible()
    expect(page.locator("[data-grade] input").first).to_be_focused()
    page.keyboard.press("2")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Nothing waits for you.").first).to_be_visible()

    answered.refresh_from_db()
    refused.refresh_from_db()
    assert (answered.completeness, answered.correctness, answered.truthfulness) == (
        2,
        1,
        2,
    )
    # What was cited is marked from the beginning; the key took the mark away.
    assert (answered.evidence_used, answered.ideal_answer) == (
        [],
        "It costs 12 euros, 0 cents.",
    )
    assert (refused.state, refused.should_be_answered) == ("done", True)
    assert Review.objects.done().count() == 2


def test_the_pages_of_reviews_have_no_barriers(make_desk):
    make_review()
    make_signed_up(Role.CURATOR, "carla")
    desk = make_desk(reduced_motion="reduce")
    page = desk.log_in("carla", "/admin/qa/review/")
    assert violations_in_all_looks(page, OURS_IN_ADMIN) == []
    page.get_by_role("button", name="Review the next").click()
    page.get_by_text("Edit entry").click()
    assert violations_in_all_looks(page, OURS_IN_ADMIN) == []
