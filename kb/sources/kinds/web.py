"""Requests to hosts that the operator allows, and parsing of XML responses."""

import base64
import http.client
import io
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urldefrag, urljoin, urlsplit

from django.conf import settings
from lxml import etree

from accounts.outbound import (
    PrivateAddressError,
    check_without_lookup,
    checked_address,
    connect,
    target,
)

from .interface import Place, SourceError

_SETTING = "NESCIO_SOURCE_ALLOW_PRIVATE"
_TIMEOUT_SECONDS = 60.0
_MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)


def allowed_url(address: str) -> SplitResult:
    """Return the parts of an address, whose host must be in `NESCIO_SOURCE_HOSTS`."""
    schemes = ("https", "http") if settings.SOURCE_ALLOW_PRIVATE else ("https",)
    try:
        url = urlsplit(address)
        host, _port = url.hostname, url.port
    except ValueError as error:
        raise SourceError(
            "address", f"{address!r} is not a valid address: {error}."
        ) from error
    if url.scheme not in schemes or not host:
        raise SourceError(
            "address",
            f"{address!r} begins with {url.scheme or 'nothing'!r}; it must begin with "
            f"{' or '.join(f'{each}://' for each in schemes)} and name a host.",
        )
    if url.username or url.password:
        raise SourceError(
            "address",
            "The address contains a name or a password; remove it, and name the "
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
            "address",
            f"{address!r} contains characters that are not allowed; encode them.",
        )
    if not settings.SOURCE_ALLOW_PRIVATE:
        try:
            check_without_lookup(url, setting=_SETTING)
        except PrivateAddressError as error:
            raise SourceError("address", str(error)) from error
    return url


def checked_host(url: SplitResult) -> str:
    """Return an IP address of an allowed host; private only if that is allowed."""
    try:
        return checked_address(
            url, allow_private=settings.SOURCE_ALLOW_PRIVATE, setting=_SETTING
        )
    except (OSError, PrivateAddressError) as error:
        raise SourceError("address", str(error)) from error


def basic(credential: str) -> str:
    """Return the Authorization header for `user:password` or a token."""
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
    """Get an address, or None if it is as it was `known`; never leaves its host.

    Raises:
        SourceError: It may not be read, is too large, or does not answer with 200.
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
    if secret := place.credential:
        headers["Authorization"] = (
            basic(secret) if ":" in secret else f"Bearer {secret}"
        )
    if known.get("etag"):
        headers["If-None-Match"] = known["etag"]
    if known.get("modified"):
        headers["If-Modified-Since"] = known["modified"]
    try:
        with connection.in_time():
            connection.request("GET", target(url), headers=headers)
            response = connection.getresponse()
            content = response.read(bounds.document_bytes + 1)
    except (OSError, http.client.HTTPException) as error:
        said = str(error) or type(error).__name__
        raise SourceError("address", f"{url.geturl()}: {said}") from error
    if connection.was_cut:  # the part received may look complete
        raise SourceError(
            "address", f"{url.geturl()} took longer than {seconds:.0f} s."
        )
    if len(content) > bounds.document_bytes:
        raise SourceError(
            "address",
            f"{url.geturl()} has more than {settings.IMPORT_MAX_MIB} MiB; raise "
            "NESCIO_IMPORT_MAX_MIB.",
        )
    if response.length:  # bytes are missing, which a limited read does not report
        raise SourceError("address", f"{url.geturl()} ended early.")
    bounds.take(len(content))
    named = {name.lower(): value for name, value in response.getheaders()}
    return _Response(response.status, named, content)


def parse_xml(content: bytes) -> etree._Element:
    """Return the root of an XML document; refuses entities and fetches nothing."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    try:
        root = etree.parse(io.BytesIO(content), parser).getroot()
    except etree.LxmlError as error:
        raise SourceError("address", f"It is not valid XML: {error}.") from error
    if root.getroottree().docinfo.doctype:
        raise SourceError("address", "It declares a document type, which is not read.")
    return root


def local_name(element: etree._Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def child_text(element: etree._Element, *names: str) -> str:
    """Return the text of the first filled child with one of these names, or ""."""
    for name in names:
        for each in element:
            if local_name(each) == name and (text := "".join(each.itertext()).strip()):
                return text
    return ""
