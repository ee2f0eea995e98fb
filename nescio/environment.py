"""Environment variables: errors for invalid values name the variable.

django-environ reads an unknown switch value as off, keeps the spaces after a list's
commas, takes a value that begins with $ for another variable's name, and does not name
the variable that should hold a number.
"""

import math
import re
from typing import Any, Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import environ
from django.core.exceptions import ImproperlyConfigured

_ON: Final = frozenset({"true", "on", "yes", "y", "ok", "1"})
_OFF: Final = frozenset({"false", "off", "no", "n", "0"})
_RATE: Final = re.compile(r"[0-9]+/[smhd][a-z]*")
_DATABASES: Final = ("postgresql", "postgres", "pgsql")
_MAILS: Final = ("smtp", "smtp+tls", "smtp+ssl", "consolemail")
_CACHES: Final = ("rediscache", "redis", "rediss", "locmemcache")


class Environment(environ.Env):  # type: ignore[misc]  # the library ships no types
    """Reads environment variables; an empty number or switch means the default.

    Each method raises `ImproperlyConfigured` if a variable has an invalid value.
    """

    def get_value(
        self,
        var: str,
        cast: Any = None,
        default: Any = environ.Env.NOTSET,
        parse_default: bool = False,
    ) -> Any:
        value = self.ENVIRON.get(var)
        if value is None:
            return default
        if cast is str:
            return value
        if cast is list:
            return [each.strip() for each in value.split(",") if each.strip()]
        value = value.strip()
        if not value:
            return default
        if cast is bool:
            return _switch(var, value)
        return _number(var, value, cast)

    def at_least_one(self, var: str, *, default: Any) -> Any:
        """Read a positive integer."""
        number = self.int(var, default=default)
        if number < 1:
            raise ImproperlyConfigured(f"{var} is {number}; it must be 1 or more.")
        return number

    def rate(self, var: str, *, default: str) -> str:
        """Read a rate, such as 20/minute."""
        value: str = self.str(var, default=default).strip()
        if not _RATE.fullmatch(value):
            raise ImproperlyConfigured(
                f"{var} is {value!r}; write a number, / and second, minute, hour or day, "
                f"such as {default}."
            )
        return value

    def time_zone(self, var: str, *, default: str) -> str:
        value: str = self.str(var, default=default)
        try:
            ZoneInfo(value)
        except (ValueError, OSError, ZoneInfoNotFoundError) as error:
            raise ImproperlyConfigured(
                f"{var} is {value!r}; it must be a time zone such as Europe/Berlin or UTC."
            ) from error
        return value

    def public_address(self, var: str, *, default: str) -> str:
        """Read a URL with its scheme, without a trailing slash."""
        value: str = self.str(var, default="").strip().rstrip("/") or default
        if not value.startswith(("http://", "https://")):
            raise ImproperlyConfigured(
                f"{var} is {value!r}; it must begin with http:// or https://."
            )
        return value


def database(var: str, address: str) -> dict[str, Any]:
    """Return Django's settings for a database URL."""
    _check_address(var, address, _DATABASES)
    found: dict[str, Any] = environ.Env.db_url_config(address)
    return found


def cache(var: str, address: str) -> dict[str, Any]:
    """Return Django's settings for a cache URL."""
    _check_address(var, address, _CACHES)
    found: dict[str, Any] = environ.Env.cache_url_config(address)
    return found


def mail(var: str, address: str) -> dict[str, Any]:
    """Return Django's settings for a mail server's URL, without those it leaves out."""
    _check_address(var, address, _MAILS)
    return {k: v for k, v in environ.Env.email_url_config(address).items() if v}


def _check_address(var: str, address: str, schemes: tuple[str, ...]) -> None:
    """Raise if `address` is not a valid URL; the error does not repeat its password."""
    scheme, colon, _ = address.partition("://")
    if not colon or scheme not in schemes:
        raise ImproperlyConfigured(
            f"{var} begins with {address.partition(':')[0][:30]!r}; it must begin with "
            f"{' or '.join(f'{each}://' for each in schemes)}."
        )
    try:
        _ = urlsplit(address).port
    except ValueError as error:
        raise ImproperlyConfigured(
            f"{var} is not a valid address. Write its user name and password with "
            "%2F for /, %23 for #, %3F for ?, %40 for @, %3A for : and %25 for %."
        ) from error


def _switch(var: str, value: str) -> bool:
    if value.lower() not in _ON | _OFF:
        raise ImproperlyConfigured(f"{var} is {value!r}; it may be true or false.")
    return value.lower() in _ON


def _number(var: str, value: str, kind: type[int] | type[float]) -> int | float:
    try:
        number = kind(value)
    except ValueError:
        number = -1
    if not (math.isfinite(number) and number >= 0):
        said = "a whole number" if kind is int else "a number"
        raise ImproperlyConfigured(f"{var} is {value!r}; it must be {said}, 0 or more.")
    return number
