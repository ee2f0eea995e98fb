"""Whatever stands in an address or a form of the admin, the answer is no server error."""

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client
from django.urls import get_resolver, reverse

from jobs.services import enqueue
from probes.services import register
from qa.models import Retraining, Vote
from qa.policies.services import active_policy
from tests.nescio.routes import filled, routes
from tests.nescio.test_leak_matrix import make_secret
from tests.probes.probe_files import activation_files
from tests.qa.answer_rows import make_answer
from tests.qa.reviews.review_rows import make_review

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
# Text that looks like a number somewhere, and what no column holds.
JUNK = ["nonsense", "-1", "²", "9" * 30, "9" * 5_000, "\0", "_00"]
_LOGOUT = "admin/logout/"
_PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")
_BY_CONVERTER = {
    "int": ["0", "9" * 18, "9" * 30, "9" * 5_000],
    "uuid": ["00000000-0000-4000-8000-000000000000"],
    "slug": ["nonsense"],
}


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def addresses() -> set[str]:
    """Return every address of the admin, with each junk that its ids may be."""
    found = set()
    for route, _ in routes(get_resolver().url_patterns):
        if not route.startswith("admin/") or "(?P" in route or route == _LOGOUT:
            continue
        for number in range(len(JUNK)):
            given = {}
            for kind, name in _PARAMETER.findall(route):
                values = _BY_CONVERTER.get(kind, JUNK)
                given[name] = quote(values[number % len(values)])
            found.add(filled(route, given))
    return found


class Walk:
    """Requests as a superuser; keeps which of them broke the server."""

    def __init__(self) -> None:
        self.client = Client(raise_request_exception=False)
        self.client.force_login(User.objects.create_superuser("root"))
        self.count = 0
        self.broken: set[tuple[str, str]] = set()

    def get(self, address: str, query: Mapping[str, str] | None = None) -> Any:
        return self._note(self.client.get(address, query), str(query))

    def post(self, address: str, data: Mapping[str, object]) -> None:
        self._note(self.client.post(address, data), str(data))

    def hold(self) -> None:
        assert self.client.get("/admin/").status_code == 200  # signed in to the end
        assert self.count > 200
        assert not self.broken, "\n".join(sorted(map(" ".join, self.broken)))

    def _note(self, response: Any, sent: str) -> Any:
        self.count += 1
        request = response.request
        if response.status_code >= 500:
            where = f"{request['REQUEST_METHOD']} {request['PATH_INFO'][:100]}"
            self.broken.add((where, sent[:100]))
        return response


@pytest.fixture
def walk() -> Walk:
    return Walk()


def make_rows(user: User) -> None:
    """Make a row for most pages."""
    make_secret()
    make_review()
    answer = make_answer(user)
    active_policy(answer.knowledge_base)
    Vote.objects.create(answer=answer, user=user, is_up=False)
    enqueue("kb.embed", {"model": "x"}, owner=user)
    register(activation_files())
    Retraining.objects.create(kind="early", reviewed=400, state="waiting")


@pytest.fixture
def rows(walk) -> None:
    make_rows(User.objects.get(username="root"))


def test_junk_as_an_id_is_no_server_error(walk, rows):
    for address in sorted(addresses()):
        walk.get(address)
        walk.post(address, {})

    walk.hold()


def test_junk_in_a_form_is_no_server_error(walk, rows):
    for page in pages():
        shown = walk.get(page).context or {}
        form = shown["adminform"].form if "adminform" in shown else shown.get("form")
        names = set(getattr(form, "fields", {})) | {"action", "step", "entry"}
        for junk in ("nonsense", "9" * 5_000, "\0"):
            given = dict.fromkeys(names, junk)
            # A row that there is takes no first values from its address.
            if not page.endswith("/change/"):
                walk.get(page, given)
            walk.post(page, given)

    walk.hold()


def test_junk_in_a_list_is_no_server_error(walk, rows):
    for model, model_admin in admin.site._registry.items():
        page = _address(model, "changelist")
        shown = walk.get(page).context
        names = {"o", "p", "q"}
        for spec in shown["cl"].filter_specs if shown and "cl" in shown else ():
            names.update(spec.expected_parameters())
        for name in names:
            for junk in ("\0", "²"):
                walk.get(page, {name: junk})
        for action in model_admin.get_actions(shown["request"]) if shown else ():
            for junk in ("\0", "nonsense"):
                walk.post(page, {"action": action, "_selected_action": junk})

    walk.hold()


def pages() -> Iterator[str]:
    """Yield every page with a form: of a new row, of a row that there is, of its own."""
    for model in admin.site._registry:
        yield _address(model, "add")
        key = (
            model._default_manager.order_by("-pk").values_list("pk", flat=True).first()
        )
        if key is not None:
            yield _address(model, "change", key)
    for route, _ in routes(get_resolver().url_patterns):
        is_plain = "<" not in route and "(" not in route
        if route.startswith("admin/") and is_plain and route != _LOGOUT:
            yield f"/{route}"


def _address(model: type[Model], page: str, *arguments: object) -> str:
    meta = model._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_{page}", args=arguments)
