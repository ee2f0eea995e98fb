"""Who runs it reads what was asked and how it went, and chooses what to be mailed about."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import expect

from accounts.roles import Role
from accounts.services import alerts_of
from qa.dashboard.counting import count_days
from qa.models import Answer
from qa.pipeline.gates import Gate, Reason
from qa.policies.services import ensure_default_policy
from qa.policies.wording import REASONS
from tests.browser.conftest import choose_by_typing, make_signed_up, violations
from tests.factories import make_knowledge_base
from tests.qa.answer_rows import make_answer
from tests.qa.dashboard.test_model_use import written
from tests.qa.dashboard.test_shadows import UNSUPPORTED, shown, version

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_dashboard_says_what_gates_in_shadow_and_models_do(
    make_desk, knowledge, width, scheme
):
    shown(version(off=("support_check",)), UNSUPPORTED)
    written()
    count_days()
    make_signed_up(Role.SME, "erik")
    desk = make_desk(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        reduced_motion="reduce",
    )
    page = desk.log_in("erik", "/admin/qa/answer/dashboard/")

    gates = page.get_by_role("region", name="Gates in shadow").last
    expect(gates.get_by_role("row").last).to_contain_text("Soft refusal")
    expect(gates.get_by_role("row").last).to_contain_text("100.0")
    models = page.get_by_role("region", name="Models").last
    expect(models.get_by_role("row").last).to_contain_text("Language model: bundled")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


_REFUSED = (
    (Gate.HARD_REFUSAL, Reason.NOT_ENTITLED),
    (Gate.ENTRY, Reason.NOT_ANSWERED),
    (Gate.SOFT_REFUSAL, Reason.MODEL_DECLINED),
    (Gate.SOFT_REFUSAL, Reason.MALFORMED_OUTPUT),
    (Gate.SOFT_REFUSAL, Reason.UNSUPPORTED),
    (Gate.ABSTENTION, Reason.LOW_CONFIDENCE),
)
# The lines that a chart drew, by bar, and where the bars begin.
_DRAWN = """element => {
    const { scales } = Chart.getChart(element);
    const { ticks, left, right } = scales.y;
    const context = element.getContext("2d");
    context.font = Chart.helpers.toFont(scales.y.options.ticks.font).string;
    const widths = ticks.flatMap(tick => tick.label.map(line => context.measureText(line).width));
    return { bars: ticks.length, lines: ticks.map(tick => tick.label.join(" ")),
             room: right - left - Math.max(...widths),
             height: scales.y.height / ticks.reduce((most, tick) => Math.max(most, tick.label.length), 0) / ticks.length };
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_every_gate_and_reason_of_the_dashboard_is_named_whole(
    make_desk, knowledge, width
):
    asker = User.objects.get(username="agent")
    for gate, reason in _REFUSED:
        answer = make_answer(asker)
        Answer.objects.filter(pk=answer.pk).update(
            gate=gate, reason=reason, shown_reason=reason
        )
    count_days()
    make_signed_up(Role.SME, "erik")
    page = make_desk(viewport={"width": width, "height": 900}).log_in(
        "erik", "/admin/qa/answer/dashboard/"
    )

    chart = page.get_by_role("img", name="Answered and refused, by gate and reason")
    expect(chart).to_be_visible()
    page.wait_for_function("e => Chart.getChart(e)", arg=chart.element_handle())
    drawn = chart.evaluate(_DRAWN)

    assert drawn["bars"] == len(_REFUSED)
    for line in drawn["lines"]:
        assert any(REASONS[reason].title in line for _, reason in _REFUSED), line
    assert drawn["room"] >= 0, "a label is cut off at its left"
    assert drawn["height"] >= 14, "pixels for each line of 12"


def test_the_dashboard_leads_to_what_one_is_mailed_about(make_desk, knowledge):
    expert = make_signed_up(Role.SME, "erik")
    desk = make_desk()
    page = desk.log_in("erik", "/admin/qa/answer/dashboard/")

    page.get_by_role("link", name="Choose what you get mail about").press("Enter")
    waiting = page.get_by_role("group", name="Mail me when").get_by_label(
        "questions wait for an expert"
    )
    expect(waiting).not_to_be_checked()
    waiting.press("Space")
    page.get_by_role("button", name="Save").press("Enter")

    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(waiting).to_be_checked()
    assert violations(page) == []
    assert alerts_of(type(expert).objects.get(pk=expert.pk)) == ("escalations",)


def test_the_figures_are_what_was_asked_in_the_period_and_the_knowledge_base(
    make_desk, knowledge
):
    agent, expert = make_desk(), make_desk()
    agent.let_in("agent")
    for question in ("How do I block a lost card?", "Who won the chess game?"):
        agent.open("/")
        agent.ask(question)
    agent.page.locator("#vote-down").press("Enter")
    expect(agent.page.locator("#vote-down")).to_have_attribute("aria-pressed", "true")
    asker, travel = User.objects.get(username="agent"), make_knowledge_base("travel")
    ensure_default_policy(travel)
    long_ago = [make_answer(asker).pk, make_answer(asker).pk]
    then = timezone.now() - timedelta(days=60)
    Answer.objects.filter(pk__in=long_ago).update(created_at=then)
    Answer.objects.filter(pk=make_answer(asker).pk).update(knowledge_base=travel)
    count_days()

    make_signed_up(Role.SME, "eva")
    page = expert.log_in("eva", "/admin/qa/answer/dashboard/")

    def tile(name):
        return page.locator(".dash-tiles > div", has=page.get_by_text(name, exact=True))

    questions = tile("Questions").locator(".dash-value")

    expect(questions).to_have_text("3")
    base = page.get_by_label("Knowledge base")
    expect(base).to_be_visible()
    choose_by_typing(base, "Cards")
    page.get_by_role("button", name="Show").press("Enter")
    expect(questions).to_have_text("2")
    expect(tile("Answered")).to_contain_text("50.0")
    expect(tile("Refused")).to_contain_text("50.0")
    expect(tile("Thumbs down")).to_contain_text("1 of 1 votes")
    chart = page.get_by_role("region", name="Questions by day")
    expect(chart.get_by_role("img")).to_be_visible()
    chart.get_by_text("As a table").press("Enter")
    expect(chart.get_by_role("row").nth(1)).to_be_visible()
    choose_by_typing(page.get_by_label("Last", exact=True), "90")
    page.get_by_role("button", name="Show").press("Enter")
    expect(questions).to_have_text("4")
    expect(tile("Refused")).to_contain_text("75.0")
