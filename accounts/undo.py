"""Taking back what one has just done, by a button in the message that says so.

What was there before lies in the button, signed: for who is offered it, and for an hour.
Whether it can still be taken back, the function of its kind decides.
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
"""How many rows an offer notes at most: what was there lies in the page, and is sent back."""
_SALT: Final = "accounts.undo"
_SAID_REFUSALS: Final = 5

TakeBack = Callable[[Mapping[str, Any], User], Sequence[str] | None]
"""Takes what was there before; refuses with `ChangedSinceError` what changed since.

Of many rows it returns why some of them stay as they are, and refuses where all do.
"""

Names = Callable[[Mapping[str, Any]], Iterable[str]]
"""Names the rows of what was there before, for the audit: by ids, without their words."""

Way = TypeVar("Way", bound=TakeBack)

_WAYS: dict[str, tuple[TakeBack, Names]] = {}


class ChangedSinceError(ConflictError):
    """What is to be taken back was changed by somebody since, or is too long ago."""

    code = "changed_since"


class InvalidUndoError(NescioError):
    code = "invalid_undo"


class Offer(NamedTuple):
    """Something done that can be taken back; `back` is where its message is shown."""

    kind: str
    before: Mapping[str, Any]
    said: str
    back: str
    until: float  # a POSIX time

    def take_back(self, by: User) -> Sequence[str]:
        """Take it back; return why some of it stays as it is."""
        if time.time() > self.until:
            raise ChangedSinceError(
                "That was more than an hour ago and is no longer undone from here; undo it "
                "by hand."
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
    """Let a function take back what is offered as `kind`; the audit names its rows."""

    def register(way: Way) -> Way:
        _WAYS[kind] = way, names
        return way

    return register


def take_back_each(
    rows: Sequence[Mapping[str, Any]], take_back: Callable[[Mapping[str, Any]], object]
) -> Sequence[str]:
    """Take rows back one by one; return why some of them stay as they are.

    Raises:
        ChangedSinceError: All of them do.
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
    """Return the first of many sentences, and how many more there are."""
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
    """Say what was done, with a button that takes it back and leads to `back`.

    Args:
        is_focused: For what is gone from the page: the button has the focus there.
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
    """Return what was offered to `by`.

    Raises:
        InvalidUndoError: It was not, or not to `by`.
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
