"""Posting JSON to the configured webhook: signed, and to public addresses only.

The host is looked up once, every address that it has is checked, and the connection goes
to the very address that was checked, so that no second look-up can lead inside (DNS
rebinding). Redirects are not followed and proxies not used.
"""

import hashlib
import hmac
import http.client
import ipaddress
import json
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from jobs.exceptions import RetryableJobError
from qa.exceptions import WebhookRefusedError

TIMEOUT_SECONDS: Final = 10.0
_LATER = frozenset({408, 425, 429})
_PORTS = {"https": 443, "http": 80}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return what `X-Nescio-Signature` holds: HMAC-SHA256 of "timestamp.body", in hex."""
    signed = timestamp.encode() + b"." + body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def post_signed(payload: Mapping[str, object], *, delivery: str) -> int:
    """Post `payload` to the configured address and return the status, 200 to 299.

    Args:
        delivery: By which the receiver knows what came twice.

    Raises:
        WebhookRefusedError: The address is not allowed, or it refused for good.
        RetryableJobError: It could not be reached, or was not ready.
    """
    url = _checked_url(settings.WEBHOOK_URL)
    body = json.dumps(payload, ensure_ascii=False).encode()
    timestamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "nescio",
        "X-Nescio-Delivery": delivery,
        "X-Nescio-Timestamp": timestamp,
        "X-Nescio-Signature": signature(settings.WEBHOOK_SECRET, timestamp, body),
    }
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    connection = _connection(url)
    try:
        connection.request("POST", path, body, headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise RetryableJobError(
            f"{_name(url)} could not be reached: {error}"
        ) from error
    finally:
        connection.close()
    if status in _LATER or status >= 500:
        raise RetryableJobError(f"{_name(url)} answered {status}; it is tried again.")
    if not 200 <= status < 300:
        raise WebhookRefusedError(
            f"{_name(url)} answered {status}; mend NESCIO_WEBHOOK_URL or the receiver, "
            "then start the job again."
        )
    return status


def is_public(address: str) -> bool:
    """Tell whether an IP address is one of the internet, whatever form it hides in."""
    found: _Address = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        found = _inner(found)
    return found.is_global and not found.is_multicast


def _inner(address: ipaddress.IPv6Address) -> _Address:
    """Return the IPv4 address that an IPv6 address stands for, or itself."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.teredo is not None:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour or address


def _checked_url(text: str) -> SplitResult:
    url = urlsplit(text)
    schemes = ("https", "http") if settings.WEBHOOK_ALLOW_PRIVATE else ("https",)
    if url.scheme not in schemes or not url.hostname:
        raise WebhookRefusedError(
            f"NESCIO_WEBHOOK_URL begins with {url.scheme or 'nothing'!r}; it must be an "
            f"address of the kind {' or '.join(schemes)}."
        )
    if url.username or url.password:
        raise WebhookRefusedError(
            "NESCIO_WEBHOOK_URL holds a name or a password; take it out, the posts are "
            "signed."
        )
    return url


def _connection(url: SplitResult) -> http.client.HTTPConnection:
    """Return a connection that will go to an address which was checked.

    Raises:
        WebhookRefusedError: The host has an address that is not public.
        RetryableJobError: The host could not be looked up.
    """
    host, port = url.hostname or "", url.port or _PORTS[url.scheme]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise RetryableJobError(f"{host} could not be looked up: {error}") from error
    addresses = [str(each[4][0]) for each in found]
    private = [each for each in addresses if not is_public(each)]
    if private and not settings.WEBHOOK_ALLOW_PRIVATE:
        raise WebhookRefusedError(
            f"{host} is {private[0]}, which is no public address; name another "
            "NESCIO_WEBHOOK_URL, or set NESCIO_WEBHOOK_ALLOW_PRIVATE."
        )
    kind = _PinnedTls if url.scheme == "https" else _Pinned
    return kind(host, port, address=addresses[0])


class _Pinned(http.client.HTTPConnection):
    """A connection to an address that was chosen before."""

    def __init__(self, host: str, port: int, *, address: str) -> None:
        super().__init__(host, port, timeout=TIMEOUT_SECONDS)
        self._address = address

    def connect(self) -> None:
        """Connect without looking the host up again."""
        self.sock = socket.create_connection((self._address, self.port), self.timeout)


class _PinnedTls(_Pinned):
    """The same with TLS, whose certificate must be the host's."""

    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        """Connect and check the certificate against the host's name."""
        super().connect()
        context = ssl.create_default_context()
        self.sock = context.wrap_socket(self.sock, server_hostname=self.host)


def _name(url: SplitResult) -> str:
    """Return the address without what its query may hold."""
    return f"{url.scheme}://{url.netloc}{url.path}"
