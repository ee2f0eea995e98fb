"""A curator edits entries where they are due or contradict each other, by keyboard."""

import pytest
from playwright.sync_api import expect

from accounts.roles import Role
from kb.conflicts.finding import find_entry_conflicts
from kb.entries.services import edit_entry
from kb.entries.states import mark_for_review
from kb.models import Conflict, Entry
from tests.factories import make_curator, make_entry

from .conftest import make_signed_up, violations, violations_in_all_looks

pytestmark = pytest.mark.usefixtures("knowledge")
DUE = "/admin/kb/entry/due?whose=all"


@pytest.fixture
def due():
    """Return what is due, in the order of the page."""
    rows = Entry.objects.filter(text__contains="Tarn").order_by("pk")
    return [mark_for_review(entry_id=entry.pk, by=make_curator()) for entry in rows]


@pytest.fixture
def conflict():
    other = make_entry("The Tarn Gold card costs 80 euros a year.")
    (found,) = find_entry_conflicts(other.pk)
    return found


def test_what_is_due_is_edited_in_its_place_and_that_is_undone(curator, due):
    first, second = due
    page = curator.open(DUE)
    edit = page.locator(f"#edit-{second.pk}")
    edit.press("Enter")
    text = page.get_by_label("Text")
    expect(text).to_be_focused()
    expect(page.get_by_role("button", name="Still true")).to_have_count(0)

    page.keyboard.press("Escape")
    expect(edit).to_be_focused()
    page.keyboard.press("e")
    expect(text).to_be_focused()
    expect(text).to_have_value(second.text)
    text.fill("The Tarn Silver card costs 25 euros a year.")
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.keyboard.press("Escape")
    expect(text).to_be_focused()
    page.keyboard.press("Control+Enter")

    saved = page.locator(".edited")
    expect(saved).to_contain_text("Saved.")
    expect(edit).to_be_focused()
    article = page.locator(f"#due-{second.pk}")
    expect(article).to_contain_text("costs 25 euros")
    assert page.url.endswith(DUE)
    assert violations(page, "#content") == []
    saved.get_by_role("button", name="Undo").press("Enter")
    expect(page.get_by_text("Undone: Saved.")).to_be_visible()
    assert page.url.endswith(DUE)
    expect(article).to_contain_text("costs 24 euros")
    expect(page.locator(f"#due-{first.pk}")).to_be_visible()


def test_who_ends_by_editing_what_it_was_due_for_can_undo_it_at_once(curator):
    entry = Entry.objects.get(text__startswith="Cash withdrawals")
    Entry.objects.filter(pk=entry.pk).update(verified_at="2020-01-01T00:00Z")
    page = curator.open(DUE)
    page.keyboard.press("e")
    page.get_by_label("Text").fill("Cash withdrawals abroad cost 4 percent.")
    page.keyboard.press("Control+Enter")

    undo = page.locator(".edited").get_by_role("button", name="Undo")
    expect(undo).to_be_focused()
    expect(page.locator(f"#due-{entry.pk}")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.locator(f"#due-{entry.pk}")).to_contain_text("cost 3 percent")


def test_an_entry_is_edited_beside_what_contradicts_it(curator, conflict):
    page = curator.open(f"/admin/kb/conflict/{conflict.pk}/change/")
    page.get_by_label("Reason").fill("The list of May says 72.")
    edit = page.get_by_role("link", name=f"Edit entry {conflict.second_id}")
    edit.press("Enter")
    text = page.get_by_label("Text", exact=True)
    expect(text).to_be_focused()
    expect(page.get_by_role("button", name="is right")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(edit).to_be_focused()
    expect(page.get_by_label("Reason")).to_have_value("The list of May says 72.")

    page.keyboard.press("Enter")
    text.fill("The Tarn Gold card costs 82 euros a year.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".edited")).to_contain_text("it is not verified any more")
    expect(edit).to_be_focused()
    expect(page.get_by_label("Reason")).to_have_value("The list of May says 72.")
    expect(page.get_by_role("button", name="is right").first).to_be_visible()
    page.keyboard.press("Enter")
    text.fill("The lounge in the airport opens at 6 in the morning.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Outdated", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="is right")).to_have_count(0)
    assert Conflict.objects.get().state == Conflict.State.OUTDATED


_SAVES_AT_ONCE = """() => new MutationObserver((_, observer) => {
  const form = document.getElementById("entry-form");
  if (form) {
    observer.disconnect();
    form.requestSubmit();
  }
}).observe(document.body, { childList: true, subtree: true })"""


def test_a_form_saves_in_its_place_from_the_moment_it_stands_there(curator, conflict):
    page = curator.open(f"/admin/kb/conflict/{conflict.pk}/change/")
    page.evaluate("window.isTheSamePage = true")
    page.evaluate(_SAVES_AT_ONCE)
    page.get_by_role("link", name=f"Edit entry {conflict.second_id}").press("Enter")

    expect(page.locator(".edited")).to_be_visible()
    assert page.evaluate("window.isTheSamePage")


def test_it_is_edited_from_there_without_scripts(make_desk, due):
    make_signed_up(Role.CURATOR, "carla")
    desk = make_desk(java_script_enabled=False)
    page = desk.log_in("carla", DUE)
    page.locator(f"#edit-{due[1].pk}").press("Enter")
    page.get_by_role("link", name="Cancel").press("Enter")
    assert page.url.endswith(f"{DUE}#edit-{due[1].pk}")
    page.locator(f"#edit-{due[1].pk}").press("Enter")
    page.get_by_label("Text").fill("The Tarn Silver card costs 25 euros a year.")
    page.get_by_role("button", name="Save").press("Enter")
    assert page.url.endswith(DUE)
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.locator(f"#due-{due[1].pk}")).to_contain_text("costs 25 euros")


def test_the_form_in_the_admin_has_no_accessibility_violation(make_desk, due, conflict):
    make_signed_up(Role.CURATOR, "carla")
    desk = make_desk(reduced_motion="reduce")
    desk.let_in("carla")
    found = {}
    for name, entry, path in (
        ("due", due[0], DUE),
        ("conflict", conflict.second, f"/admin/kb/conflict/{conflict.pk}/change/"),
    ):
        page = desk.open(path)
        page.locator(f"#edit-{entry.pk}").press("Enter")
        text = page.get_by_label("Text", exact=True)
        expect(text).to_be_focused()
        found[name] = violations_in_all_looks(page, "#content")
        edit_entry(
            entry_id=entry.pk, author=make_curator(), may_verify=True, text="It is 9."
        )
        text.fill("It is 10.")
        page.keyboard.press("Control+Enter")
        page.get_by_role("region", name="Current version").wait_for()
        expect(text).to_be_focused()
        desk.complaints.pop()  # Chromium reports the 422 itself
        found[f"{name}, both"] = violations_in_all_looks(page, "#content")
        page.keyboard.press("Control+Enter")
        page.locator(".edited").wait_for()
        found[f"{name}, saved"] = violations_in_all_looks(page, "#content")

    assert found == {name: [] for name in found}
