"""Measure ten daily tasks: clicks, keys, fields, page loads and time spent waiting.

    python -m benchmarks.daily_tasks [--var DIRECTORY] [--port 8765]

Starts `manage.py up` with the demonstration on a separate variable directory, writes
the data that the tasks need, and performs each task once in headless Chromium, starting
from the page shown after signing in. A text counts as one field, however long it is; a
page is a loaded document, not an HTMX update. Waiting is the sum of the times to first
byte of all page and HTMX requests, without the streams of answers.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests
from playwright.sync_api import Browser

from benchmarks.daily_task_list import LOUNGE, TASKS, Hand, Task
from nescio.embedded.places import Places
from tests.browser.chromium import chromium
from tests.nescio.running import ROOT, RunningSystem, give_models

PASSWORD = "a long enough benchmark password"  # of a throwaway system
HEADS = ("clicks", "keys", "fields", "pages", "wait, ms")
_SEED = """
from datetime import timedelta
from django.contrib.auth.models import Group, User
from django.utils import timezone
from accounts.services import create_token
from kb.entries.services import create_entry
from kb.models import Audience, Conflict, KnowledgeBase
for name, role in (("ben", "agent"), ("berta", "agent"), ("carla", "curator"), ("boss", "admin")):
    user = User.objects.create_user(name, password={password!r}, is_staff=role != "agent")
    user.groups.add(Group.objects.get(name=role))
    print("token", name, create_token(user=user, name="tasks", expires_in=timedelta(days=1)).secret)
carla, base = User.objects.get(username="carla"), KnowledgeBase.objects.get()
place = dict(knowledge_base=base, audience=Audience.objects.filter(everyone=True)[0], author=carla)
create_entry(text="The hotline is free of charge from every network.", state="in_review", **place)
create_entry(text="Paper statements are sent on the first of the month.", verify=True,
    valid_until=timezone.now() + timedelta(days=2), **place)
pair = [create_entry(text=f"A lost card is replaced within {{n}} days.", verify=True, **place)
    for n in (3, 9)]
if not Conflict.objects.filter(state="open").exists():
    Conflict.objects.create(first=pair[0], second=pair[1], first_revision=1, second_revision=1,
        texts_sha256="0" * 64, kind="contradiction", score=0.9, distance=0.3, model="rules")
"""
_SEED_LATER = """
from django.contrib.auth.models import User
from jobs.services import enqueue
from qa.gaps.escalations import escalate
from qa.models import Answer, Review
ben = User.objects.get(username="ben")
lounge = Answer.objects.filter(asker=ben, question={lounge!r}).latest("created_at")
escalate(lounge.pk, user=ben, note="A caller is at the airport.")
for answer in Answer.objects.filter(asker=ben).order_by("created_at")[:6]:
    Review.objects.create(answer=answer, round=1)
enqueue("qa.find_gaps", {{}})
"""
_ASKED = (
    "How do I block a lost card?", "What does the Tarn Gold card cost per year?",
    "What is the annual fee of the Tarn Classic card?", "Can I withdraw cash abroad?",
    "How do I order a new PIN?", LOUNGE,
    "Which insurance covers a broken phone?",
)  # fmt: skip


def main(tasks: Mapping[str, tuple[str, Task]] = TASKS) -> int:
    """Start a system, seed it, perform each task and print what it took."""
    options = _options()
    with ExitStack() as stack:
        directory = options.var or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="nescio-tasks-"))
        )
        system = stack.enter_context(_running(directory, options.port))
        seed(system)
        browser = stack.enter_context(chromium())
        print(f"{'task':40}{''.join(f'{head:>10}' for head in HEADS)}")
        for name, (user, task) in tasks.items():
            if options.only in name:
                figures = do(browser, system.url, user, task)
                print(
                    f"{name:40}{''.join(f'{each:>10}' for each in figures)}", flush=True
                )
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--var", type=Path, metavar="DIRECTORY")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--only", default="", metavar="WORDS")
    return parser.parse_args()


@contextmanager
def _running(directory: Path, port: int) -> Iterator["System"]:
    give_models(Places(ROOT / "var").models, directory)
    system = RunningSystem(directory, port)
    try:
        system.wait_until_ready()
        yield System(system.url, directory, ROOT)
    finally:
        system.stop()


@dataclass(frozen=True, slots=True)
class System:
    """A running system: its URL, its variable directory and its source directory."""

    url: str
    var: Path
    root: Path

    def shell(self, script: str) -> str:
        """Run a script with `manage.py shell` of that source and return its output."""
        command = [sys.executable, "-W", "ignore", "manage.py", "shell", "-c", script]
        environment = {**os.environ, "NESCIO_VAR_DIR": str(self.var)}
        done = subprocess.run(  # our own command
            command,
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout

    def ask(self, question: str, token: str) -> None:
        requests.post(
            f"{self.url}/api/v1/ask",
            json={"question": question},
            headers={"Authorization": f"Token {token}"},
            timeout=120,
        ).raise_for_status()


def seed(system: System) -> None:
    """Create users, entries and questions, and wait until gaps have been found."""
    lines = system.shell(_SEED.format(password=PASSWORD)).splitlines()
    tokens = dict(line.split()[1:] for line in lines if line.startswith("token "))
    for question in _ASKED:
        system.ask(question, tokens["ben"])
    system.ask(_ASKED[-1], tokens["berta"])
    system.shell(_SEED_LATER.format(lounge=LOUNGE))
    counted = "from qa.models import Gap; print('gaps', Gap.objects.count())"
    for _ in range(60):
        if "gaps 0" not in system.shell(counted):
            return
        time.sleep(2)
    raise RuntimeError("No gap was found; see the worker's log.")


def do(browser: Browser, url: str, user: str, task: Task) -> tuple[int | str, ...]:
    """Perform a task right after signing in; return the counts."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.goto(f"{url}/login")
    page.get_by_label("Name").fill(user)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_label("Your question").wait_for()
    page.wait_for_load_state("networkidle")
    hand = Hand(page, url)
    page.on("requestfinished", lambda request: hand.watch(request))
    page.on("domcontentloaded", lambda _page: hand.count_page())
    try:
        task(hand)
        page.wait_for_timeout(300)  # so that the last requests are counted
        return hand.figures
    finally:
        context.close()


if __name__ == "__main__":
    sys.exit(main())
