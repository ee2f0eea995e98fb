"""Followed sitemaps and feeds, of a real server that changes and misbehaves."""

import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kb.exceptions import InvalidKnowledgeError
from kb.models import Document, FollowedDocument
from tests.kb.sources.following import check, failed, follow, proposed, texts

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

ENTITIES = """<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
]><urlset><url><loc>&c;</loc></url></urlset>"""


@dataclass
class Site:
    """What a server answers by path, and what it was asked."""

    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)  # end after half of their bytes
    asked: list[tuple[str, int]] = field(default_factory=list)
    address: str = ""

    def put(self, path: str, body: str) -> None:
        page = f"<html><head><title>{path}</title></head><body><h1>Help</h1><p>{body}</p></body></html>"
        self.pages[path] = ("text/html; charset=utf-8", page.encode())

    def sitemap(self, *paths: str, lastmod: str = "") -> None:
        said = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
        rows = "".join(f"<url><loc>{self.at(path)}</loc>{said}</url>" for path in paths)
        self.xml(
            "/sitemap.xml",
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>',
        )

    def xml(self, path: str, body: str) -> None:
        self.pages[path] = ("application/xml", body.encode())

    def at(self, path: str) -> str:
        return path if "://" in path else self.address + path


@pytest.fixture
def site(settings, import_directory):
    found = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content, kind = 404, b"", "text/html"
            etag = ""
            if self.path in found.moved:
                self.send_response(302)
                self.send_header("Location", found.moved[self.path])
                self.end_headers()
                return
            if self.path in found.pages:
                kind, content = found.pages[self.path]
                etag, status = f'"{hash(content)}"', 200
                if self.headers.get("If-None-Match") == etag:
                    status, content = 304, b""
            found.asked.append((self.path, status))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            if etag:
                self.send_header("ETag", etag)
            self.end_headers()
            half = len(content) // 2 if self.path in found.cut else None
            self.wfile.write(content[:half])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found.address = f"http://localhost:{server.server_port}"
    settings.SOURCE_HOSTS, settings.SOURCE_ALLOW_PRIVATE = ["localhost"], True
    yield found
    server.shutdown()
    server.server_close()


def start(site: Site):
    site.put("/help/cards", "A replacement card costs 12 euros.")
    site.put("/help/abroad", "A transfer abroad costs 3 euros.")
    site.put("/news/loans", "A loan is paid back within 60 months.")
    site.sitemap("/help/cards", "/help/abroad")
    return follow("sitemap", site.at("/sitemap.xml"))


def test_a_sitemap_is_followed_and_asks_only_for_what_changed(site):
    source = start(site)

    assert check(source) == {"listed": 2, "new": 2, "entries_created": 2}
    assert set(Document.objects.values_list("source", flat=True)) == {
        site.at("/help/cards"),
        site.at("/help/abroad"),
    }
    site.asked.clear()
    assert check(source) == {"listed": 2, "unchanged": 2}
    assert sorted(status for _, status in site.asked) == [200, 304, 304]

    site.put("/help/cards", "A replacement card costs 15 euros.")
    site.sitemap("/help/cards", "/news/loans")
    assert check(source) == {
        "listed": 2, "new": 1, "changed": 1, "gone": 1,
        "entries_created": 1, "entries_changed": 1, "proposed": 1,
    }  # fmt: skip
    assert proposed() == {"A transfer abroad costs 3 euros."}


def test_a_page_whose_time_of_change_is_the_same_is_not_asked_for(site):
    source = start(site)
    site.sitemap("/help/cards", "/help/abroad", lastmod="2026-01-01T09:30:00Z")
    check(source)
    site.asked.clear()

    check(source)

    assert site.asked == [("/sitemap.xml", 200)]


@pytest.mark.parametrize("day", ["2026-01-01", "2026-01-01T00:00:00+01:00"])
def test_a_second_change_on_one_day_is_seen(site, day):
    source = start(site)
    site.sitemap("/help/cards", "/help/abroad", lastmod=day)
    check(source)
    site.put("/help/cards", "A replacement card costs 15 euros.")

    assert check(source) == {
        "listed": 2, "changed": 1, "unchanged": 1, "entries_changed": 1,
    }  # fmt: skip


def test_a_page_whose_connection_breaks_is_not_imported_as_if_whole(site):
    source = start(site)
    check(source)
    site.put("/help/cards", "A replacement card costs 15 euros. " + "It is red. " * 50)
    site.cut.add("/help/cards")

    assert check(source) == {"listed": 2, "failed": 1, "unchanged": 1}
    assert "ended early" in source.documents.get(key__endswith="cards").error
    assert proposed() == set()

    site.cut.clear()
    assert check(source)["changed"] == 1


@pytest.mark.parametrize("charset", ["undefined", "idna", "none", "ascii"])
def test_an_encoding_that_a_server_names_wrongly_is_passed_over(site, charset):
    source = start(site)
    site.put("/help/cards", "A replacement card costs 12 euros in Zürich.")
    _, content = site.pages["/help/cards"]
    site.pages["/help/cards"] = (f"text/html; charset={charset}", content)

    assert check(source)["new"] == 2
    assert "A replacement card costs 12 euros in Zürich." in texts()


def test_an_index_of_sitemaps_is_followed(site):
    source = start(site)
    site.xml("/more.xml", site.pages["/sitemap.xml"][1].decode())
    site.xml(
        "/sitemap.xml",
        f"<sitemapindex><sitemap><loc>{site.at('/more.xml')}</loc></sitemap></sitemapindex>",
    )

    assert check(source)["new"] == 2


def test_parts_of_a_site_are_named_by_their_path(site):
    start(site)
    site.sitemap("/help/cards", "/news/loans")
    source = follow(
        "sitemap", site.at("/sitemap.xml"), name="News", rules={"/news": "everyone"}
    )

    assert check(source) == {"listed": 2, "new": 1, "unnamed": 1, "entries_created": 1}


def test_a_page_that_is_missing_moved_or_no_text_is_named_and_the_rest_goes_on(site):
    source = start(site)
    site.pages["/help/picture"] = ("image/png", b"\x89PNG")
    site.put("/help/new", "A blue card costs 1 euro.")
    site.moved["/help/old"] = "/help/new"
    site.moved["/help/out"] = "http://127.0.0.1:1/"
    site.moved["/help/loop"] = "/help/loop"
    site.sitemap(
        "/help/cards", "/help/missing", "/help/picture", "/help/old", "/help/out",
        "/help/loop", "http://elsewhere.example/page",
    )  # fmt: skip

    assert check(source)["failed"] == 5
    said = dict(source.documents.exclude(error="").values_list("key", "error"))
    assert "answered 404" in said[site.at("/help/missing")]
    assert "image/png, which is not read" in said[site.at("/help/picture")]
    assert "127.0.0.1' may not be read" in said[site.at("/help/out")]
    assert "more than 5 times" in said[site.at("/help/loop")]
    assert "on another host" in said["http://elsewhere.example/page"]
    assert "A blue card costs 1 euro." in texts()


def test_a_redirect_to_another_allowed_host_is_refused(site, settings):
    settings.SOURCE_HOSTS = ["localhost", "127.0.0.1"]
    source = start(site)
    other = site.address.replace("localhost", "127.0.0.1")
    site.moved["/sitemap.xml"] = f"{other}/sitemap2.xml"

    assert "leads to another host" in failed(source, InvalidKnowledgeError)


def test_a_source_that_answers_no_more_fails_and_leaves_what_there_is(site):
    source = start(site)
    check(source)
    del site.pages["/sitemap.xml"]

    assert "answered 404" in failed(source, InvalidKnowledgeError)
    assert (len(texts()), proposed()) == (2, set())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (ENTITIES, "document type"),
        ("<html></html>", "not a sitemap but 'html'"),
        ("no xml", "not valid XML"),
        ("<a>" * 100_000, "not valid XML"),
    ],
)
def test_a_hostile_sitemap_is_refused(site, body, said):
    source = start(site)
    site.xml("/sitemap.xml", body)

    assert said in failed(source, InvalidKnowledgeError)


def test_a_page_that_is_too_large_is_left_out(site, settings):
    settings.IMPORT_MAX_MIB = 1
    source = start(site)
    site.put("/help/cards", "word " * 300_000)

    assert check(source)["failed"] == 1
    assert "more than 1 MiB" in source.documents.get(key__endswith="cards").error


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://localhost/sitemap.xml", "must begin with https"),
        ("https://example.org/sitemap.xml", "may not be read"),
        ("https://user:secret@localhost/", "name or a password"),
        ("ftp://localhost/", "must begin with"),
        ("https://localhost/a b", "encode them"),
        ("https://[::1/", "not a valid address"),
    ],
)
def test_an_address_that_may_not_be_read_is_refused(site, settings, address, said):
    settings.SOURCE_ALLOW_PRIVATE = False

    with pytest.raises(InvalidKnowledgeError, match=said):
        follow("sitemap", address)


def test_a_private_address_is_refused_unless_a_setting_allows_it(site, settings):
    source = follow("sitemap", "https://localhost/sitemap.xml")
    settings.SOURCE_ALLOW_PRIVATE = False

    assert "not a public address" in failed(source, InvalidKnowledgeError)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[fd00::1]", "2130706433"])
@pytest.mark.parametrize("kind", ["sitemap", "git"])
def test_what_is_private_by_its_text_is_not_followed(site, settings, kind, host):
    settings.SOURCE_HOSTS = [host.strip("[]"), "nowhere.invalid", "93.184.216.34"]
    settings.SOURCE_ALLOW_PRIVATE = False

    with pytest.raises(InvalidKnowledgeError, match="NESCIO_SOURCE_ALLOW_PRIVATE"):
        follow(kind, f"https://{host}/a")

    follow(kind, "https://nowhere.invalid/a", name="A name")  # is left to the check
    follow(kind, "https://93.184.216.34/a", name="Public")
    settings.SOURCE_ALLOW_PRIVATE = True
    follow(kind, f"https://{host}/a", name="Inside")


FEED = """<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/">
<channel><title>News</title>{}</channel></rss>"""
ITEM = """<item><title>{0}</title><guid>{0}</guid><category>{2}</category>
<content:encoded><![CDATA[<p>{1}</p>]]></content:encoded></item>"""


def test_a_feed_brings_the_latest_and_proposes_nothing(site):
    first = ITEM.format("Cards", "A replacement card costs 12 euros.", "Prices")
    site.xml("/feed.xml", FEED.format(first))
    source = follow("feed", site.at("/feed.xml"))

    assert check(source) == {"listed": 1, "new": 1, "entries_created": 1}

    site.put("/news/loans", "A loan is paid back within 60 months.")
    linked = f"<item><title>Loans</title><link>{site.at('/news/loans')}</link></item>"
    site.xml("/feed.xml", FEED.format(linked))

    assert check(source) == {"listed": 1, "new": 1, "entries_created": 1}
    assert (len(texts()), proposed()) == (2, set())
    assert set(Document.objects.values_list("title", flat=True)) == {"Cards", "Loans"}


def test_items_without_an_id_or_a_link_are_told_apart(site):
    named = "".join(
        ITEM.format(f"News {number}", f"Fee {number} is {number} euros.", "Prices")
        for number in range(3)
    )
    site.xml("/feed.xml", FEED.format(re.sub("<guid>.*?</guid>", "", named)))
    source = follow("feed", site.at("/feed.xml"))

    assert check(source) == {"listed": 3, "new": 3, "entries_created": 3}
    assert check(source) == {"listed": 3, "unchanged": 3}


def test_items_of_one_id_are_counted(site):
    items = "".join(
        ITEM.format("News", f"Fee {number} is {number} euros.", "Prices")
        for number in (1, 2, 2)
    )
    site.xml("/feed.xml", FEED.format(items))
    source = follow("feed", site.at("/feed.xml"))

    assert check(source)["listed"] == 1
    assert source.note.startswith("2 documents were left out: another one has the same")


def test_a_page_that_a_feed_names_is_read_again_after_an_edit(site):
    start(site)
    item = (
        f"<item><title>Cards</title><link>{site.at('/help/cards')}</link>"
        "<pubDate>Thu, 01 Jan 2026 09:30:00 GMT</pubDate></item>"
    )
    site.xml("/feed.xml", FEED.format(item))
    source = follow("feed", site.at("/feed.xml"), name="News")
    check(source)
    site.put("/help/cards", "A replacement card costs 15 euros.")

    assert check(source)["changed"] == 1


def test_two_sources_that_list_one_page_have_a_document_each(site):
    first = start(site)
    check(first)
    linked = f"<item><title>C</title><link>{site.at('/help/cards')}</link></item>"
    site.xml("/feed.xml", FEED.format(linked))
    second = follow("feed", site.at("/feed.xml"), name="News")

    assert check(second)["new"] == 1
    address = site.at("/help/cards")
    called = FollowedDocument.objects.filter(key=address).values_list(
        "source", "document__source"
    )
    assert set(called) == {(first.pk, address), (second.pk, f"{address}#{second.pk}")}
    assert check(second) == {"listed": 1, "unchanged": 1}


def test_a_picture_of_an_item_is_not_its_text(site):
    picture = (
        '<item><media:content xmlns:media="http://search.yahoo.com/mrss/" url="a.png"/>'
    )
    item = ITEM.format("Cards", "A replacement card costs 12 euros.", "Prices")
    site.xml("/feed.xml", FEED.format(item.replace("<item>", picture)))

    assert check(follow("feed", site.at("/feed.xml")))["entries_created"] == 1


def test_an_atom_feed_is_read_by_its_categories(site):
    site.xml(
        "/atom.xml",
        """<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title>
        <entry><id>urn:1</id><title>Cards</title><updated>2026-01-01T00:00:00Z</updated>
        <category term="prices"/><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">
        <p>A replacement card costs 12 euros.</p></div></content></entry>
        <entry><id>urn:2</id><title>Staff</title><content>For staff alone.</content></entry>
        </feed>""",
    )
    source = follow("feed", site.at("/atom.xml"), rules={"prices": "everyone"})

    assert check(source) == {"listed": 2, "new": 1, "unnamed": 1, "entries_created": 1}
    assert texts() == {"A replacement card costs 12 euros."}
