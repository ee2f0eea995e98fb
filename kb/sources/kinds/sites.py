"""Pages that a sitemap or a feed lists, on its own host."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePosixPath
from urllib.parse import urldefrag, urljoin, urlsplit

from lxml import etree

from .interface import Content, Listed, Place, SourceError, folders, suffix_of
from .web import allowed_url, child_text, fetch, local_name, parse_xml

_MAX_SITEMAPS = 100


def page(address: str, place: Place, known: Mapping[str, str]) -> Content | None:
    """Return a page, or None if its server or its bytes show that it is unchanged."""
    got = fetch(address, place, known=known)
    if got is None:
        return None
    digest = hashlib.sha256(got.content).hexdigest()
    if digest == known.get("sha256"):
        return None
    now = {
        "etag": got.headers.get("etag", ""),
        "modified": got.headers.get("last-modified", ""),
        "sha256": digest,
    }
    media_type = got.headers.get("content-type", "")
    content = _as_utf8(got.content, media_type)
    stem = PurePosixPath(urlsplit(address).path).stem or "page"
    return Content(content, f"{stem}{suffix_of(media_type)}", now)


def _as_utf8(content: bytes, media_type: str) -> bytes:
    """Return a text in UTF-8 if its server declares another encoding."""
    _, _, charset = media_type.lower().partition("charset=")
    charset = charset.partition(";")[0].strip(" \"'")
    if not charset or not media_type.lower().startswith("text/"):
        return content
    try:
        return content.decode(charset).encode()
    except (LookupError, ValueError):  # not a text encoding, or not this text's
        return content  # its own bytes are better evidence


def check_same_host(address: str, place: Place) -> None:
    """Raise for an address on another host than its list, which is not followed."""
    if urlsplit(address).netloc != urlsplit(place.address).netloc:
        raise SourceError("address", f"{address} is on another host than its list.")


class Sitemap:
    name = "sitemap"
    label = "the pages of a sitemap"
    address_help = "the sitemap's address, such as https://help.example.org/sitemap.xml"
    lists_all = True

    def check_address(self, address: str) -> None:
        allowed_url(address)

    @contextmanager
    def open(self, place: Place) -> Iterator[Iterator[Listed]]:
        yield self._pages(place)

    def _pages(self, place: Place) -> Iterator[Listed]:
        left, seen = [place.address], 0
        while left:
            seen += 1
            if seen > _MAX_SITEMAPS:
                raise SourceError(
                    "address", f"It has more than {_MAX_SITEMAPS} sitemaps."
                )
            root = _root(left.pop(0), place)
            kind = local_name(root)
            if kind not in ("urlset", "sitemapindex"):
                raise SourceError("address", f"It is not a sitemap but {kind!r}.")
            for each in root:
                address = urldefrag(child_text(each, "loc")).url
                if not address:
                    continue
                if kind == "sitemapindex":
                    check_same_host(address, place)
                    left.append(address)
                else:
                    yield _page(address, child_text(each, "lastmod"), place)


class Feed:
    name = "feed"
    label = "a feed (RSS or Atom)"
    address_help = "the feed's address, such as https://example.org/news.xml"
    lists_all = False  # only the latest

    def check_address(self, address: str) -> None:
        allowed_url(address)

    @contextmanager
    def open(self, place: Place) -> Iterator[Iterator[Listed]]:
        root = _root(place.address, place)
        if local_name(root) not in ("rss", "feed", "RDF"):
            raise SourceError("address", f"It is not a feed but {local_name(root)!r}.")
        items = (each for each in root.iter() if local_name(each) in ("item", "entry"))
        yield (listed for each in items if (listed := _item(each, place)))


def _root(address: str, place: Place) -> etree._Element:
    got = fetch(address, place)
    assert got is not None  # noqa: S101  # None only if something is `known`
    return parse_xml(got.content)


def _page(
    address: str,
    changed: str,
    place: Place,
    *,
    title: str = "",
    groups: tuple[str, ...] = (),
) -> Listed:
    def read(known: Mapping[str, str]) -> Content | None:
        check_same_host(address, place)
        return page(address, place, known)

    path = PurePosixPath(urlsplit(address).path or "/")
    return Listed(
        key=address,
        title=title,
        marker=_marker(changed),
        groups=(*folders(path), *groups),
        read=read,
    )


def _marker(changed: str) -> str:
    """Return when a page changed, if that has a time: a day may see a second edit.

    A date alone is often written as its midnight.
    """
    _, _, time = changed.partition("T")
    return changed if time and not time.startswith("00:00") else ""


def _item(item: etree._Element, place: Place) -> Listed | None:
    """Return a feed's item: its own content, or else the page that it links to."""
    link = child_text(item, "link") or next(
        (
            each.get("href", "")
            for each in item
            if local_name(each) == "link"
            and each.get("rel", "alternate") == "alternate"
        ),
        "",
    )
    address = urljoin(place.address, link)
    title = child_text(item, "title")
    groups = tuple(
        text
        for each in item
        if local_name(each) == "category"
        and (text := each.get("term") or "".join(each.itertext()).strip())
    )
    whole = _markup(item)
    if not whole:
        return (
            # The time of publication does not change with later edits.
            _page(
                address, child_text(item, "updated"), place, title=title, groups=groups
            )
            if link
            else None
        )
    key = child_text(item, "guid", "id") or (address if link else _own_key(item))
    content = f"<html><body>{whole}</body></html>".encode()
    return Listed(
        key=key,
        title=title,
        marker=hashlib.sha256(content).hexdigest(),
        groups=groups,
        read=lambda known: Content(content, "item.html"),
    )


def _own_key(item: etree._Element) -> str:
    """Return a key for an item without an id or a link."""
    published = child_text(item, "pubDate", "date", "published")
    said = f"{child_text(item, 'title')}\0{published}".strip("\0") or _markup(item)
    return hashlib.sha256(said.encode()).hexdigest()


def _markup(item: etree._Element) -> str:
    """Return the HTML that an item holds, as text or, in Atom, as elements."""
    for each in item:
        if local_name(each) in ("encoded", "content") and not _is_media(each):
            below = "".join(
                etree.tostring(part, encoding="unicode", method="html") for part in each
            )
            if whole := f"{each.text or ''}{below}".strip():
                return whole
    return ""


def _is_media(element: etree._Element) -> bool:
    """Return whether an element refers to an image or video (`media:content`)."""
    return str(etree.QName(element).namespace) == "http://search.yahoo.com/mrss/"
