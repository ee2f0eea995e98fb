"""Pages of the web: what a sitemap or a feed names, on hosts that the operator allows."""

import base64
import hashlib
import http.client
import io
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import SplitResult, urldefrag, urljoin, urlsplit

from django.conf import settings
from lxml import etree

from accounts.outbound import PrivateAddressError, checked_address, connect

from .interface import (
    Content,
    Listed,
    Place,
    SourceError,
    folders,
    suffix_of,
)

PORTS = {"https": 443, "http": 80}
_SETTING = "NESCIO_SOURCE_ALLOW_PRIVATE"
_TIMEOUT_SECONDS = 60.0
_MAX_REDIRECTS = 5
_MAX_SITEMAPS = 100
_REDIRECTS = (301, 302, 303, 307, 308)


def allowed_url(address: str) -> SplitResult:
    """Return the parts of an address on a host of `NESCIO_SOURCE_HOSTS`."""
    schemes = ("https", "http") if settings.SOURCE_ALLOW_PRIVATE else ("https",)
    try:
        url = urlsplit(address)
        host, _port = url.hostname, url.port
    except ValueError as error:
        raise SourceError("address", f"{address!r} is no address: {error}.") from error
    if url.scheme not in schemes or not host:
        raise SourceError(
            "address",
            f"{address!r} begins with {url.scheme or 'nothing'!r}; it must begin with "
            f"{' or '.join(f'{each}://' for each in schemes)} and name a host.",
        )
    if url.username or url.password:
        raise SourceError(
            "address",
            "The address holds a name or a password; take it out, and name the "
            "environment variable that holds it as the credential.",
        )
    if host not in settings.SOURCE_HOSTS:
        raise SourceError(
            "address",
            f"The host {host!r} may not be read; those that may are in "
            f"NESCIO_SOURCE_HOSTS: {', '.join(settings.SOURCE_HOSTS) or 'none'}.",
        )
    if not address.isascii() or any(each.isspace() for each in address):
        raise SourceError(
            "address", f"{address!r} holds characters that no address may; encode them."
        )
    return url


def checked_host(url: SplitResult) -> str:
    """Return an IP address of an allowed host, which is public unless others may be."""
    try:
        return checked_address(
            url, allow_private=settings.SOURCE_ALLOW_PRIVATE, setting=_SETTING
        )
    except (OSError, PrivateAddressError) as error:
        raise SourceError("address", str(error)) from error


def basic(credential: str) -> str:
    """Return what authorizes a request by `user:password` or a token."""
    pair = credential if ":" in credential else f"git:{credential}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


@dataclass(frozen=True, slots=True)
class _Response:
    status: int
    headers: Mapping[str, str]  # by their names in lower case
    content: bytes


def fetch(
    address: str, place: Place, *, known: Mapping[str, str] | None = None
) -> _Response | None:
    """Get an address, and None where it is as it was `known`; stays on its host.

    Raises:
        SourceError: It may not be read, is too large, or answers otherwise than 200.
    """
    asked = address
    for _ in range(_MAX_REDIRECTS + 1):
        url = allowed_url(address)
        if url.netloc != urlsplit(asked).netloc:
            raise SourceError(
                "address",
                f"{asked} leads to another host, {url.hostname}; name the last address.",
            )
        got = _get(url, place, known or {})
        if got.status == http.client.NOT_MODIFIED:
            return None
        if got.status == http.client.OK:
            return got
        if got.status not in _REDIRECTS or not got.headers.get("location"):
            raise SourceError("address", f"{address} answered {got.status}.")
        address = urldefrag(urljoin(address, got.headers["location"])).url
    raise SourceError("address", f"{asked} leads on more than {_MAX_REDIRECTS} times.")


def _get(url: SplitResult, place: Place, known: Mapping[str, str]) -> _Response:
    bounds = place.bounds
    seconds = min(_TIMEOUT_SECONDS, bounds.seconds_left())
    try:
        connection = connect(
            url,
            allow_private=settings.SOURCE_ALLOW_PRIVATE,
            setting=_SETTING,
            timeout=seconds,
        )
    except (OSError, PrivateAddressError) as error:
        raise SourceError("address", str(error)) from error
    headers = {"User-Agent": "nescio", "Accept-Encoding": "identity"}
    if place.credential:
        headers["Authorization"] = _authorization(place.credential)
    if known.get("etag"):
        headers["If-None-Match"] = known["etag"]
    if known.get("modified"):
        headers["If-Modified-Since"] = known["modified"]
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    # Each read has a time limit of its own; one that sends a byte now and then has none.
    stop = threading.Timer(seconds, connection.cut)
    stop.daemon = True
    stop.start()
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        content = response.read(bounds.document_bytes + 1)
    except (OSError, http.client.HTTPException) as error:
        said = str(error) or type(error).__name__
        raise SourceError("address", f"{url.geturl()}: {said}") from error
    finally:
        stop.cancel()
        connection.close()
    if connection.was_cut:  # what came until then may look complete
        raise SourceError(
            "address", f"{url.geturl()} took longer than {seconds:.0f} s."
        )
    if len(content) > bounds.document_bytes:
        raise SourceError(
            "address",
            f"{url.geturl()} has more than {settings.IMPORT_MAX_MIB} MiB; raise "
            "NESCIO_IMPORT_MAX_MIB.",
        )
    bounds.take(len(content))
    named = {name.lower(): value for name, value in response.getheaders()}
    return _Response(response.status, named, content)


def _authorization(credential: str) -> str:
    return basic(credential) if ":" in credential else f"Bearer {credential}"


def parse_xml(content: bytes) -> etree._Element:
    """Return the root of an XML document that declares no entities and fetches nothing."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    try:
        root = etree.parse(io.BytesIO(content), parser).getroot()
    except etree.LxmlError as error:
        raise SourceError("address", f"It is no XML: {error}.") from error
    if root.getroottree().docinfo.doctype:
        raise SourceError("address", "It declares a document type, which is not read.")
    return root


def local_name(element: etree._Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def child_text(element: etree._Element, *names: str) -> str:
    """Return the text of the first child by one of these names; empty without it."""
    for name in names:
        for each in element:
            if local_name(each) == name and (text := "".join(each.itertext()).strip()):
                return text
    return ""


def page(address: str, place: Place, known: Mapping[str, str]) -> Content | None:
    """Return a page unless its server or its bytes say that it is as it was."""
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
    """Return a text in UTF-8 where its server says that it is in something else."""
    _, _, charset = media_type.lower().partition("charset=")
    charset = charset.partition(";")[0].strip(" \"'")
    if not charset or not media_type.lower().startswith("text/"):
        return content
    try:
        return content.decode(charset).encode()
    except (LookupError, UnicodeDecodeError):
        return content  # its bytes say more than its server does


def check_same_host(address: str, place: Place) -> None:
    """Refuse what a list names on another host: that one was not to be followed."""
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
                raise SourceError("address", f"It is no sitemap, but {kind!r}.")
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
            raise SourceError("address", f"It is no feed, but {local_name(root)!r}.")
        items = (each for each in root.iter() if local_name(each) in ("item", "entry"))
        yield (listed for each in items if (listed := _item(each, place)))


def _root(address: str, place: Place) -> etree._Element:
    got = fetch(address, place)
    assert got is not None  # noqa: S101  # nothing was known of it
    return parse_xml(got.content)


def _page(
    address: str,
    marker: str,
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
        marker=marker,
        groups=(*folders(path), *groups),
        read=read,
    )


def _item(item: etree._Element, place: Place) -> Listed | None:
    """Return a feed's item: what it says itself, else the page that it names."""
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
    marker = child_text(item, "updated", "pubDate", "date", "published")
    groups = tuple(
        text
        for each in item
        if local_name(each) == "category"
        and (text := each.get("term") or "".join(each.itertext()).strip())
    )
    whole = _markup(item)
    if not whole:
        return (
            _page(address, marker, place, title=title, groups=groups) if link else None
        )
    key = child_text(item, "guid", "id") or address
    content = f"<html><body>{whole}</body></html>".encode()
    return Listed(
        key=key,
        title=title,
        marker=hashlib.sha256(content).hexdigest(),
        groups=groups,
        read=lambda known: Content(content, "item.html"),
    )


def _markup(item: etree._Element) -> str:
    """Return the HTML that an item holds, as text or, in Atom, as elements."""
    for each in item:
        if local_name(each) in ("encoded", "content"):
            below = "".join(
                etree.tostring(part, encoding="unicode", method="html") for part in each
            )
            return f"{each.text or ''}{below}".strip()
    return ""
