"""Every page of the admin, for who sees little, holds no mouse, or has a small screen."""

import re
from collections.abc import Iterator, Mapping
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpResponse
from django.urls import get_resolver
from playwright.sync_api import expect

from accounts.roles import Role
from kb.models import Entry
from qa.models import Policy
from tests.browser.conftest import LOOKS, Scheme, look, make_signed_up, violations
from tests.nescio.routes import filled, routes
from tests.nescio.test_admin_junk import make_rows

# The menu, the same on every page, is most of what there is to look at: once in each look.
BESIDE_MENU = {"exclude": ["#nav-sidebar"]}
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
# Files, parts of pages, answers to fields, and what only leads on to another page.
NO_PAGES = re.compile(
    r"logout/|login/|jsi18n|autocomplete|search/|/r/|\.svg|/file$|\(\?|/(save|labelled|traffic)$|object_id>/$"
)
FIRST_ROWS = {"entry_id": Entry, "user_id": User, "id": User, "pk": Policy}

# What is typed into and has no name but the words that vanish then. Django's boxes above the
# two lists of permissions are named by a sign.
UNNAMED = """() => [...document.querySelectorAll("input, select, textarea")]
    .filter(each => !["hidden", "submit", "button"].includes(each.type))
    .filter(each => each.checkVisibility() && !each.closest(".selector-filter"))
    .filter(each => !each.ariaLabel && !each.getAttribute("aria-labelledby"))
    .filter(each => ![...each.labels ?? []].some(label => label.textContent.trim()))
    .map(each => `${each.name || each.id} has no name`)"""

pytestmark = pytest.mark.slow


@pytest.fixture
def boss(transactional_db) -> User:
    user = make_signed_up(Role.ADMIN, "boss")
    user.is_superuser = True
    user.save()
    make_rows(user)
    return user


def first_row(model: type[Model] | None) -> object:
    assert model, "a page whose row is not known"
    return model._default_manager.order_by("-pk").values_list("pk", flat=True).first()


def addresses() -> Iterator[str]:
    """Yield every page of the admin, those of a row with the newest of its rows."""
    models = {
        f"{m._meta.app_label}/{m._meta.model_name}": m for m in admin.site._registry
    }
    for route, _ in routes(get_resolver().url_patterns):
        if not route.startswith("admin/") or NO_PAGES.search(route):
            continue
        own = models.get("/".join(route.split("/")[1:3]))
        given = {"number": 1, "name": "curve"}
        for name in PARAMETER.findall(route):
            if name not in given:
                given[name] = first_row(FIRST_ROWS.get(name, own))
        if None not in given.values():
            yield filled(route, given)


def is_page(response: HttpResponse) -> bool:
    """Tell whether it is one: no refusal and no file."""
    return response.status_code == 200 and "Content-Disposition" not in response.headers


def is_ours(template: str) -> bool:
    """Tell whether a template is the product's own, not the admin's or its theme's."""
    return (Path(settings.BASE_DIR) / "templates" / template).exists()


def views(templates: Mapping[str, str]) -> Iterator[tuple[tuple[int, Scheme], str]]:
    """Yield each look with the pages to look at in it, given the template of each page.

    Pages of one template take turns in all looks, one look each. The first page of a
    template of ours is looked at in the opposite look too.
    """
    turns: dict[str, Iterator[int]] = {}
    for address, template in templates.items():
        is_first = template not in turns
        turn = next(turns.setdefault(template, count(len(turns))))
        yield LOOKS[turn % 4], address
        if is_first and is_ours(template):
            yield LOOKS[(turn + 2) % 4], address


def test_every_page_of_the_admin_is_accessible_on_every_screen(make_desk, boss, client):
    client.force_login(boss)
    opened = {}
    for address in addresses():
        response = client.get(address)
        if is_page(response):
            opened[address] = response.templates[0].name
    page = make_desk(reduced_motion="reduce").log_in("boss")
    origin = page.url.rstrip("/")

    found = {}
    # Look by look: laying a page out again takes about as long as another page does.
    shown_in = groupby(sorted(views(opened)), key=itemgetter(0))
    for (width, scheme), shown in shown_in:
        look(page, width, scheme)
        context = None  # of the first page
        for _, address in shown:
            page.goto(origin + address)
            wide = page.evaluate("document.documentElement.scrollWidth")
            found[f"{address} {width} {scheme}"] = [
                *violations(page, context),
                *page.evaluate(UNNAMED),
                *([f"{wide} pixels wide"] if wide > width else []),
            ]
            context = BESIDE_MENU

    assert len(opened) > 120
    assert found == {key: [] for key in found}


def test_the_admin_is_gone_through_by_keyboard(desk, boss):
    page = desk.log_in("boss", "/admin/kb/entry/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("!!document.activeElement.closest('#content')")

    menu = page.get_by_role("button", name="boss")
    expect(menu).to_have_attribute("aria-expanded", "false")
    for _ in range(80):
        page.keyboard.press("Shift+Tab")
        if menu.evaluate("each => each === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(menu).to_have_attribute("aria-expanded", "true")
    log_out = page.get_by_role("button", name="Log out")
    expect(log_out).to_be_visible()
    page.keyboard.press("Shift+Tab")
    expect(log_out).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Password")).to_be_visible()
