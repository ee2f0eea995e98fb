"""Who runs it reads what gates and models do, and chooses what to be mailed about."""

import pytest
from playwright.sync_api import expect

from accounts.roles import Role
from accounts.services import alerts_of
from qa.dashboard.counting import count_days
from tests.browser.conftest import make_signed_up, violations
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
    desk.log_in("erik")

    page = desk.open("/admin/qa/answer/dashboard/")

    gates = page.get_by_role("region", name="Gates in shadow").last
    expect(gates.get_by_role("row").last).to_contain_text("Soft refusal")
    expect(gates.get_by_role("row").last).to_contain_text("100.0")
    models = page.get_by_role("region", name="Models").last
    expect(models.get_by_role("row").last).to_contain_text("Language model: bundled")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_dashboard_leads_to_what_one_is_mailed_about(make_desk, knowledge):
    expert = make_signed_up(Role.SME, "erik")
    desk = make_desk()
    desk.log_in("erik")
    page = desk.open("/admin/qa/answer/dashboard/")

    page.get_by_role("link", name="Choose what you are mailed about").press("Enter")
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
