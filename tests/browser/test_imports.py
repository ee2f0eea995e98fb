"""A curator imports files by keyboard, one of them with a row that cannot be read."""

import pytest
from playwright.sync_api import FilePayload, Page, expect

from accounts.roles import Role
from kb.models import Entry
from tests.factories import make_audience, make_knowledge_base

from .conftest import Desk, make_signed_up, work

TABLE = b"""question,answer
Is the hotline free of charge?,"Yes, from every network in the country."
When is the branch open?,
May a child have a card?,From the age of seven.
"""
RULES = b"""# Rules for cards

## Abroad

A card works in every country that is not under sanctions.

### Cash

A withdrawal abroad costs 3 percent of the amount.

## At home

A card works at every till in the country.

### Cash

A withdrawal at home costs nothing.
"""
HEADINGS = ["Rules for cards", "Abroad", "Cash", "At home", "Cash"]

pytestmark = pytest.mark.usefixtures("transactional_db", "import_directory")


@pytest.fixture
def curator(desk: Desk) -> Desk:
    make_knowledge_base()
    make_audience()
    make_signed_up(Role.CURATOR, "carla")
    desk.let_in("carla")
    return desk


def check(curator: Desk, name: str, content: bytes) -> Page:
    """Let a file be looked at, and open what it would change."""
    page = curator.open("/admin/kb/import/")
    page.get_by_role("link", name="Import files").first.press("Enter")
    file: FilePayload = {"name": name, "mimeType": "text/plain", "buffer": content}
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_label("Verify").press("Space")
    page.get_by_role("button", name="Check the files").press("Enter")
    expect(page.get_by_text("Checking what would change")).to_be_visible()
    work("kb.import")
    page.reload()
    return page


def apply(page: Page) -> None:
    page.get_by_text("Apply this import").first.press("Enter")
    page.get_by_role("button", name="Confirm").press("Enter")
    expect(page.get_by_text("The import is being applied.")).to_be_visible()
    work("kb.import")
    page.reload()


def test_a_bad_row_is_named_by_its_line_and_the_others_are_imported(curator):
    page = check(curator, "answers.csv", TABLE)
    expect(page.get_by_text("Nothing is written yet.")).to_be_visible()
    expect(page.get_by_text("line 3: It has a question and no answer.")).to_be_visible()
    assert not Entry.objects.exists()

    apply(page)

    expect(page.get_by_text("Created, for example")).to_be_visible()
    expect(page.get_by_text("Nothing is written yet.")).to_have_count(0)
    expect(page.get_by_text("Apply this import")).to_have_count(0)
    expect(page.get_by_text("line 3: It has a question and no answer.")).to_be_visible()
    page = curator.open("/admin/kb/import/")
    row = page.get_by_role("row").filter(has_text="answers.csv")
    expect(row).to_contain_text("applied")
    expect(row).to_contain_text("2 created")
    expect(row).to_contain_text("1 bad")
    assert Entry.objects.filter(state="verified").count() == 2


def test_it_says_how_many_files_are_chosen(curator):
    page = curator.open("/admin/kb/import/upload/")
    table: FilePayload = {"name": "a.csv", "mimeType": "text/csv", "buffer": TABLE}
    rules: FilePayload = {"name": "b.md", "mimeType": "text/plain", "buffer": RULES}
    chosen = page.get_by_label("Choose file to upload")

    page.locator("input[type=file]").set_input_files([table, rules])
    expect(chosen).to_have_value("2 files")
    page.locator("input[type=file]").set_input_files(rules)
    expect(chosen).to_have_value("b.md")


def test_a_documents_sections_come_in_its_own_order_with_their_entries(curator):
    page = check(curator, "rules.md", RULES)
    apply(page)

    page = curator.open("/admin/kb/document/")
    page.get_by_role("link", name="Rules for cards").press("Enter")
    page.wait_for_url("**/change/")
    headings = page.get_by_role("textbox", name="Heading")
    shown = [box.input_value() for box in headings.all()]
    assert [each for each in shown if each] == HEADINGS

    page = curator.open("/knowledge")
    page.get_by_role("link", name="Rules for cards").press("Enter")
    contents = page.get_by_role("navigation", name="Contents").get_by_role("link")
    expect(contents).to_have_text(HEADINGS)
    cash = page.get_by_role("region", name="Cash")
    expect(cash).to_contain_text(["abroad costs 3 percent", "at home costs nothing"])
