"""Fixtures: headless Chromium on a live server with the real pipeline and models."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import (
    Browser,
    Locator,
    Page,
    Request,
    expect,
)

from accounts.roles import Role
from jobs.models import Job
from jobs.run import run_job
from qa.policies.services import ensure_default_policy
from tests.browser.chromium import CHROMIUM, chromium
from tests.factories import make_document, make_entry, make_knowledge_base, make_user
from workers.registry import HANDLERS

PASSWORD = "correct horse battery"
# Time for something to appear on a page: on a busy machine it can take many seconds.
WAIT_MILLISECONDS = 60_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip = pytest.mark.skip(
        reason="no Chromium: install the package chromium-headless-shell, or name one in NESCIO_CHROMIUM"
    )
    for item in items:
        if "tests/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None:
                item.add_marker(skip)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    # Playwright runs an event loop in this thread, which makes Django refuse ORM calls.
    # They are safe, because tests make them outside the loop.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    expect.set_options(timeout=WAIT_MILLISECONDS)
    with chromium() as launched:
        yield launched
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


# What htmx logs when a newer request replaces one (hx-sync="replace"). A request that
# failed also logs "htmx:sendError".
REPLACED = ("htmx:sendAbort", "htmx:afterRequest")


@dataclass
class Desk:
    """One user's browser on the live server."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)
    requests: set[Request] = field(default_factory=set)

    def begin(self, request: Request) -> None:
        self.requests.add(request)

    def end(self, request: Request) -> None:
        self.requests.discard(request)

    def close(self) -> None:
        """Wait for pending requests, then close: the database is emptied next."""
        for _ in range(WAIT_MILLISECONDS // 20):
            if not self.requests:
                break
            self.page.wait_for_timeout(20)
        self.page.context.close()

    def open(self, path: str) -> Page:
        self.page.goto(self.address + path)
        return self.page

    def let_in(self, username: str) -> None:
        """Give the browser a session of that user without using the login form."""
        client = Client()
        client.force_login(User.objects.get(username=username))
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        self.page.context.add_cookies(
            [
                {
                    "name": settings.SESSION_COOKIE_NAME,
                    "value": session,
                    "url": self.address,
                }
            ]
        )

    def log_in(self, username: str, path: str = "/") -> Page:
        """Open a page signed in as that user, without the slow login form."""
        self.let_in(username)
        return self.open(path)

    def sign_in(self, username: str) -> Page:
        """Sign in with the login form."""
        page = self.open("/login")
        page.get_by_label("Name").fill(username)
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")
        page.get_by_label("Your question").wait_for()
        return page

    def ask(self, question: str) -> Page:
        self.page.get_by_label("Your question").fill(question)
        self.page.get_by_label("Your question").press("Enter")
        self.page.locator("article.result").wait_for(timeout=90_000)
        return self.page


@pytest.fixture
def make_desk(live_server, browser, settings):
    """Return a function that opens a browser; errors in its console fail the test.

    Pages send requests by themselves until they are closed. That must be before the
    `settings` fixture is undone: while Django swaps settings, another thread finds
    none.
    """
    desks: list[Desk] = []

    def make(**options) -> Desk:
        context = browser.new_context(**options)
        context.set_default_timeout(WAIT_MILLISECONDS)
        desk = Desk(context.new_page(), live_server.url)
        desk.page.on(
            "console",
            lambda m: (
                desk.complaints.append(f"{m.type}: {m.text}")
                if m.type in ("error", "warning")
                and m.text.partition(",")[0] not in REPLACED
                else None
            ),
        )
        desk.page.on("request", desk.begin)
        desk.page.on("requestfinished", desk.end)
        desk.page.on("requestfailed", desk.end)
        desk.page.on("pageerror", lambda error: desk.complaints.append(str(error)))
        desks.append(desk)
        return desk

    yield make
    for desk in desks:
        desk.close()
    assert [desk.complaints for desk in desks] == [[] for _ in desks]


def choose_by_typing(field: Locator, begins: str) -> None:
    """Choose an option by typing how it begins; retry if that fails on a busy machine.

    After a pause of a second, a browser takes the next letter as the first of a new
    word.
    """
    field.focus()
    for _ in range(20):
        field.page.keyboard.type(begins)
        chosen: str = field.evaluate("each => each.selectedOptions[0].text")
        if chosen.strip().lower().startswith(begins.lower()):
            return
        field.page.wait_for_timeout(1_500)
    pytest.fail(f"{begins!r} can't be chosen by typing it")


@pytest.fixture
def desk(make_desk):
    return make_desk()


def make_signed_up(role: Role, username: str) -> User:
    user = make_user(role, username=username)
    user.is_staff = role is not Role.AGENT
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def knowledge(transactional_db) -> None:
    """Create a few entries of a document, and an agent who asks about them."""
    ensure_default_policy(make_knowledge_base())
    prices = make_document("Price list", source="edition 4")
    for text in (
        "The Tarn Gold card costs 72 euros a year.",
        "The Tarn Silver card costs 24 euros a year.",
        "Cash withdrawals abroad cost 3 percent of the amount.",
    ):
        make_entry(text, document=prices)
    make_entry(
        "Block it at once in the app under Cards, Block.",
        question="How do I block a lost card?",
        document=prices,
    )
    make_signed_up(Role.AGENT, "agent")


def work(*kinds: str) -> None:
    """Run the unfinished jobs of these kinds, or all, as a worker would."""
    jobs = Job.objects.filter(kind__in=kinds) if kinds else Job.objects.all()
    for job in jobs.unfinished().order_by("created_at"):
        run_job(job.pk, HANDLERS)
    assert not jobs.exclude(state=Job.State.SUCCEEDED).exists()


@pytest.fixture
def curator(desk: Desk, knowledge: None) -> Desk:
    make_signed_up(Role.CURATOR, "carla")
    desk.let_in("carla")
    return desk


OURS_IN_ADMIN = ".cal"
# Return only the violations, a small part of axe's result.
AXE_RUN = """async context => (
    await axe.run(context ?? document, {resultTypes: ["violations"]})
).violations"""


def violations(
    page: Page,
    context: str | Mapping[str, list[str]] | None = None,
    *,
    serious_only: bool = False,
) -> list[str]:
    """Return what axe finds on a page, or in the parts that an axe context selects.

    Waits until the page is loaded: before that, it has no style sheet and the wrong
    colors.
    """
    page.wait_for_load_state()
    if not page.evaluate("'axe' in window"):  # already there from an earlier check
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate(AXE_RUN, context)
    grave = ("serious", "critical")
    return [
        f"{v['id']} ({v['impact']}): {v['nodes'][0]['html'][:200]}"
        for v in found
        if not serious_only or v["impact"] in grave
    ]


Scheme = Literal["light", "dark"]
# Each keeps the width or the scheme of the one before, because a new layout takes time.
LOOKS: Final[tuple[tuple[int, Scheme], ...]] = (
    (1280, "light"),
    (1280, "dark"),
    (390, "dark"),
    (390, "light"),
)


def look(page: Page, width: int, scheme: Scheme) -> None:
    """Switch a loaded page to this width and color scheme."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    # The admin's theme reads the scheme only when a page loads.
    page.evaluate(
        "dark => window.Alpine && document.documentElement.classList.toggle('dark', dark)",
        scheme == "dark",
    )


def violations_in_all_looks(page: Page, context: str | None = None) -> list[str]:
    """Return what axe finds on wide and narrow screens, in light and dark.

    Also reports a page that is wider than the screen. The page is not reloaded in
    between.
    """
    found = []
    for width, scheme in LOOKS:
        look(page, width, scheme)
        shown = page.evaluate("document.documentElement.scrollWidth")
        wide = [f"{shown} pixels wide"] if shown > width else []
        found += [
            f"{width} {scheme}: {each}" for each in violations(page, context) + wide
        ]
    return found
