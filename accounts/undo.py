"""Taking back what one has just done, by a button in the message that says so.

What was there before lies in the button, signed: for who is offered it, and for an hour.
Whether it can still be taken back, the function of its kind decides.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from django.contrib import messages
from django.contrib.auth.models import User
from django.core import signing
from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.urls import reverse
from django.utils.html import format_html

from accounts.exceptions import ConflictError, NescioError
from accounts.roles import caller

OFFERED_SECONDS: Final = 3600
_SALT: Final = "accounts.undo"

TakeBack = Callable[[Mapping[str, Any], User], None]
"""Takes what was there before; refuses with `ChangedSinceError` what changed since."""

_WAYS: dict[str, TakeBack] = {}


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

    def take_back(self, by: User) -> None:
        if time.time() > self.until:
            raise ChangedSinceError(
                "That was more than an hour ago and is no longer undone from here; undo it "
                "by hand."
            )
        _WAYS[self.kind](self.before, by)


def undoes(kind: str) -> Callable[[TakeBack], TakeBack]:
    """Let a function take back what is offered as `kind`."""

    def register(way: TakeBack) -> TakeBack:
        _WAYS[kind] = way
        return way

    return register


def offer_undo(
    request: HttpRequest, said: str, *, kind: str, before: Mapping[str, Any], back: str
) -> None:
    """Say what was done, with a button that takes it back and leads to `back`."""
    offer = Offer(kind, before, said, back, time.time() + OFFERED_SECONDS)
    token = signing.dumps([caller(request).pk, *offer], salt=_SALT, compress=True)
    form = (
        '{} <form method="post" action="{}" class="undo">'
        '<input type="hidden" name="csrfmiddlewaretoken" value="{}">'
        '<input type="hidden" name="undo" value="{}">'
        '<button class="underline">Undo</button></form>'
    )
    shown = format_html(form, said, reverse("undo"), get_token(request), token)
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
