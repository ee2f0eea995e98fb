"""A curator follows a folder of files with the keyboard alone, in a real browser."""

import pytest
from playwright.sync_api import expect

from accounts.roles import Role
from kb.models import Entry, FollowedSource
from kb.sources.services import KIND
from tests.factories import make_audience
from tests.kb.sources.following import ABROAD, CARDS

from .conftest import make_signed_up, violations, work

pytestmark = pytest.mark.usefixtures("knowledge", "import_directory")


@pytest.fixture
def folder(settings, tmp_path):
    root = tmp_path / "sources"
    (root / "help").mkdir(parents=True)
    (root / "cards.md").write_text(CARDS)
    (root / "help" / "abroad.md").write_text(ABROAD)
    settings.SOURCE_DIRECTORIES = [str(root)]
    return root


def check(page) -> None:
    page.get_by_role("link", name="Check now").press("Enter")
    page.get_by_role("button", name="Confirm").press("Enter")
    page.get_by_text("The source is being read.").wait_for()
    work(KIND)
    page.reload()


def test_a_folder_is_followed_without_a_mouse(desk, folder):
    make_audience("staff", groups=["staff"])
    make_signed_up(Role.CURATOR, "carla")
    desk.log_in("carla")

    page = desk.open("/admin/kb/followedsource/")
    page.get_by_role("link", name="Follow a source").first.press("Enter")
    page.get_by_label("Name").focus()
    page.keyboard.type("Help pages")
    page.get_by_label("Address").focus()
    page.keyboard.type("/etc")
    page.keyboard.press("Enter")
    expect(page.get_by_text("is not below")).to_be_visible()
    page.get_by_label("Address").fill(str(folder))
    page.keyboard.press("Enter")
    page.get_by_text("It is followed.").wait_for()
    expect(page.get_by_text("It was not read to its end yet.")).to_be_visible()

    check(page)
    expect(page.get_by_text("2 documents imported")).to_be_visible()
    assert violations(page, ".followed") == []

    (folder / "help" / "abroad.md").unlink()
    check(page)
    page.get_by_role("link", name="1 entry proposed for retirement").press("Enter")
    expect(page.get_by_text("It is no longer in the followed source")).to_be_visible()
    page.get_by_role("button", name="Retire").press("Enter")
    page.get_by_text("Retired").first.wait_for()

    assert Entry.objects.get(text__startswith="A transfer").state == "retired"
    source = FollowedSource.objects.get()
    assert (source.name, source.rules.get().audience.slug) == ("Help pages", "everyone")
