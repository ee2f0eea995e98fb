"""Connections to addresses that somebody typed in, which may not lead inside.

The host is looked up once, every address that it has is checked, and the connection goes to
the very address that was checked, so that no second look-up can lead inside (DNS
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


def checked_address(url: SplitResult, *, allow_private: bool, setting: str) -> str:
    """Return an IP address of the host; `setting` would allow one that is not public.

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
    """Refuse a host that is not public by its text alone: a number, or localhost."""
    host = url.hostname or ""
    name = host.rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761
        _refuse_private(host, ["127.0.0.1"], setting)
    # Beside what is usual it reads 127.1 and 2130706433, as a connection would.
    with suppress(OSError, UnicodeError):
        found = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
        _refuse_private(host, [str(each[4][0]) for each in found], setting)


def _refuse_private(host: str, addresses: Iterable[str], setting: str) -> None:
    private = [each for each in addresses if not is_public(each)]
    if private:
        which = "" if host == private[0] else f"{private[0]}, which is "
        raise PrivateAddressError(
            f"{host} is {which}no public address; name another, or set {setting}."
        )


def connect(
    url: SplitResult, *, allow_private: bool, setting: str, timeout: float
) -> "Pinned":
    """Return a connection that will go to an address which was checked."""
    address = checked_address(url, allow_private=allow_private, setting=setting)
    kind = _PinnedTls if url.scheme == "https" else Pinned
    host, port = url.hostname or "", url.port or PORTS[url.scheme]
    return kind(host, port, address=address, timeout=timeout)


def target(url: SplitResult) -> str:
    """Return what a request of an address asks its host for."""
    return (url.path or "/") + (f"?{url.query}" if url.query else "")


class Pinned(http.client.HTTPConnection):
    """A connection to an address that was checked before."""

    def __init__(self, host: str, port: int, *, address: str, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self._address = address
        self._seconds = timeout
        self.was_cut = False

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), self.timeout)

    @contextmanager
    def in_time(self) -> Iterator[None]:
        """Let one exchange take no longer than the timeout, and close the connection."""
        # Each read has a time limit of its own; one that sends a byte now and then has none.
        stop = threading.Timer(self._seconds, self._cut)
        stop.daemon = True
        stop.start()
        try:
            yield
        finally:
            stop.cancel()
            self.close()

    def _cut(self) -> None:
        """End whatever read is waiting, from another thread."""
        self.was_cut = True
        if isinstance(self.sock, socket.socket):
            with suppress(OSError):  # it ended by itself
                self.sock.shutdown(socket.SHUT_RDWR)


class _PinnedTls(Pinned):
    """The same with TLS, whose certificate must be the host's."""

    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        super().connect()
        context = ssl.create_default_context()
        self.sock = context.wrap_socket(self.sock, server_hostname=self.host)
