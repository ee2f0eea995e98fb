"""Variables of the environment: what a setting can't be is refused by the variable's name.

django-environ reads a switch that it does not know as off, keeps the spaces after a list's
commas, takes a value that begins with $ for the name of another variable, and does not say
which variable holds no number.
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
    """Reads the variables; an empty number or switch is its default.

    Each method raises `ImproperlyConfigured` where a variable holds what it can't be.
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
        """Read a whole number above 0."""
        number = self.int(var, default=default)
        if number < 1:
            raise ImproperlyConfigured(f"{var} is {number}; it must be 1 or more.")
        return number

    def rate(self, var: str, *, default: str) -> str:
        """Read how many requests count in which time."""
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
        """Read an address with its scheme, without the slash at its end."""
        value: str = self.str(var, default="").strip().rstrip("/") or default
        if not value.startswith(("http://", "https://")):
            raise ImproperlyConfigured(
                f"{var} is {value!r}; it must begin with http:// or https://."
            )
        return value


def database(var: str, address: str) -> dict[str, Any]:
    """Return Django's settings of a database's address."""
    _check_address(var, address, _DATABASES)
    found: dict[str, Any] = environ.Env.db_url_config(address)
    return found


def cache(var: str, address: str) -> dict[str, Any]:
    """Return Django's settings of a cache's address."""
    _check_address(var, address, _CACHES)
    found: dict[str, Any] = environ.Env.cache_url_config(address)
    return found


def mail(var: str, address: str) -> dict[str, Any]:
    """Return Django's settings of a mail server's address, as far as it says any."""
    _check_address(var, address, _MAILS)
    return {k: v for k, v in environ.Env.email_url_config(address).items() if v}


def _check_address(var: str, address: str, schemes: tuple[str, ...]) -> None:
    """Raise for what is no address; its password is not repeated."""
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
            f"{var} is no address that can be read. Write its user name and password with "
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
