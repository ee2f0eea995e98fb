"""One signed POST to an address that somebody typed in (Standard Webhooks, v1).

Public addresses only, unless a setting allows others. The host is looked up once, every
address that it has is checked, and the connection goes to the very address that was
checked, so that no second look-up can lead inside (DNS rebinding). Redirects are not
followed, proxies not used, and a response is read for a bounded time and length.
"""

import base64
import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from accounts.exceptions import ConflictError, NescioError


class WebhookAddressError(NescioError):
    code = "webhook_address"


class EndpointStateError(ConflictError):
    code = "endpoint_state"


TIMEOUT_SECONDS = 10.0
MAX_RESPONSE_BYTES = 1_000
_PORTS = {"https": 443, "http": 80}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one attempt; `status` is None where there was no response."""

    status: int | None
    milliseconds: int
    response: str = ""
    error: str = ""

    @property
    def is_accepted(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def signature(secret: bytes, message: Message, timestamp: int) -> str:
    signed = f"{message.id}.{timestamp}.".encode() + message.body
    digest = hmac.new(secret, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def post(url: str, message: Message, secrets: Sequence[bytes]) -> Result:
    """Post `message`, signed with each of `secrets`; never raises for what is away."""
    began = time.monotonic()
    try:
        status, response = _exchange(checked_url(url), message, secrets)
    except (OSError, http.client.HTTPException, WebhookAddressError) as error:
        name = type(error).__name__
        return Result(None, _milliseconds(began), error=str(error) or name)
    said = "" if 200 <= status < 300 else _remedy(status)
    return Result(status, _milliseconds(began), response, said)


def checked_url(text: str) -> SplitResult:
    """Return the parts of an address that may be posted to, as far as its text says.

    Raises:
        WebhookAddressError: It is none, or not allowed.
    """
    schemes = ("https", "http") if settings.WEBHOOK_ALLOW_PRIVATE else ("https",)
    try:
        url = urlsplit(text)
        host, _port = url.hostname, url.port
    except ValueError as error:
        raise WebhookAddressError(f"{text!r} is no address: {error}.") from error
    if url.scheme not in schemes or not host:
        raise WebhookAddressError(
            f"The address begins with {url.scheme or 'nothing'!r}; it must begin with "
            f"{' or '.join(f'{each}://' for each in schemes)} and name a host."
        )
    if url.username or url.password:
        raise WebhookAddressError(
            "The address holds a name or a password; take it out, the posts are signed."
        )
    return url


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the internet, whatever form it hides in."""
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


def _exchange(
    url: SplitResult, message: Message, secrets: Sequence[bytes]
) -> tuple[int, str]:
    timestamp = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "nescio",
        "webhook-id": message.id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(
            signature(secret, message, timestamp) for secret in secrets
        ),
    }
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    connection = _connection(url)
    # Each read has a time limit of its own; one that sends a byte now and then has none.
    stop = threading.Timer(TIMEOUT_SECONDS, connection.cut)
    stop.daemon = True
    stop.start()
    try:
        connection.request("POST", path, message.body, headers)
        response = connection.getresponse()
        text = response.read(MAX_RESPONSE_BYTES).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        if connection.was_cut or isinstance(error, TimeoutError):
            raise _too_late() from error
        raise
    finally:
        stop.cancel()
        connection.close()
    if connection.was_cut:  # what came until then may look complete
        raise _too_late()
    return response.status, text.replace("\0", "\N{SYMBOL FOR NULL}")


def _too_late() -> TimeoutError:
    return TimeoutError(
        f"No complete response within {TIMEOUT_SECONDS:g} seconds; answer 2xx first and "
        "work afterwards."
    )


def _remedy(status: int) -> str:
    if 300 <= status < 400:
        return (
            f"Answered {status}; redirects are not followed, so name the last address."
        )
    return f"Answered {status}; only 2xx counts as received."


def _milliseconds(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


def _connection(url: SplitResult) -> "_Pinned":
    """Return a connection that will go to an address which was checked.

    Raises:
        WebhookAddressError: The host has an address that is not public.
    """
    host, port = url.hostname or "", url.port or _PORTS[url.scheme]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OSError(f"{host} could not be looked up: {error}") from error
    addresses = [str(each[4][0]) for each in found]
    private = [each for each in addresses if not is_public(each)]
    if private and not settings.WEBHOOK_ALLOW_PRIVATE:
        raise WebhookAddressError(
            f"{host} is {private[0]}, which is no public address; name another, or set "
            "NESCIO_WEBHOOK_ALLOW_PRIVATE."
        )
    kind = _PinnedTls if url.scheme == "https" else _Pinned
    return kind(host, port, address=addresses[0])


class _Pinned(http.client.HTTPConnection):
    """A connection to an address that was checked before."""

    def __init__(self, host: str, port: int, *, address: str) -> None:
        super().__init__(host, port, timeout=TIMEOUT_SECONDS)
        self._address = address
        self.was_cut = False

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), self.timeout)

    def cut(self) -> None:
        """End whatever read is waiting, from another thread."""
        self.was_cut = True
        if isinstance(self.sock, socket.socket):
            with suppress(OSError):  # it ended by itself
                self.sock.shutdown(socket.SHUT_RDWR)


class _PinnedTls(_Pinned):
    """The same with TLS, whose certificate must be the host's."""

    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        super().connect()
        context = ssl.create_default_context()
        self.sock = context.wrap_socket(self.sock, server_hostname=self.host)
