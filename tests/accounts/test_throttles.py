import os
import shutil
import subprocess
import sys
import time
import uuid

import pytest
from django.conf import settings
from rest_framework.test import APIClient

from accounts.throttles import cache, configured_rate, seconds_to_wait
from integrations.models import Widget
from tests.clients import rest_client
from tests.factories import make_knowledge_base, make_user
from tests.workers.processes import Redis

pytestmark = pytest.mark.slow


@pytest.fixture
def rate_of_two(settings):
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK,
        "DEFAULT_THROTTLE_RATES": {"user": "2/day", "ask": "2/day"},
    }


def test_the_request_beyond_the_rate_waits_until_the_next_window(rate_of_two):
    waits = [seconds_to_wait("user", "a") for _ in range(3)]

    assert waits[:2] == [None, None]
    assert waits[2] is not None
    assert 0 < waits[2] <= 86_400


def test_callers_and_scopes_are_counted_apart(rate_of_two):
    for _ in range(3):
        seconds_to_wait("user", "a")

    assert seconds_to_wait("user", "b") is None
    assert seconds_to_wait("ask", "a") is None


@pytest.mark.parametrize("scope", settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"])
def test_every_rate_lets_its_limit_through_and_no_more(scope, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1_800_000_030.0)
    limit = configured_rate(scope).limit

    waits = [seconds_to_wait(scope, "a") for _ in range(limit + 1)]

    assert waits[:limit] == [None] * limit
    assert waits[limit] == 30.0


REQUESTS = {
    "user": lambda client: client.get("/api/v1/answers"),
    "ask": lambda client: client.post("/api/v1/search", {"question": "?"}),
    "login": lambda client: sign_in(client, "agnes"),
    "login_address": lambda client: sign_in(client, f"agnes {uuid.uuid4()}"),
    "widget": lambda client: client.post("/widget/page/token"),
    "widget_address": lambda client: client.post("/widget/page/token"),
}


def sign_in(client, name):
    client.logout()
    given = {"username": name, "password": "wrong"}
    return client.post("/api/v1/tokens", given, format="json")


@pytest.mark.parametrize("scope", settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"])
def test_every_rate_is_held_over_rest_to_its_limit(scope, db, settings, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1_800_000_030.0)
    rates = settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK,
        "DEFAULT_THROTTLE_RATES": {**rates, scope: "3/minute"},
    }
    client = APIClient()
    client.force_login(make_user())
    Widget.objects.create(
        name="page",
        knowledge_base=make_knowledge_base(),
        account=make_user(username="page"),
        origins=[],
    )

    responses = [REQUESTS[scope](client) for _ in range(4)]

    assert [each.status_code == 429 for each in responses] == [False] * 3 + [True]
    assert responses[3]["Retry-After"] == "30"


def test_answers_say_what_is_left_of_the_rate(db, rate_of_two):
    client = rest_client(make_user())

    said = [
        {
            name: int(response[f"RateLimit-{name}"])
            for name in ("Limit", "Remaining", "Reset")
        }
        for response in (client.get("/api/v1/answers") for _ in range(3))
    ]

    assert [each["Remaining"] for each in said] == [1, 0, 0]
    assert {each["Limit"] for each in said} == {2}
    assert all(0 < each["Reset"] <= 86_400 for each in said)


def test_an_evicted_counter_starts_again(rate_of_two, monkeypatch):
    monkeypatch.setattr(cache, "add", lambda *_, **__: False)

    assert seconds_to_wait("user", "a") is None
    assert seconds_to_wait("user", "a") is None
    assert seconds_to_wait("user", "a") is not None


@pytest.mark.redis
@pytest.mark.skipif(
    shutil.which("redis-server") is None, reason="redis-server is not installed"
)
def test_processes_on_one_redis_count_together(tmp_path):
    redis = Redis(tmp_path)
    code = (
        "import django; django.setup();"
        "from accounts.throttles import seconds_to_wait;"
        "print([seconds_to_wait('ask', 'a') is None for _ in range(2)])"
    )
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "nescio.settings",
        "CACHE_URL": redis.url,
        "NESCIO_THROTTLE_ASK": "3/day",
    }

    try:
        told = [
            subprocess.run(
                [sys.executable, "-c", code],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            for _ in range(2)
        ]
    finally:
        redis.stop()

    assert told == ["[True, True]", "[True, False]"]


def test_a_cache_that_is_down_throttles_nothing(settings, rate_of_two, caplog):
    settings.CACHES = {
        "default": settings.CACHES["default"],
        "counters": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://127.0.0.1:1",
        },
    }

    waits = [seconds_to_wait("user", "a") for _ in range(3)]

    assert waits == [None, None, None]
    assert "cache is down" in caplog.text
