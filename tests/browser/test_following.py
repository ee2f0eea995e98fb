"""A curator follows folders, sites and exports, with the keyboard alone."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.roles import Role
from kb.models import Entry, FollowedSource
from kb.sources.services import KIND
from tests.factories import make_audience
from tests.kb.sources.following import ABROAD, CARDS
from tests.kb.sources.test_exports import ABROAD as AWAY
from tests.kb.sources.test_exports import CARDS as CARD
from tests.kb.sources.test_exports import html_page
from workers import tasks

from .conftest import Desk, make_signed_up, violations, work

pytestmark = pytest.mark.usefixtures("knowledge", "import_directory")


@pytest.fixture
def root(settings, tmp_path):
    root = tmp_path / "sources"
    root.mkdir()
    settings.SOURCE_DIRECTORIES = [str(root)]
    return root


@pytest.fixture
def folder(root):
    (root / "help").mkdir()
    (root / "cards.md").write_text(CARDS)
    (root / "help" / "abroad.md").write_text(ABROAD)
    return root


@dataclass(frozen=True)
class Followed:
    """A source of two documents; `change` changes one of them and takes the other away."""

    kind: str
    address: str
    change: Callable[[], None]


@pytest.fixture
def export(root) -> Followed:
    def write(body: str) -> None:
        (root / "Cards_101.html").write_text(html_page("Cards", body))

    (root / "index.html").write_text(html_page("Space Details", "Available Pages"))
    write(CARD)
    abroad = root / "Abroad_102.html"
    abroad.write_text(html_page("Abroad", AWAY))

    def change() -> None:
        write(CARD.replace("12 euros", "15 euros"))
        abroad.unlink()

    return Followed("a Confl", str(root), change)


@pytest.fixture
def sitemap(settings, root) -> Iterator[Followed]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=root))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.SOURCE_HOSTS, settings.SOURCE_ALLOW_PRIVATE = ["localhost"], True
    address = f"http://localhost:{server.server_port}"

    def write(cards: str, *names: str) -> None:
        (root / "cards.html").write_text(f"<h1>Cards</h1><p>{cards}</p>")
        rows = "".join(f"<url><loc>{address}/{name}.html</loc></url>" for name in names)
        (root / "sitemap.xml").write_text(
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'
        )

    (root / "abroad.html").write_text(f"<h1>Abroad</h1><p>{AWAY}</p>")
    write(CARD, "cards", "abroad")
    change = partial(write, CARD.replace("12 euros", "15 euros"), "cards")
    yield Followed("the pages", f"{address}/sitemap.xml", change)
    server.shutdown()
    server.server_close()


def check(page) -> None:
    page.get_by_role("link", name="Check now").press("Enter")
    page.get_by_role("button", name="Confirm").press("Enter")
    page.get_by_text("The source is being read.").wait_for()
    page.wait_for_load_state()
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


@pytest.mark.parametrize("name", ["sitemap", "export"])
def test_a_source_is_read_again_on_schedule_for_what_changed_and_what_is_gone(
    curator: Desk, name, request
):
    followed: Followed = request.getfixturevalue(name)
    page = curator.open("/admin/kb/followedsource/add/")
    page.get_by_label("Name").fill("Help")
    page.get_by_label("Kind").focus()
    page.keyboard.type(followed.kind)
    page.get_by_label("Address").fill(followed.address)
    page.keyboard.press("Enter")
    page.get_by_text("It is followed.").wait_for()
    page.wait_for_load_state()

    def read_on_schedule() -> None:
        FollowedSource.objects.update(next_check_at=timezone.now())
        tasks.check_sources()
        work(KIND)
        page.reload()

    read_on_schedule()
    expect(page.get_by_text("2 documents imported")).to_be_visible()

    followed.change()
    read_on_schedule()
    expect(page.get_by_role("row", name="1 changed documents")).to_be_visible()
    page.get_by_role("link", name="1 entry proposed for retirement").press("Enter")
    expect(page.get_by_text(AWAY)).to_be_visible()
    page = curator.open("/knowledge?q=replacement")
    found = page.locator("#found").get_by_role("link")
    expect(found.first).to_contain_text(CARD.replace("12", "15"))
    expect(found.filter(has_text="12 euros")).to_have_count(0)
