"""Changing only what was read: `If-Match` with an entity tag, or `revision` in the body."""

import re

from rest_framework.request import Request
from rest_framework.response import Response

from kb.exceptions import PreconditionFailedError

_TAG = re.compile(r'"(\d{1,9})"', re.ASCII)


def revision_in_header(request: Request) -> int | None:
    """Return the revision that `If-Match` asks for; None without one, or for `*`.

    Raises:
        PreconditionFailedError: The header holds no tag of ours, so nothing matches it.
    """
    header = request.headers.get("If-Match", "").strip()
    if header in {"", "*"}:
        return None
    tag = _TAG.fullmatch(header)
    if tag is None:
        raise PreconditionFailedError(
            f"If-Match {header[:60]!r} is no entity tag of an entry; send the ETag that "
            "reading it gave, quotes included."
        )
    return int(tag[1])


def set_entity_tag(response: Response, revision: int) -> Response:
    """Give a response the entity tag of a revision."""
    response["ETag"] = f'"{revision}"'
    return response
