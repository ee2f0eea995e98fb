"""A German question to the English demonstration: what refuses it speaks German."""

import pytest
from playwright.sync_api import Locator, expect

from accounts.roles import Role
from kb.demonstration import load_demonstration
from kb.models import Entry, KnowledgeBase
from qa.models import Answer, Vote
from qa.pipeline.gates import Reason
from qa.policies.services import ensure_default_policy
from qa.policies.wording import WORDS
from tests.factories import make_curator

from .conftest import make_signed_up, violations

QUESTION = "Was kostet die Tarn Gold Card im Jahr?"
# The language of every text as a browser reads it out: that of the nearest `lang`.
SPOKEN = """part => {
    const texts = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) {
        const text = texts.currentNode.data.trim().replace(/\\s+/g, " ");
        if (text) found.push([texts.currentNode.parentElement.closest("[lang]").lang, text]);
    }
    return found;
}"""

pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.verifier]


def spoken(part: Locator) -> dict[str, str]:
    found = part.evaluate(SPOKEN)
    return {
        language: "\n".join(text for at, text in found if at == language)
        for language in {language for language, _text in found}
    }


def test_a_german_question_is_refused_in_german_and_read_out_so(desk):
    load_demonstration(author=make_curator())
    ensure_default_policy(KnowledgeBase.objects.get())
    make_signed_up(Role.AGENT, "agent")
    desk.log_in("agent")

    page = desk.ask(QUESTION)

    answer, words = Answer.objects.get(), WORDS["de"]
    reason = words.reasons[Reason(answer.shown_reason)]
    assert answer.text == reason.asker
    parts = spoken(page.locator(".result-main"))
    named = (
        "not_answered", "next_steps", "asks_which_answers", "which_answers",
        "this_answers", "verified", "open_entry", "was_it_right", "should_be_known",
    )  # fmt: skip
    labels = [words.labels[name] for name in named]
    said = (answer.text, reason.title, reason.why, *reason.next_steps, *labels)
    assert [text for text in said if text not in parts["de"]] == []
    assert [text for text in said if text in parts["en"]] == []
    assert any(
        text in parts["en"] for text in Entry.objects.values_list("text", flat=True)
    )
    announcement = page.locator("#announcement")
    expect(announcement).to_have_attribute("lang", "de")
    expect(announcement).to_contain_text(f"Nicht beantwortet. {reason.title}.")
    expect(page.get_by_role("heading", name="How this was decided")).to_be_visible()
    assert violations(page) == []

    page.get_by_role("button", name=words.labels["should_be_known"]).press("Enter")
    page.get_by_label(words.labels["reason_wrong_reason"]).press("Space")
    page.get_by_role("button", name=words.labels["send"], exact=True).press("Enter")
    update = page.get_by_role("button", name=words.labels["update_feedback"])
    expect(update).to_be_visible()
    page.get_by_role("button", name=words.labels["send_to_an_expert"]).press("Enter")
    waits = page.get_by_role("heading", name=words.labels["waits_for_an_expert"])
    expect(waits).to_be_visible()
    assert list(spoken(page.locator("#vote"))) == ["de"]
    assert list(spoken(page.locator("#escalation"))) == ["de"]
    assert violations(page) == []
    assert Vote.objects.get().reasons == [
        Vote.Reason.SHOULD_BE_KNOWN,  # by the button, which says so
        Vote.Reason.WRONG_REASON,
    ]

    page.get_by_role("button", name=words.labels["this_answers"]).first.press("Enter")
    expect(page.locator("#near-title")).to_have_text(words.labels["chosen"])
    expect(announcement).to_have_text(words.labels["choice_kept"])
    assert Vote.objects.get().answering_entry is not None
