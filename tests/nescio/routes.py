"""Every address of the URL configuration, and addresses of given rows."""

import re
from collections.abc import Iterator, Mapping

from django.urls import URLPattern, URLResolver

_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")


def routes(
    patterns: list[URLPattern | URLResolver], prefix: str = ""
) -> Iterator[tuple[str, URLPattern]]:
    """Yield every address with its pattern, nested ones too."""
    for pattern in patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, address)
        else:
            yield address, pattern


def filled(route: str, parameters: Mapping[str, object]) -> str:
    """Return the address of a route with these parameters.

    Raises:
        KeyError: The route has a parameter that is not among them.
    """
    return "/" + _PARAMETER.sub(lambda found: str(parameters[found[1]]), route)
