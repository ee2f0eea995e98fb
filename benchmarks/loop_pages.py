"""Measure every page over HTTP with a million stored answers.

    python -m benchmarks.loop_pages [--answers 1000000] [--entries 100000]
        [--keep DIRECTORY] [--only PATTERN] [--follow] [--everybody]

Starts a separate database and web server in a scratch directory, fills the database by
SQL, and opens every page and list in turn, as a user restricted by row-level security
where possible. Prints the median and the worst time, the processor time of web server
and database (in milliseconds; other load does not affect it), and the number of
queries. The exit status is 1 if a median is over 300 ms or a page is broken. `--keep
DIRECTORY` keeps the filled database for the next run, `--only PATTERN` opens the pages
whose name it matches, `--follow` also opens what the admin's lists link to on
themselves (filters, orders, further pages), and `--everybody` opens each page as every
user who may open it. Needs 10 GiB of disk.
"""

import argparse
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import requests

from accounts.acting import as_owner
from benchmarks.ask import _serving, _timing
from benchmarks.clients import tree
from benchmarks.loop_page_list import PASSWORD, PROGRAM, READERS, Page
from nescio.embedded import postgres

LIMIT_MILLISECONDS = 300.0
_WARM_UP = 1


def main() -> int:
    """Fill the database, measure and print; return the exit status."""
    options = _options()
    with ExitStack() as stack:
        directory = options.keep or stack.enter_context(
            tempfile.TemporaryDirectory(prefix="nescio-loop-")
        )
        # Django reads its settings once, so the environment must be set before imports.
        os.environ |= {
            "NESCIO_VAR_DIR": str(directory),
            "DJANGO_SETTINGS_MODULE": "nescio.settings",
            "NESCIO_THROTTLE_USER": "1000000/minute",
            "NESCIO_LOG_LEVEL": "WARNING",
            "NESCIO_WARM_UP": "false",
        }
        os.environ.pop("DATABASE_URL", None)
        pages, token = stack.enter_context(_filled(options.answers, options.entries))
        port, server = stack.enter_context(_serving(with_workers=False))
        clients = {name: Client(port, name) for name in READERS}
        clients[PROGRAM] = Client(port, PROGRAM, token)
        heads = ("median", "worst", "web", "database", "queries")
        print(f"{'milliseconds':64}{''.join(f'{head:>9}' for head in heads)}")
        slow, count = [], 0
        for page in _chosen(pages, clients, options):
            count += 1
            try:
                is_good = _measure(clients[page.reader], page, server, options.times)
            except BrokenPageError as error:
                print(error)
                is_good = False
            if not is_good:
                slow.append(f"{page.name} ({page.reader})")
    print(
        f"{count} pages, over {LIMIT_MILLISECONDS:.0f} ms or broken: "
        f"{', '.join(slow) or 'none'}"
    )
    return 1 if slow else 0


def _chosen(
    pages: Sequence[Page], clients: Mapping[str, "Client"], options: argparse.Namespace
) -> Iterator[Page]:
    """Yield the pages to open as the options ask, with other users and linked pages."""
    from benchmarks.loop_page_admin import followed

    for page in pages:
        if not re.search(options.only, page.name):
            continue
        yield page
        if options.everybody and page.reader != PROGRAM:
            for reader in READERS:
                theirs = replace(page, reader=reader)
                if reader != page.reader and clients[reader].may_open(theirs):
                    yield theirs
        if options.follow and page.address.startswith("/admin/"):
            yield from followed(page, clients[page.reader].read(page))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--answers", type=int, default=1_000_000)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY")
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--follow", action="store_true")
    parser.add_argument("--everybody", action="store_true")
    return parser.parse_args()


@contextmanager
def _filled(answers: int, entries: int) -> Iterator[tuple[Sequence[Page], str]]:
    """Start the database, fill it if empty; yield the pages and a program's token."""
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connections

    postgres.start(settings.PLACES)
    try:
        call_command("migrate", verbosity=0)
        from benchmarks.loop_page_admin import admin_pages, unopened
        from benchmarks.loop_page_list import pages
        from benchmarks.loop_rows import fill, let_read
        from qa.models import Answer

        if not Answer.objects.exists():
            begun = time.perf_counter()
            fill(answers, entries)
            print(
                f"{answers} answers and {entries} entries written in {time.perf_counter() - begun:.0f} s"
            )
        token = let_read()
        found = [*pages(), *admin_pages()]
        for route in unopened(found):
            print(f"not opened: {route}")
        connections.close_all()
        yield found, token
    finally:
        connections.close_all()
        postgres.stop(settings.PLACES)


class BrokenPageError(RuntimeError):
    """A page that fails, redirects elsewhere, or is forbidden to the user."""


class Client:
    """One user's browser, or one program."""

    def __init__(self, port: int, name: str, token: str = "") -> None:
        """Sign in by the login form, unless there is a token."""
        self._url = f"http://127.0.0.1:{port}"
        self._session = requests.Session()
        self.name = name
        if token:
            self._session.headers["Authorization"] = f"Token {token}"
            return
        self._session.get(f"{self._url}/login", timeout=60)
        form = {
            "username": name,
            "password": PASSWORD,
            "csrfmiddlewaretoken": self._session.cookies["csrftoken"],
        }
        response = self._session.post(f"{self._url}/login", form, timeout=60)
        if response.url.endswith("/login"):
            msg = f"{name} could not sign in."
            raise RuntimeError(msg)

    def may_open(self, page: Page) -> bool:
        """Return whether this user gets the page itself."""
        with self._get(page) as response:
            return response.ok and self._is_there(response, page)

    def open(self, page: Page) -> tuple[float, int]:
        """Read a page, or the start of a stream; return its database time and calls.

        Raises:
            BrokenPageError: The response is an error or comes from another address.
        """
        with self._get(page) as response:
            # Some lists redirect to themselves with a filter for open rows.
            if not response.ok or not self._is_there(response, page):
                msg = f"HTTP {response.status_code} of {page.address} for {self.name}: {response.url}"
                raise BrokenPageError(msg)
            next(response.iter_content(4096 if page.is_stream else None), b"")
            return _timing(response.headers["Server-Timing"])

    def _get(self, page: Page) -> requests.Response:
        headers = {"HX-Request": "true"} if page.is_part else {}
        return self._session.get(
            f"{self._url}{page.address}", headers=headers, stream=True, timeout=120
        )

    def _is_there(self, response: requests.Response, page: Page) -> bool:
        address = f"{self._url}{page.address}"
        return response.url.split("?")[0] == address.split("?")[0]

    def read(self, page: Page) -> str:
        """Return a page's HTML."""
        return self._session.get(f"{self._url}{page.address}", timeout=120).text


def _measure(client: Client, page: Page, server: psutil.Process, times: int) -> bool:
    """Open a page repeatedly, print the results; return whether it is fast enough."""
    for _ in range(_WARM_UP):
        client.open(page)
    taken, calls, before = [], 0, _worked(server)
    for _ in range(times):
        begun = time.perf_counter()
        _, calls = client.open(page)
        taken.append((time.perf_counter() - begun) * 1000)
    worked = [
        sum(seconds - known.get(pid, 0.0) for pid, seconds in now.items())
        for now, known in zip(_worked(server), before, strict=True)
    ]
    median = statistics.median(taken)
    is_good = median <= LIMIT_MILLISECONDS
    print(
        f"{page.name + ' (' + client.name + ')':64}{median:9.1f}{max(taken):9.1f}"
        f"{''.join(f'{1000 * each / times:9.1f}' for each in worked)}"
        f"{calls:9}{'' if is_good else '   OVER'}",
        flush=True,
    )
    return is_good


def _worked(server: psutil.Process) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """Return the processor seconds of web server and database, by process.

    The time of processes that have ended, such as parallel workers, is not included.
    """
    from django.conf import settings

    database = postgres.running(settings.PLACES)
    if database is None:
        msg = "The database has stopped."
        raise RuntimeError(msg)
    found = []
    for root in (server, psutil.Process(database.pid)):
        times = {each.pid: each.cpu_times() for each in tree(root)}
        found.append({pid: spent.user + spent.system for pid, spent in times.items()})
    return found[0], found[1]


if __name__ == "__main__":
    with as_owner("benchmarks"):
        sys.exit(main())
