"""The web server with real connections, and a small application in the product's place."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import psutil
import pytest
from django.conf import settings

from nescio.web_server import Limits, make_server

pytestmark = pytest.mark.slow

_WAIT_SECONDS = 120
_MEBIBYTE = 1024**2


class Application:
    """Answers at once; /slow waits until it is let go, /pieces gives one every moment."""

    def __init__(self):
        self.let_go = threading.Event()
        self.began = threading.Semaphore(0)
        self.closed = threading.Event()

    def __call__(self, environ, start_response):
        path = environ["PATH_INFO"]
        body = environ["wsgi.input"].read()
        start_response("200 OK", [("Content-Type", "text/plain")])
        if path == "/slow":
            self.began.release()
            assert self.let_go.wait(_WAIT_SECONDS)
        if path == "/pieces":
            return self.pieces()
        return [f"{path} {len(body)}".encode()]

    def pieces(self):
        try:
            for number in range(100_000):
                yield f"piece {number} ".encode()
                if number:
                    time.sleep(0.01)
        finally:
            self.closed.set()


@pytest.fixture
def application():
    return Application()


@pytest.fixture
def serve(application):
    ends = []

    def start(*, threads=2, begins=True, **limits):
        server = make_server(
            application,
            socket.create_server(("127.0.0.1", 0)),
            threads=threads,
            limits=Limits(**limits),
        )
        end = threading.Event()
        thread = threading.Thread(target=server.serve, args=(end,))
        if begins:
            thread.start()
        ends.append((end, thread))
        return Place(server, end, thread)

    yield start
    application.let_go.set()
    for end, thread in ends:
        end.set()
        thread.join(_WAIT_SECONDS)


class Place:
    def __init__(self, server, end, thread):
        self.server, self.end, self.thread = server, end, thread
        self.port = int(server.effective_port)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), _WAIT_SECONDS)

    @contextmanager
    def connection(self, text):
        with self.connect() as open_:
            open_.sendall(text.encode())
            yield open_

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def ask(self, text):
        with self.connection(text) as open_:
            return read(open_)


def read(open_):
    """Return all that comes until the other side closes."""
    return b"".join(iter(lambda: open_.recv(4096), b"")).decode()


def get(path):
    return f"GET {path} HTTP/1.0\r\n\r\n"


def post(path, length, body=""):
    return f"POST {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}"


@pytest.fixture
def many(serve):
    """Open `count` connections that stay until the test ends."""
    opened = []

    def connect(place, text, count):
        for _ in range(count):
            opened.append(place.connect())
            opened[-1].sendall(text.encode())
        return opened

    yield connect
    for each in opened:
        each.close()


@pytest.mark.parametrize(
    "start",
    [post("/", 100, "slow"), "POST / HTTP/1.1\r\nHost: x", "POST / HTTP/1.1\r\nAuthorization: Token t\r\nContent-Length: 9\r\n\r\n"],
)  # fmt: skip
def test_clients_that_send_slowly_hold_no_thread(serve, many, start):
    place = serve(threads=1)
    many(place, start, 60)

    assert "200 OK" in place.ask(get("/"))
    assert place.ask(post("/", 4, "body")).endswith("/ 4")


@pytest.mark.parametrize("start", [post("/", 100, "some"), "POST / HTTP/1.1\r\nHost"])
def test_a_request_that_does_not_become_whole_is_ended(serve, start):
    place = serve(headers_seconds=0.3, body_seconds=0.3)

    assert "408 Request Timeout" in place.ask(start)


def test_a_byte_now_and_then_does_not_keep_a_request_alive(serve):
    place = serve(headers_seconds=0.5, body_seconds=0.5)

    with place.connection(post("/", 1000)) as open_:
        open_.settimeout(0.1)
        said = b""
        for _ in range(200):
            try:
                open_.sendall(b"x")
                said = open_.recv(4096)
                break
            except TimeoutError:
                continue

    assert b"408 Request Timeout" in said


def test_a_body_that_comes_steadily_may_take_longer_than_one_that_stops(serve):
    place = serve(headers_seconds=0.2, body_seconds=0.2, body_bytes_a_second=1)

    # As each piece gives a hundred seconds, no pause of this machine is too long.
    with place.connection(post("/", 800, "x" * 100)) as open_:
        for _ in range(7):
            time.sleep(0.3)
            open_.sendall(b"x" * 100)
        said = read(open_)

    assert said.endswith("/ 800")


def test_unfinished_requests_beyond_the_bound_are_sent_away_and_whole_ones_served(
    serve, many
):
    place = serve(unfinished_of_one=5)
    many(place, post("/", 100), 5)

    refused = place.ask(post("/", 100))

    assert "503 Service Unavailable" in refused
    assert "Retry-After: 10" in refused
    assert "200 OK" in place.ask(post("/", 4, "body"))


def test_of_large_bodies_only_a_few_are_taken_at_a_time(serve, many):
    place = serve(large=2)
    many(place, post("/", 2 * _MEBIBYTE), 2)

    assert "503" in place.ask(post("/", 2 * _MEBIBYTE))
    with place.connection(post("/", 10)) as small:
        small.sendall(b"0123456789")
        assert read(small).endswith("/ 10")


def test_a_body_that_is_too_large_is_refused_before_it_is_read(serve):
    place = serve(body_bytes=1000)

    assert "413 Request Entity Too Large" in place.ask(post("/", 1000))


@pytest.mark.parametrize("path", ["/healthz", "/healthz/live"])
def test_health_is_told_while_all_threads_are_taken(serve, many, application, path):
    place = serve(threads=2)
    many(place, get("/slow"), 6)
    for _ in range(2):
        assert application.began.acquire(timeout=_WAIT_SECONDS)

    assert place.ask(get(path)).endswith(f"{path} 0")


def test_a_stream_comes_in_pieces_and_ends_with_its_reader(serve, application):
    place = serve()

    with place.connection(get("/pieces")) as open_:
        said = b""
        while b"piece 1 " not in said:
            said += open_.recv(4096)
        assert not application.closed.is_set()

    assert application.closed.wait(_WAIT_SECONDS)


def test_who_reads_nothing_of_an_answer_is_let_go(serve, application):
    place = serve(threads=1, idle_seconds=2.0)

    def pieces():
        try:
            for _ in range(64):
                yield b"x" * _MEBIBYTE
        finally:
            application.closed.set()

    application.pieces = pieces

    with place.connection(get("/pieces")):
        assert application.closed.wait(_WAIT_SECONDS)
        assert "200 OK" in place.ask(get("/"))


@pytest.mark.parametrize("sends", [get("/"), post("/", 4, "body")])
def test_a_pause_of_the_machine_cuts_nobody_whose_bytes_wait(serve, sends):
    place = serve(begins=False, idle_seconds=0.3, headers_seconds=0.3, body_seconds=0.3)
    with place.connection(sends[:5]) as open_:
        place.server.turn()  # takes the connection
        place.server.turn()  # reads how the request begins
        open_.sendall(sends[5:].encode())
        time.sleep(1.2)  # longer than all limits and than the time between two looks
        place.thread.start()

        assert "200 OK" in read(open_)


def test_what_runs_is_ended_when_the_server_is_told_to_end(serve, application):
    place = serve()
    with place.connection(get("/slow")) as open_:
        assert application.began.acquire(timeout=_WAIT_SECONDS)
        place.end.set()
        while place.listens():
            time.sleep(0.02)
        application.let_go.set()

        assert read(open_).endswith("/slow 0")
    place.thread.join(_WAIT_SECONDS)
    assert not place.thread.is_alive()


_KEPT = """
import os, sys, time
from nescio.web_server import keep_serving

def serve():
    os.write(1, b"%d\\n" % os.getpid())  # at once, beside others
    line = sys.stdin.readline()
    if line == "end\\n":
        sys.exit(3)

sys.exit(keep_serving(serve, int(sys.argv[1])))
"""


def kept(processes=1):
    return subprocess.Popen(
        [sys.executable, "-c", _KEPT, str(processes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=settings.BASE_DIR,
    )


def test_a_server_that_is_killed_is_forked_again_until_it_ends_by_itself():
    with kept() as parent:
        first = int(parent.stdout.readline())
        os.kill(first, signal.SIGKILL)
        second = int(parent.stdout.readline())
        parent.stdin.write("end\n")
        parent.stdin.flush()

        assert parent.wait(_WAIT_SECONDS) == 3
    assert len({parent.pid, first, second}) == 3


def test_the_end_is_passed_on_to_the_server_that_is_forked():
    with kept() as parent:
        child = int(parent.stdout.readline())
        parent.terminate()

        assert parent.wait(_WAIT_SECONDS) == 0
    assert not psutil.pid_exists(child)


def test_the_server_that_is_forked_ends_with_its_parent():
    with kept() as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()

        child.wait(_WAIT_SECONDS)


def test_of_several_servers_a_killed_one_is_forked_again_beside_the_others():
    with kept(2) as parent:
        first, second = (int(parent.stdout.readline()) for _ in range(2))
        os.kill(first, signal.SIGKILL)
        third = int(parent.stdout.readline())

        left = {child.pid for child in psutil.Process(parent.pid).children()}
        assert left == {second, third}
        parent.terminate()
        assert parent.wait(_WAIT_SECONDS) == 0
    assert not any(map(psutil.pid_exists, left))


def test_of_several_servers_one_that_ends_by_itself_ends_the_others():
    with kept(3) as parent:
        children = [int(parent.stdout.readline()) for _ in range(3)]
        parent.stdin.write("end\n")
        parent.stdin.flush()

        assert parent.wait(_WAIT_SECONDS) == 3
    assert not any(map(psutil.pid_exists, children))
