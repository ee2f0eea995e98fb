"""The calibration page by keyboard, without scripts, on a phone and in the dark."""

import pytest
from playwright.sync_api import expect

from accounts.roles import Role
from qa.evaluation.report.plots import plot_svg
from qa.models import Policy
from qa.policies.services import activate, new_version
from tests.browser.conftest import (
    OURS_IN_ADMIN,
    make_signed_up,
    violations_in_all_looks,
)
from tests.factories import make_knowledge_base
from tests.qa.evaluated import (
    labelled,
    make_logged,
    make_run,
    measured,
    policy_of_default_base,
)

PHONE = {"width": 360, "height": 740}


@pytest.fixture
def path(transactional_db) -> str:
    """Labelled and logged answers, an administrator, and the page's address."""
    make_signed_up(Role.ADMIN, "boss")
    first = policy_of_default_base()
    answers = (
        labelled("near", measured(0.5), answerable=True, correct=True),
        labelled("far", measured(0.8), answerable=True, correct=True),
        labelled("false", measured(0.75, 0.7), answerable=False, correct=None),
    )
    make_run(*answers)
    plot_svg(
        "reliability", answers, None
    )  # the drawing library takes seconds to load, once
    make_logged(measured(0.8)).votes.create(user=first.created_by or make_signed_up(Role.SME, "berta"), is_up=False)  # fmt: skip
    activate(new_version(first, by=None, name="wider", horizon=1.4))
    return f"/admin/qa/policy/calibration/{make_knowledge_base().pk}/"


def test_a_slider_moved_by_keyboard_shows_its_effect_and_is_saved(desk, path):
    page = desk.log_in("boss", path)
    labelled_effect, traffic = page.locator("#labelled-sum"), page.locator("#traffic")
    expect(labelled_effect).to_contain_text("3 are answered, 1 of them wrongly")

    slider = page.get_by_label("maximum distance, slider", exact=True)
    slider.focus()
    for _ in range(15):
        page.keyboard.press("ArrowLeft")

    expect(labelled_effect).to_contain_text("1 are answered, 0 of them wrongly")
    expect(traffic).to_contain_text("1 more refused, 1 of them had thumbs down")
    expect(page.get_by_label("maximum distance", exact=True)).to_have_value("0.7")
    assert "alpha=0.7" in page.url
    page.reload()
    expect(labelled_effect).to_contain_text("1 are answered, 0 of them wrongly")

    page.get_by_role("button", name="Save as a new version").focus()
    page.keyboard.press("Enter")

    expect(page.get_by_text("is created, set by hand")).to_be_visible()
    assert Policy.objects.latest("pk").alpha == 0.7


def test_nothing_is_saved_before_its_effect_is_shown(desk, path):
    page = desk.log_in("boss", path)
    held = []
    page.route("**/labelled?*", lambda route: held.append(route))
    before = Policy.objects.count()
    save = page.get_by_role("button", name="Save as a new version")

    page.get_by_label("maximum distance", exact=True).fill("0.7")
    expect(save).to_be_disabled()
    save.click(force=True)
    page.wait_for_timeout(400)
    expect(save).to_be_disabled()  # asked for, and not there yet
    assert Policy.objects.count() == before

    held[0].continue_()
    expect(save).to_be_enabled()
    save.press("Enter")
    expect(page.get_by_text("is created, set by hand")).to_be_visible()
    assert Policy.objects.latest("pk").alpha == 0.7


def test_a_number_moves_its_slider_and_a_switch_takes_a_gate_off(desk, path):
    page = desk.log_in("boss", path)
    effect = page.locator("#labelled-sum")

    page.get_by_label("maximum distance", exact=True).fill("0.6")
    expect(effect).to_contain_text("1 are answered")
    slider = page.get_by_label("maximum distance, slider", exact=True)
    expect(slider).to_have_value("0.6")
    page.get_by_label("Hard refusal in shadow").press("Space")

    expect(effect).to_contain_text("3 are answered, 1 of them wrongly")


def test_thresholds_that_make_no_sense_are_told_where_they_are_tried(desk, path):
    page = desk.log_in("boss", path)

    page.get_by_label("maximum distance", exact=True).fill("1.9")

    expect(page.locator("#labelled").get_by_role("alert")).to_contain_text("horizon")
    expect(page.locator("#traffic")).to_contain_text("Correct the thresholds first.")


def test_it_works_without_scripts(make_desk, path):
    desk = make_desk(java_script_enabled=False)
    page = desk.log_in("boss", path)

    expect(page.get_by_label("maximum distance, slider", exact=True)).to_be_hidden()
    page.get_by_label("maximum distance", exact=True).fill("0.7")
    page.get_by_role("button", name="Show the effect").click()

    expect(page.locator("#labelled-sum")).to_contain_text("1 are answered")
    expect(page.locator("#traffic")).to_contain_text("1 more refused")


def test_everyone_can_use_the_pages(make_desk, path):
    desk = make_desk(reduced_motion="reduce")
    desk.let_in("boss")
    found = {}

    for name in ("", "?alpha=1.9&alpha_unverified=2&min_verdict=0.5", "compare"):
        page = desk.open(path + name)
        page.wait_for_load_state("networkidle")
        for details in page.locator(".cal details").all():
            details.locator("summary").click()
        found[name] = violations_in_all_looks(page, OURS_IN_ADMIN)
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]

    assert found == {name: [] for name in found}
