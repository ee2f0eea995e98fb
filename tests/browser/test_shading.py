"""How sure an answer is, shown as shading: for eyes, keyboards and screen readers."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from qa.models import Answer
from tests.browser.conftest import violations_in_all_looks
from tests.factories import make_entry
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.usefixtures("knowledge")

TOKENS = ("Twelve", " eu", "ros", " a", " year")
ALONG = (0.05, 0.3, 0.5, 0.7, 0.95)


def answered(desk) -> Answer:
    """An answer of the agent with a confidence of every level along its words."""
    desk.let_in("agent")
    signal = {"gate": "abstention", "name": "answer_confidence", "value": 0.83, "threshold": 0.5, "passed": True}  # fmt: skip
    return make_answer(
        User.objects.get(username="agent"),
        cited=(make_entry("A card costs twelve euros a year."),),
        text="Twelve euros a year is what it costs.",
        signals=[signal],
        generation={"short_answer": "Twelve euros a year", "tokens": TOKENS},
        confidence={"along": ALONG, "missing": ""},
    )


def test_shading_is_folded_told_apart_without_colour_and_read_as_a_table(make_desk):
    desk = make_desk(reduced_motion="reduce")
    answer = answered(desk)

    page = desk.open(f"/answers/{answer.pk}")

    expect(page.locator(".answer-text mark")).to_have_text("Twelve euros a year")
    expect(page.locator(".shaded")).to_be_hidden()
    page.get_by_text("Confidence by word").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".shaded")).to_have_text("".join(TOKENS))
    styles = page.locator(".shaded .token").evaluate_all(
        "all => all.map(t => { const s = getComputedStyle(t);"
        " return s.textDecorationLine + ' ' + s.textDecorationStyle; })"
    )
    assert len(set(styles)) == len(TOKENS)
    row = page.get_by_role("row", name="Twelve 0.05, very low")
    expect(row).to_have_count(1)
    assert violations_in_all_looks(page) == []


def test_the_sentence_that_answers_is_marked_by_a_line_and_in_words(make_desk):
    desk = make_desk(reduced_motion="reduce")
    desk.let_in("agent")
    told = "The Student card is free 🎉 until 27."
    whole = f"The Gold card costs 72 euros. {told} Both come by post."
    answer = make_answer(
        User.objects.get(username="agent"),
        cited=(make_entry(whole),),
        text=whole,
        gate="entry",
    )
    answer.evidence.update(quote=told)

    page = desk.open(f"/answers/{answer.pk}")

    marks = page.locator("mark")
    expect(marks).to_have_text([told, told])  # in the answer and in its source
    style = marks.first.evaluate(
        "m => [getComputedStyle(m).textDecorationLine,"
        " getComputedStyle(m, '::before').content, getComputedStyle(m, '::after').content]"
    )
    assert style == ["underline", '" [marked] "', '" [end of mark] "']
    assert violations_in_all_looks(page) == []
