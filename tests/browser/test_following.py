"""A curator follows each kind of source, with the keyboard alone."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.roles import Role
from kb.models import Entry, FollowedSource
from kb.sources.services import KIND
from tests.factories import make_audience
from tests.kb.sources.following import ABROAD, CARDS
from tests.kb.sources.test_exports import ABROAD as AWAY
from tests.kb.sources.test_exports import CARDS as CARD
from tests.kb.sources.test_exports import LOANS as LOAN
from tests.kb.sources.test_exports import answer, article, html_page
from tests.kb.sources.test_git import Repository
from workers import tasks

from .conftest import Desk, choose_by_typing, make_signed_up, violations, work

NEW_CARD = CARD.replace("12 euros", "15 euros")

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
    """A source of cards, transfers and loans; `change` changes the first, the next is gone."""

    kind: str
    address: str
    change: Callable[[], None]


@pytest.fixture
def export(root) -> Followed:
    def write(name: str, body: str) -> None:
        (root / name).write_text(html_page(name.partition("_")[0], body))

    write("index.html", "Available Pages")
    write("Cards_101.html", CARD)
    write("Abroad_102.html", AWAY)
    write("Loans_103.html", LOAN)

    def change() -> None:
        write("Cards_101.html", NEW_CARD)
        (root / "Abroad_102.html").unlink()

    return Followed("a Confl", str(root), change)


@pytest.fixture
def help_centre(root) -> Followed:
    loans = article(3, "Loans", LOAN)
    page = root / "page1.json"
    page.write_text(answer(article(1, "Cards", CARD), article(2, "Abroad", AWAY)))
    (root / "page2.json").write_text(answer(loans))

    def change() -> None:
        page.write_text(answer(article(1, "Cards", NEW_CARD)))

    return Followed("a Zendesk", str(root), change)


@pytest.fixture
def repository(root) -> Followed:
    """A bare repository that a colleague pushes to."""
    theirs, served = Repository(root / "work"), root / "team.git"
    theirs.write("cards.md", f"# Cards\n\n{CARD}\n")
    theirs.write("loans.md", f"# Loans\n\n{LOAN}\n")
    theirs.commit()
    theirs.git("clone", "--quiet", "--bare", ".", str(served))

    def change() -> None:
        theirs.write("cards.md", f"# Cards\n\n{NEW_CARD}\n")
        (theirs.folder / "help" / "abroad.md").unlink()
        theirs.commit()
        theirs.git("push", "--quiet", str(served), "main")

    return Followed("a Git", f"{served}#main", change)


@pytest.fixture
def served(settings, root) -> Iterator[str]:
    """The address of a server of what is in the folder."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=root))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.SOURCE_HOSTS, settings.SOURCE_ALLOW_PRIVATE = ["localhost"], True
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def sitemap(root, served) -> Followed:
    def write(cards: str, *names: str) -> None:
        (root / "cards.html").write_text(f"<h1>Cards</h1><p>{cards}</p>")
        rows = "".join(f"<url><loc>{served}/{name}.html</loc></url>" for name in names)
        (root / "sitemap.xml").write_text(
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'
        )

    (root / "abroad.html").write_text(f"<h1>Abroad</h1><p>{AWAY}</p>")
    (root / "loans.html").write_text(f"<h1>Loans</h1><p>{LOAN}</p>")
    write(CARD, "cards", "abroad", "loans")
    change = partial(write, NEW_CARD, "cards", "loans")
    return Followed("the pages", f"{served}/sitemap.xml", change)


def rss(items: Mapping[str, str], served: str) -> str:
    rows = "".join(
        f"<item><title>{name}</title><link>{served}/{name}</link>"
        f"<content:encoded>&lt;p&gt;{text}&lt;/p&gt;</content:encoded></item>"
        for name, text in items.items()
    )
    names = 'xmlns:content="http://purl.org/rss/1.0/modules/content/"'
    return f'<rss version="2.0" {names}><channel>{rows}</channel></rss>'


def atom(items: Mapping[str, str], served: str) -> str:
    rows = "".join(
        f'<entry><id>{name}</id><title>{name}</title><link href="{served}/{name}"/>'
        f'<content type="html">&lt;p&gt;{text}&lt;/p&gt;</content></entry>'
        for name, text in items.items()
    )
    return f'<feed xmlns="http://www.w3.org/2005/Atom">{rows}</feed>'


def feed(form: Callable[[Mapping[str, str], str], str], root, served) -> Followed:
    def write(**items: str) -> None:
        (root / "news.xml").write_text(form(items, served))

    write(Cards=CARD, Abroad=AWAY, Loans=LOAN)
    change = partial(write, Cards=NEW_CARD, Loans=LOAN)
    return Followed("a feed", f"{served}/news.xml", change)


@pytest.fixture
def rss_feed(root, served) -> Followed:
    return feed(rss, root, served)


@pytest.fixture
def atom_feed(root, served) -> Followed:
    return feed(atom, root, served)


def check(page) -> None:
    page.get_by_role("link", name="Check now").press("Enter")
    page.get_by_role("button", name="Confirm").press("Enter")
    page.get_by_text("The source is being read.").wait_for()
    page.wait_for_load_state()
    work(KIND)  # the page shows by itself what was found


def test_a_folder_is_followed_without_a_mouse(desk, folder):
    make_audience("staff", groups=["staff"])
    make_signed_up(Role.CURATOR, "carla")
    page = desk.log_in("carla", "/admin/kb/followedsource/")
    page.get_by_role("link", name="Follow a source").first.press("Enter")
    # Not before: the list has labels with "name" too, and would take the first letters.
    page.wait_for_url("**/add/")
    page.get_by_label("Name").focus()
    page.keyboard.type("Help pages")
    page.get_by_label("Address").focus()
    page.keyboard.type("/etc")
    page.keyboard.press("Enter")
    expect(page.get_by_text("is not below")).to_be_visible()
    page.get_by_label("Address").fill(str(folder))
    page.keyboard.press("Enter")
    page.get_by_text("The source is followed and is being read").wait_for()
    page.wait_for_load_state()
    work(KIND)
    # The page shows by itself what was found.
    page.get_by_text("2 documents imported").wait_for()
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


def test_the_address_is_explained_for_the_kind_that_is_chosen(desk):
    make_signed_up(Role.CURATOR, "carla")
    desk.log_in("carla")

    page = desk.open("/admin/kb/followedsource/add/")

    explained = page.locator("li[data-for]:visible")
    expect(explained).to_have_count(1)
    expect(explained).to_contain_text("A folder of files: the folder's path")
    page.get_by_label("Kind").select_option("feed")
    expect(explained).to_have_count(1)
    expect(explained).to_contain_text("the feed's address")


def follow(desk: Desk, kind: str, address: str) -> Page:
    """Fill the form in without a mouse, and wait for the source's page."""
    page = desk.open("/admin/kb/followedsource/")
    page.get_by_role("link", name="Follow a source").first.press("Enter")
    page.wait_for_url("**/add/")  # the list has labels with "name" too
    page.get_by_label("Name").focus()
    page.keyboard.type("Help")
    choose_by_typing(page.get_by_label("Kind"), kind)
    page.get_by_label("Address").focus()
    page.keyboard.insert_text(address)
    page.keyboard.press("Enter")
    page.get_by_text("The source is followed and is being read").wait_for()
    page.wait_for_load_state()
    return page


def read_on_schedule(page: Page) -> None:
    FollowedSource.objects.update(next_check_at=timezone.now())
    tasks.check_sources()
    work(KIND)
    page.reload()


def assert_counted(page: Page, **counts: int) -> None:
    for name, number in counts.items():
        row = f"{name.replace('_', ' ')} {number}"
        expect(page.get_by_role("row", name=row, exact=True)).to_be_visible()


def found(desk: Desk, word: str) -> dict[str, str]:
    """Return the entries with a word that a search finds, each with what it is."""
    rows = desk.open(f"/knowledge?q={word}").locator("#found li").filter(has_text=word)
    lines = [row.locator("a > span").all_inner_texts() for row in rows.all()]
    return {said.strip(): state.strip() for said, state, *_ in lines}


def follow_through_a_change(curator: Desk, followed: Followed, *gone: str) -> Page:
    """Follow a source, change it, and return its page: only what changed was touched."""
    page = follow(curator, followed.kind, followed.address)
    work(KIND)
    # The page loads itself again until it shows what was found: to load it here as well
    # would break off the one or the other.
    page.get_by_text("3 documents imported").wait_for()
    page.wait_for_load_state()
    assert_counted(page, new_documents=3)
    before = dict(Entry.objects.values_list("text", "updated_at"))

    followed.change()
    read_on_schedule(page)

    assert_counted(page, changed_documents=1, unchanged_documents=1, entries_changed=1)
    after = dict(Entry.objects.values_list("text", "updated_at"))
    assert dict(after.items() - before.items()).keys() - {*gone} == {NEW_CARD}
    return page


@pytest.mark.parametrize("name", ["repository", "sitemap", "help_centre", "export"])
def test_what_changes_elsewhere_is_changed_and_what_is_gone_is_retired_on_the_page(
    curator: Desk, name, request
):
    page = follow_through_a_change(curator, request.getfixturevalue(name), AWAY)
    here = page.url

    proposed = page.get_by_role("link", name="1 entry proposed for retirement")
    proposed.press("Enter")
    expect(page.get_by_text("It is no longer in the followed source")).to_be_visible()
    expect(page.get_by_role("heading", name=AWAY)).to_be_visible()
    page.get_by_role("button", name="Retire").press("Enter")
    expect(page.get_by_text(f"Retired: {AWAY}")).to_be_visible()

    page.goto(here)
    expect(page.get_by_text("2 documents imported")).to_be_visible()
    expect(proposed).to_have_count(0)
    assert found(curator, "replacement") == {NEW_CARD: "Not verified"}
    assert found(curator, "transfer") == {AWAY: "Retired"}


@pytest.mark.parametrize("name", ["rss_feed", "atom_feed"])
def test_what_a_feed_no_longer_lists_is_not_gone(curator: Desk, name, request):
    page = follow_through_a_change(curator, request.getfixturevalue(name))

    expect(page.get_by_text("3 documents imported")).to_be_visible()
    expect(page.get_by_text("proposed for retirement")).to_have_count(0)
    assert found(curator, "replacement") == {NEW_CARD: "Not verified"}
    assert found(curator, "transfer") == {AWAY: "Not verified"}
