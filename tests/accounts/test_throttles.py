import os
import shutil
import subprocess
import sys

import pytest
from django.core.cache import cache

from accounts.throttles import seconds_to_wait
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


def test_looking_does_not_count(rate_of_two):
    for _ in range(5):
        assert seconds_to_wait("user", "a", counted=False) is None

    assert seconds_to_wait("user", "a") is None


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
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://127.0.0.1:1",
        }
    }

    waits = [seconds_to_wait("user", "a") for _ in range(3)]

    assert waits == [None, None, None]
    assert "cache is down" in caplog.text
