"""Connections to addresses entered by users, which must not reach internal hosts.

The host is looked up once, all of its addresses are checked, and the connection goes to
a checked address, so that a second look-up can't lead to an internal one (DNS
rebinding).
"""

import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import SplitResult

from accounts.exceptions import NescioError

PORTS = {"https": 443, "http": 80}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class PrivateAddressError(NescioError):
    code = "private_address"


def is_public(address: str) -> bool:
    """Return whether an IP address is public, also if it is an IPv4 address in IPv6."""
    found: _Address = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        found = _inner(found)
    return found.is_global and not found.is_multicast


def _inner(address: ipaddress.IPv6Address) -> _Address:
    """Return the IPv4 address that is embedded in an IPv6 address, or the latter."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.teredo is not None:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour or address


def checked_address(url: SplitResult, *, allow_private: bool, setting: str) -> str:
    """Return an IP address of the host; errors name `setting`, which allows any one.

    Raises:
        OSError: The host cannot be looked up.
        PrivateAddressError: One of its addresses is not public.
    """
    host, port = url.hostname or "", url.port or PORTS[url.scheme]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OSError(f"{host} could not be looked up: {error}") from error
    addresses = [str(each[4][0]) for each in found]
    if not allow_private:
        _refuse_private(host, addresses, setting)
    return addresses[0]


def check_without_lookup(url: SplitResult, *, setting: str) -> None:
    """Refuse a host that is evidently not public: an IP address or localhost."""
    host = url.hostname or ""
    name = host.rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761
        _refuse_private(host, ["127.0.0.1"], setting)
    # This also parses forms such as 127.1 and 2130706433, as a connection would.
    with suppress(OSError, UnicodeError):
        found = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
        _refuse_private(host, [str(each[4][0]) for each in found], setting)


def _refuse_private(host: str, addresses: Iterable[str], setting: str) -> None:
    private = [each for each in addresses if not is_public(each)]
    if private:
        which = "" if host == private[0] else f"{private[0]}, which is "
        raise PrivateAddressError(
            f"{host} is {which}not a public address; name another, or set {setting}."
        )


def connect(
    url: SplitResult, *, allow_private: bool, setting: str, timeout: float
) -> "Pinned":
    """Return a connection to a checked address of the host, not yet opened."""
    address = checked_address(url, allow_private=allow_private, setting=setting)
    kind = _PinnedTls if url.scheme == "https" else Pinned
    host, port = url.hostname or "", url.port or PORTS[url.scheme]
    return kind(host, port, address=address, timeout=timeout)


def target(url: SplitResult) -> str:
    """Return the request target of a URL: its path and query."""
    return (url.path or "/") + (f"?{url.query}" if url.query else "")


class Pinned(http.client.HTTPConnection):
    """An HTTP connection to a given IP address, which was checked before."""

    def __init__(self, host: str, port: int, *, address: str, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self._address = address
        self._seconds = timeout
        self.was_cut = False

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), self.timeout)

    @contextmanager
    def in_time(self) -> Iterator[None]:
        """Limit one exchange to the timeout, and close the connection afterwards."""
        # The socket's timeout applies to each read; a host that sends a byte now and
        # then would never exceed it.
        stop = threading.Timer(self._seconds, self._cut)
        stop.daemon = True
        stop.start()
        try:
            yield
        finally:
            stop.cancel()
            self.close()

    def _cut(self) -> None:
        """Interrupt a waiting read, from another thread."""
        self.was_cut = True
        if isinstance(self.sock, socket.socket):
            with suppress(OSError):  # already closed
                self.sock.shutdown(socket.SHUT_RDWR)


class _PinnedTls(Pinned):
    """The same with TLS; the certificate must match the host."""

    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        super().connect()
        context = ssl.create_default_context()
        self.sock = context.wrap_socket(self.sock, server_hostname=self.host)
