"""Load on a whole system: clients that ask, vote, import and record what they wrote.

Every write has a unique text and is sent only once, so that in the end each
acknowledged write must be stored exactly once, and no other more than once.
"""

import os
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg
import requests

from nescio.embedded import postgres
from nescio.embedded.places import Places
from tests.nescio.running import RunningSystem, free_port, give_models

_READY_SECONDS = 900  # enough on a machine under other load
_ROWS = 3
_THINK_SECONDS = 0.2
_TIMEOUT_SECONDS = 90
_NEVER_SLOWED = {
    "NESCIO_THROTTLE_ASK": "1000000/minute",
    "NESCIO_THROTTLE_USER": "1000000/minute",
}
_SUBJECTS = ("moons", "rivers", "symphonies", "volcanoes", "penguins", "castles")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request: its start, duration and status (0 if there was no response)."""

    kind: str
    began: float
    seconds: float
    status: int

    @property
    def is_error(self) -> bool:
        """Whether it failed, not counting 503, which asks the client to retry."""
        return self.status not in {200, 202, 503}


@dataclass(slots=True)
class Ledger:
    """The requests of all clients, and the texts of acknowledged writes by kind."""

    exchanges: list[Exchange] = field(default_factory=list)
    acknowledged: dict[str, list[str]] = field(
        default_factory=lambda: {"ask": [], "vote": [], "import": []}
    )


@dataclass(slots=True)
class Client:
    """A client of the REST interface; several may share a `ledger`."""

    url: str
    token: str
    ledger: Ledger
    session: requests.Session = field(default_factory=requests.Session)
    retry_after: float = 0.0

    def send(self, kind: str, method: str, path: str, **body: Any) -> Any:
        """Send a request and return its JSON, or None if it was not acknowledged."""
        began, clock, status, said = time.time(), time.perf_counter(), 0, None
        headers = {"Authorization": f"Token {self.token}"}
        try:
            response = self.session.request(
                method,
                f"{self.url}/api/v1/{path}",
                headers=headers,
                timeout=_TIMEOUT_SECONDS,
                **body,
            )
            status = response.status_code
            said = response.json() if response.ok else None
            self.retry_after = float(response.headers.get("Retry-After", 0))
        except requests.RequestException:
            self.session.close()
        seconds = time.perf_counter() - clock
        self.ledger.exchanges.append(Exchange(kind, began, seconds, status))
        return said

    def ask(self, question: str = "", kind: str = "ask") -> Any:
        """Ask `question`, or by default a unique one that no entry answers."""
        key = uuid.uuid4().hex
        own = f"How many {random.choice(_SUBJECTS)} were described under {key}?"
        said = self.send(kind, "POST", "ask", json={"question": question or own})
        if said and not question:
            self.ledger.acknowledged["ask"].append(own)
        return said

    def vote(self, answer_id: str) -> None:
        """Vote on an answer that nobody has voted on."""
        comment = f"vote {uuid.uuid4().hex}"
        body = {"rating": "down", "reasons": ["other"], "comment": comment}
        if self.send("vote", "PUT", f"answers/{answer_id}/vote", json=body):
            self.ledger.acknowledged["vote"].append(comment)

    def load(self, audience: str) -> list[str]:
        """Import a small file; return its texts, or an empty list if rejected."""
        name = uuid.uuid4().hex
        texts = [f"Rule {name} {n}: a card costs {n} euros." for n in range(_ROWS)]
        content = "\n".join(["text", *texts])
        said = self.send(
            "import",
            "POST",
            "imports",
            files={"file": (f"{name}.csv", content)},
            data={"audience": audience},
        )
        if not said:
            return []
        self.ledger.acknowledged["import"] += texts
        return texts


@dataclass(slots=True)
class System:
    """A running `manage.py up`."""

    running: RunningSystem
    var: Path
    audience: str = ""

    @property
    def token(self) -> str:
        return str(self.running.access["token"])

    def client(self, ledger: Ledger | None = None) -> Client:
        return Client(self.running.url, self.token, ledger or Ledger())

    def head(self, name: str) -> psutil.Process | None:
        """Return the first process group leader named `name`, if there is one."""
        ours = psutil.Process(self.running.process.pid)
        heads = [p for p in ours.children(recursive=True) if p.pid == os.getpgid(p.pid)]
        return next((p for p in heads if p.name() == name), None)

    def postmaster(self) -> psutil.Process | None:
        found = postgres.running(Places(self.var))
        return psutil.Process(found.pid) if found else None

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Query the database as its owner, without row-level security."""
        sockets = str(Places(self.var).postgres_socket_directory)
        with psycopg.connect(host=sockets, user="nescio", dbname="nescio") as database:
            return database.execute(statement).fetchall()


@contextmanager
def system(var: Path, models: Path, **variables: str) -> Iterator[System]:
    """Run `manage.py up` on `var` with the prepared `models` for the block."""
    os.environ.update(_NEVER_SLOWED, **variables)
    if models.stat().st_dev == var.parent.stat().st_dev:
        give_models(models, var)
    else:
        var.mkdir(parents=True)
        (var / "models").symlink_to(models)
    started = System(RunningSystem(var, free_port()), var)
    try:
        started.running.wait_until_ready(_READY_SECONDS)
        found = started.client().send("audiences", "GET", "audiences")
        started.audience = next(
            row["slug"] for row in found["results"] if row.get("everyone", True)
        )
        yield started
    finally:
        started.running.stop()


@contextmanager
def load(
    of: System, ledger: Ledger, clients: int, questions: Sequence[str] = ()
) -> Iterator[None]:
    """Run `clients` that ask, vote and import until the block ends.

    If `questions` are given, a fifth of what is asked is drawn from them.
    """
    end = threading.Event()

    def work(number: int) -> None:
        chance = random.Random(number)
        client = of.client(ledger)
        while not end.wait(_THINK_SECONDS * chance.random()):
            if questions and chance.random() < 0.2:
                client.ask(chance.choice(questions), kind="known")
            elif chance.random() < 0.02:
                client.load(of.audience)
            elif (said := client.ask()) and chance.random() < 0.5:
                client.vote(said["id"])

    threads = [threading.Thread(target=work, args=(each,)) for each in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        end.set()
        for thread in threads:
            thread.join()


_WRITTEN = {
    "ask": "SELECT question FROM qa_answer",
    "vote": "SELECT comment FROM qa_vote",
    "import": "SELECT text FROM kb_entry",
}
_AT_WORK = "SELECT 1 FROM jobs_job WHERE kind LIKE '%import%' AND state IN ('queued', 'running')"  # fmt: skip


_ENDS = "SELECT kind, state, left(error, 200), count(*) FROM jobs_job GROUP BY 1, 2, 3"


def faults_of_writes(of: System, ledger: Ledger) -> int:
    """Print and count the acknowledged writes that are lost or stored twice.

    Also print the failed requests by kind and status, and the jobs that did not succeed
    by kind, state and error.
    """
    wait_until(lambda: not of.rows(_AT_WORK), 600)
    lost, doubled = Counter[str](), Counter[str]()
    for kind, statement in _WRITTEN.items():
        there = Counter(text for (text,) in of.rows(statement))
        ours = ledger.acknowledged[kind]
        lost[kind] = sum(not there[text] for text in ours)
        own = (text for text in there if "Rule " in text or kind != "import")
        doubled[kind] = sum(there[text] > 1 for text in own if _is_ours(text))
    failed = Counter((e.kind, e.status) for e in ledger.exchanges if e.is_error)
    for (kind, status), count in failed.items():
        print(f"{count} requests failed: {kind}, status {status or 'none'}")
    for job, state, error, count in of.rows(_ENDS):
        if state != "succeeded":
            print(f"{count} jobs {state}: {job} {error}")
    print(f"acknowledged writes lost: {lost.total()} {dict(lost)}, stored twice: {doubled.total()} {dict(doubled)}")  # fmt: skip
    return lost.total() + doubled.total()


def _is_ours(text: str) -> bool:
    """Return whether the text contains a client's key: 32 hex digits."""
    words = (word.strip("?:.") for word in text.split())
    return any(len(word) == 32 and word.isalnum() for word in words)


def wait_until(is_so: Callable[[], object], seconds: float) -> float:
    """Wait until `is_so()`; return the seconds taken, or infinity on timeout."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if is_so():
            return time.monotonic() - began
        time.sleep(0.05)
    return float("inf")


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))] if values else float("nan")


def tree(root: psutil.Process | None) -> list[psutil.Process]:
    """Return a process and all its descendants, or an empty list for None."""
    return [root, *root.children(recursive=True)] if root else []


def processor_seconds(*roots: psutil.Process | None) -> float:
    """Return the processor time of these processes and all their descendants."""
    times = [each.cpu_times() for root in roots for each in tree(root)]
    return sum(each.user + each.system for each in times)
