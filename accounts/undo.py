"""Undo of an action that was just done, by a button in its success message.

The button contains the previous values, signed, for the user who did it and for an
hour. The function registered for the kind decides whether the action can still be
undone.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from django.contrib import messages
from django.contrib.auth.models import User
from django.core import signing
from django.db import connection, transaction
from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.exceptions import ConflictError, NescioError
from accounts.roles import caller

OFFERED_SECONDS: Final = 3600
MAX_ROWS: Final = 500
"""The maximum number of rows in an offer; the page holds and returns their values."""
_SALT: Final = "accounts.undo"
_SAID_REFUSALS: Final = 5

TakeBack = Callable[[Mapping[str, Any], User], Sequence[str] | None]
"""Restores the previous values; raises `ChangedSinceError` if they changed since.

For several rows, it returns the reasons why some of them stay as they are, and raises
if all do.
"""

Names = Callable[[Mapping[str, Any]], Iterable[str]]
"""Names the rows in the previous values for the audit: by ids, without their text."""

Way = TypeVar("Way", bound=TakeBack)

_WAYS: dict[str, tuple[TakeBack, Names]] = {}


class ChangedSinceError(ConflictError):
    """The row was changed since the action, or the action was too long ago."""

    code = "changed_since"


class InvalidUndoError(NescioError):
    code = "invalid_undo"


class Offer(NamedTuple):
    """An action that can be undone; `back` is the URL where its message is shown."""

    kind: str
    before: Mapping[str, Any]
    said: str
    back: str
    until: float  # a POSIX time

    def take_back(self, by: User) -> Sequence[str]:
        """Undo the action; return the reasons why some rows stay as they are."""
        if time.time() > self.until:
            raise ChangedSinceError(
                "That was more than an hour ago and can no longer be undone here; undo "
                "it by hand."
            )
        way, names = _WAYS[self.kind]
        with transaction.atomic(), connection.cursor() as cursor:
            stays = way(self.before, by) or ()
            cursor.execute(
                "SELECT accounts_audit_undone(%s, %s)",
                [", ".join(names(self.before)), len(stays)],
            )
        return stays


def undoes(kind: str, names: Names) -> Callable[[Way], Way]:
    """Register a function that undoes actions of a `kind`; `names` is for the audit."""

    def register(way: Way) -> Way:
        _WAYS[kind] = way, names
        return way

    return register


def take_back_each(
    rows: Sequence[Mapping[str, Any]], take_back: Callable[[Mapping[str, Any]], object]
) -> Sequence[str]:
    """Undo the changes to rows one by one; return why some of them stay as they are.

    Raises:
        ChangedSinceError: All of them stay as they are.
    """
    stays = []
    for row in rows:
        try:
            take_back(row)
        except NescioError as refused:
            stays.append(str(refused))
    if stays and len(stays) == len(rows):
        raise ChangedSinceError(some_of(stays))
    return stays


def some_of(said: Sequence[str]) -> str:
    """Return the first few of many sentences, and the number of others."""
    rest = len(said) - _SAID_REFUSALS
    more = [f"And {rest} more."] if rest > 0 else []
    return " ".join([*said[:_SAID_REFUSALS], *more])


def offer_undo(
    request: HttpRequest,
    said: str,
    *,
    kind: str,
    before: Mapping[str, Any],
    back: str,
    is_focused: bool = False,
) -> None:
    """Show a success message with a button that undoes the action and leads to `back`.

    Args:
        is_focused: Whether the button gets the focus, as its row is gone from the page.
    """
    offer = Offer(kind, before, said, back, time.time() + OFFERED_SECONDS)
    token = signing.dumps([caller(request).pk, *offer], salt=_SALT, compress=True)
    form = (
        '{} <form method="post" action="{}" class="undo">'
        '<input type="hidden" name="csrfmiddlewaretoken" value="{}">'
        '<input type="hidden" name="undo" value="{}">'
        '<button class="underline"{}>Undo</button></form>'
    )
    focus = SafeString(" autofocus" if is_focused else "")
    shown = format_html(form, said, reverse("undo"), get_token(request), token, focus)
    messages.success(request, shown)


def read_offer(token: str, by: User) -> Offer:
    """Return the offer in a signed token.

    Raises:
        InvalidUndoError: The token is not valid, or was issued to another user.
    """
    try:
        owner, *offer = signing.loads(token, salt=_SALT)
    except signing.BadSignature:
        owner, offer = None, []
    if owner != by.pk:
        raise InvalidUndoError(
            "This undo was not offered to you; go back to the page, and undo it by hand."
        )
    return Offer(*offer)
