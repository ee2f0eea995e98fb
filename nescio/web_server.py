"""The web server: waitress, with deadlines for requests and threads for health checks.

    python -m nescio.web_server [nescio.wsgi:application] [--host HOST] [--port PORT]

It has a few processes (NESCIO_WEB_PROCESSES) with several threads each. The models are
loaded once, before the processes are forked, which share their memory. Waitress
receives requests in one loop for all connections, and hands one to a thread only when
its body is complete, so that a slow client occupies a connection but not a thread. This
module adds what it lacks: deadlines for such requests, limits on their number, and
draining at the end.
"""

import argparse
import ctypes
import errno
import logging
import os
import pkgutil
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher
from waitress.utilities import Error

from accounts.torch_threads import set_torch_threads
from nescio.forking import import_web_server

logger = logging.getLogger("nescio.web_server")

HEALTH_PATHS: Final = frozenset({"/healthz", "/healthz/live"})
_HEALTH_THREADS: Final = 2
_BACKLOG: Final = 1024
_MEBIBYTE: Final = 1024**2

WSGI = Callable[..., Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on clients; a request that has arrived completely does not count.

    Attributes:
        headers_seconds: From the first byte of a request to the end of its headers.
        body_seconds: Time from there to the end of its body. Each received byte extends
            it, by the time that it takes at `body_bytes_a_second`.
        body_bytes_a_second: The minimum rate of a body.
        idle_seconds: Time for which a connection may have no request, or its client may
            read nothing.
        connections: Open connections, below the usual limit of open files; further ones
            wait in the kernel.
        unfinished: Requests that have begun and are not complete.
        unfinished_of_one: Such requests from one address.
        large: Such requests with more than a mebibyte, which are buffered on disk.
        body_bytes: The maximum size of a body.
        drain_seconds: Time for running requests when the server gets a signal to end.
    """

    headers_seconds: float = 10.0
    body_seconds: float = 20.0
    body_bytes_a_second: int = 64 * 1024
    idle_seconds: float = 75.0
    connections: int = 800
    unfinished: int = 256
    unfinished_of_one: int = 64
    large: int = 8
    body_bytes: int = 101 * _MEBIBYTE
    drain_seconds: float = 20.0


class _RequestTimeoutError(Error):  # type: ignore[misc]  # ships no types
    code = 408
    reason = "Request Timeout"


class _UnavailableError(Error):  # type: ignore[misc]  # ships no types
    code = 503
    reason = "Service Unavailable"

    def to_response(self, ident: str | None = None) -> tuple[str, list[Any], str]:
        status, headers, body = super().to_response(ident)
        return status, [*headers, ("Retry-After", "10")], body


class _Channel(HTTPChannel):  # type: ignore[misc]  # ships no types
    """One connection, with the time at which its current request began."""

    server: "WebServer"
    request: Any = None  # the one that is arriving
    began = 0.0
    is_large = False

    def received(self, data: bytes) -> bool:
        before = self.request
        try:
            went_on = bool(super().received(data))
        except OSError as error:  # a large body is written to a file
            if error.errno != errno.ENOSPC:
                raise
            self.refuse(_UnavailableError("The disk is full."))
            return False
        request = self.request
        if request is None:
            return went_on
        if request is not before:
            self.began, self.is_large = time.monotonic(), False
        was_large = self.is_large
        size = max(request.content_length, request.body_bytes_received)
        self.is_large = size > _MEBIBYTE
        is_new = request is not before or self.is_large is not was_large
        if is_new and self.server.is_beyond_bounds(self):
            self.refuse(_UnavailableError("Too many requests arrive at once."))
        return went_on

    def due_at(self, limits: Limits) -> float:
        """Return the monotonic time by which the request must be complete."""
        due = self.began + limits.headers_seconds
        if self.request is not None and self.request.headers_finished:
            due += limits.body_seconds
            due += self.request.body_bytes_received / limits.body_bytes_a_second
        return due

    def refuse(self, error: Error) -> None:
        """Answer the unfinished request with `error`, and close the connection."""
        with self.requests_lock:
            request, self.request = self.request, None
            if request is None:
                return
            if not request.headers_finished:
                request.parse_header(b"GET / HTTP/1.0\r\n")  # as waitress does itself
            if self.requests:  # earlier requests must be answered first
                self.close_when_flushed = True
                request.close()
                return
            request.error, request.completed = error, True
            self.requests.append(request)
            self.server.add_task(self)


class WebServer(TcpWSGIServer):  # type: ignore[misc]  # ships no types
    """Waitress with deadlines for requests, and separate threads for health checks."""

    channel_class = _Channel

    def __init__(self, application: WSGI, adj: Adjustments, limits: Limits) -> None:
        self._limits = limits
        self._looks_at: tuple[float, float] | None = None  # wall and monotonic clock
        self._health = ThreadedTaskDispatcher()
        self._health.set_thread_count(_HEALTH_THREADS)
        workers = ThreadedTaskDispatcher()
        workers.queue_logger.disabled = True  # it logs a line for each waiting request
        workers.set_thread_count(adj.threads)
        (listener,) = adj.sockets
        super().__init__(
            application,
            map={},
            _sock=listener,
            dispatcher=workers,
            adj=adj,
            sockinfo=(listener.family, listener.type, 0, listener.getsockname()),
            bind_socket=False,
        )

    def add_task(self, task: _Channel) -> None:
        is_health = getattr(task.requests[0], "path", "") in HEALTH_PATHS
        (self._health if is_health else self.task_dispatcher).add_task(task)

    def is_beyond_bounds(self, channel: _Channel) -> bool:
        unfinished = [
            each for each in self.active_channels.values() if each.request is not None
        ]
        by_address = Counter(each.addr[0] for each in unfinished)
        large = sum(each.is_large for each in unfinished)
        return (
            len(unfinished) > self._limits.unfinished
            or by_address[channel.addr[0]] > self._limits.unfinished_of_one
            or (channel.is_large and large > self._limits.large)
        )

    def maintenance(self, now: float) -> None:
        """Note the time; the loop calls this every second, before it reads new data."""
        self._looks_at = now, time.monotonic()

    def _end_overdue(self) -> None:
        """End connections that were already overdue before the loop read new data.

        So a pause of the whole machine does not cut off clients whose data has arrived
        meanwhile.
        """
        if self._looks_at is None:
            return
        (now, clock), self._looks_at = self._looks_at, None
        limits = self._limits
        for channel in [*self.active_channels.values()]:
            is_silent = channel.last_activity < now - limits.idle_seconds
            if channel.request is not None:
                if channel.due_at(limits) < clock:
                    channel.refuse(_RequestTimeoutError("It took too long to arrive."))
            elif is_silent and (not channel.requests or channel.total_outbufs_len):
                channel.handle_close()

    def serve(self, end: threading.Event) -> None:
        """Serve until `end` is set, then let running requests finish."""
        while not end.is_set():
            self.turn()
        wasyncore.dispatcher.del_channel(self)
        self.socket.close()
        give_up_at = time.monotonic() + self._limits.drain_seconds
        while self._is_busy() and time.monotonic() < give_up_at:
            self.turn()
        wasyncore.close_all(self._map)

    def turn(self) -> None:
        """Wait up to half a second for ready sockets, then read and write once."""
        wasyncore.loop(timeout=0.5, use_poll=True, map=self._map, count=1)
        self._end_overdue()

    def _is_busy(self) -> bool:
        return any(
            each.requests or each.writable() for each in self.active_channels.values()
        )


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


def make_server(
    application: WSGI,
    listener: socket.socket,
    *,
    threads: int,
    limits: Limits = Limits(),
) -> WebServer:
    """Return a server for connections to `listener`, which it closes when it ends."""
    adjustments = Adjustments(
        sockets=[listener],
        backlog=_BACKLOG,
        threads=threads,
        ident=None,
        connection_limit=limits.connections,
        cleanup_interval=1,
        recv_bytes=65_536,
        max_request_header_size=64 * 1024,
        max_request_body_size=limits.body_bytes,
        # Django reads these headers, for the number of proxies in the settings.
        clear_untrusted_proxy_headers=False,
        log_socket_errors=False,
    )
    return WebServer(application, adjustments, limits)


# A parent process that has imported everything and loaded the models holds the port and
# forks the serving processes: a killed one is replaced at once, and clients that
# connect meanwhile are served by the others or wait in the kernel instead of being
# refused.

_ENDS: Final = (signal.SIGTERM, signal.SIGINT)
_AGAIN_SECONDS = 1.0
# A process that served this long was healthy: it is forked again at once.
_HEALTHY_SECONDS = 15.0
_PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def keep_serving(serve: Callable[[], None], processes: int) -> int:
    """Run `serve` in several child processes (Linux only); return their exit status.

    A child that was killed by a signal is forked again. If one exits by itself, as with
    wrong settings, the others are ended too.
    """
    end = threading.Event()
    children: dict[int, float] = {}  # when each began

    def pass_on(*_: object) -> None:
        end.set()
        for child in [*children]:
            os.kill(child, signal.SIGTERM)

    for number in _ENDS:
        signal.signal(number, pass_on)
    status = 0
    while not end.is_set() or children:
        while len(children) < processes and not end.is_set():
            # Signals are blocked until both processes can handle them.
            signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
            child = os.fork()
            if not child:
                _serve_as_child(serve)
                return 0
            children[child] = time.monotonic()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
        child, ended = os.wait()
        began = children.pop(child)
        if os.WIFEXITED(ended):
            status = status or os.waitstatus_to_exitcode(ended)
            pass_on()
        elif not end.is_set():
            name = signal.Signals(os.WTERMSIG(ended)).name
            logger.error("The server (process %d) was ended by %s.", child, name)
            if time.monotonic() - began < _HEALTHY_SECONDS:
                time.sleep(_AGAIN_SECONDS)
    return status


def serve_until_signal(server: WebServer) -> None:
    """Serve until SIGTERM or SIGINT, then let running requests finish."""
    end = threading.Event()
    for number in _ENDS:
        signal.signal(number, lambda *_: end.set())
    server.serve(end)


def _serve_as_child(serve: Callable[[], None]) -> None:
    for number in _ENDS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
    # End with the parent; otherwise the child would keep the port from the next parent.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    serve()


def main(arguments: Sequence[str] | None = None) -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("application", nargs="?", default="nescio.wsgi:application")
    parser.add_argument("--host", default=settings.HOST)
    parser.add_argument("--port", type=int, default=settings.PORT)
    options = parser.parse_args(arguments)
    # Twice the limit of imports, so that the form itself can report a file that is too
    # large.
    body_bytes = (2 * settings.IMPORT_MAX_MIB + 1) * _MEBIBYTE
    listener = listen(options.host, options.port)

    def serve() -> None:
        server = make_server(
            pkgutil.resolve_name(options.application),
            listener,
            threads=settings.WEB_THREADS,
            limits=Limits(body_bytes=body_bytes),
        )
        serve_until_signal(server)

    if sys.platform != "linux":  # forking with loaded libraries is only safe there
        serve()
        return 0
    import_web_server()
    if settings.WARM_UP:
        from nescio.warm_up import load_before_forking  # noqa: PLC0415  # needs Django

        load_before_forking()

    def serve_with_threads() -> None:
        if "torch" in sys.modules:  # not loaded if other servers run the models
            set_torch_threads()
        serve()

    return keep_serving(serve_with_threads, settings.WEB_PROCESSES)


if __name__ == "__main__":
    sys.exit(main())
