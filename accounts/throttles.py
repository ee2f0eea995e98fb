"""Throttling, with a counter in the cache for each scope, caller and time window.

One atomic increment works across processes with a shared cache; in exchange, a burst
around the boundary of two windows may reach twice the rate.
"""

import hashlib
import logging
import math
import sqlite3
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from django.core.cache import caches
from django.http import HttpRequest
from django.utils.connection import ConnectionProxy
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle

if TYPE_CHECKING:  # the library's views import this module by settings
    from django.core.cache.backends.base import BaseCache
    from rest_framework.views import APIView

logger = logging.getLogger(__name__)
cache = cast("BaseCache", ConnectionProxy(caches, "counters"))

COUNTED = "nescio.throttle"  # the key in the request's META for its count
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class Rate:
    limit: int
    seconds: int


def configured_rate(scope: str) -> Rate:
    limit, _, period = str(api_settings.DEFAULT_THROTTLE_RATES[scope]).partition("/")
    return Rate(limit=int(limit), seconds=_SECONDS[period[0]])


@dataclass(frozen=True, slots=True)
class Count:
    """The use of a rate in the current window; `used` includes this request."""

    limit: int
    used: int
    reset_seconds: float

    @property
    def wait(self) -> float | None:
        return None if self.used <= self.limit else self.reset_seconds

    @property
    def headers(self) -> dict[str, str]:
        """Headers of draft-ietf-httpapi-ratelimit-headers-06, which most clients read."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(max(0, self.limit - self.used)),
            "RateLimit-Reset": str(math.ceil(self.reset_seconds)),
        }


def count(scope: str, caller: str) -> Count | None:
    """Count one request of `caller`; while the cache is down, log it and return None.

    Throttling protects the service, so its failure must not take the service down.
    """
    rate = configured_rate(scope)
    now = time.time()
    window = int(now // rate.seconds)
    digest = hashlib.sha256(caller.encode("utf-8", "replace")).hexdigest()[:32]
    key = f"throttle:{scope}:{digest}:{window}"
    try:
        used = _increment(key, rate.seconds)
    except (RedisError, sqlite3.Error, OSError):
        logger.exception("The cache is down; requests are not throttled meanwhile.")
        return None
    return Count(rate.limit, used, (window + 1) * rate.seconds - now)


def seconds_to_wait(scope: str, caller: str) -> float | None:
    """Count one request and return how long `caller` must wait, if at all."""
    counted = count(scope, caller)
    return counted.wait if counted else None


def _increment(key: str, seconds: int) -> int:
    for _ in range(2):
        try:
            return cache.incr(key)
        except ValueError:  # the first in its window, or the counter was evicted
            cache.add(key, 0, timeout=seconds)
    cache.set(key, 1, timeout=seconds)
    return 1


class ScopedThrottle(BaseThrottle):
    """A throttle for each caller and `view.throttle_scope` (by default "user").

    `accounts.middleware.ApiHeadersMiddleware` adds the remaining rate to the response.
    """

    _count: Count | None = None

    def allow_request(self, request: Request, view: "APIView") -> bool:
        scope = getattr(view, "throttle_scope", "user")
        user = request.user
        caller = f"user {user.pk}" if user.is_authenticated else client_address(request)
        self._count = count(scope, caller)
        if self._count:
            request._request.META[COUNTED] = self._count
        return self.wait() is None

    def wait(self) -> float | None:
        return self._count.wait if self._count else None


def client_address(request: Request | HttpRequest) -> str:
    """Return the caller's address; forwarded ones count only from known proxies."""
    return BaseThrottle().get_ident(request) or ""  # type: ignore[arg-type]  # reads headers and META only


def login_wait(request: HttpRequest, username: str) -> float | None:
    """Count a sign-in by name and address, and by address; return the time to wait.

    The first limits guesses at one password, the second guesses at many names. If one
    of them refuses, the response carries its rate instead of that of the caller.
    """
    address = client_address(request)
    counts = (
        count("login", f"{username.lower()} {address}"),
        count("login_address", address),
    )
    refusing = [each for each in counts if each and each.wait is not None]
    if not refusing:
        return None
    longest = max(refusing, key=lambda each: each.reset_seconds)
    request.META[COUNTED] = longest
    return longest.wait
