"""Tokens of a page's script: short-lived, for one widget and origin, not stored.

A token is signed with its widget's key, so that a new secret invalidates all of them.
Only the browser vouches for a page's origin: checking it keeps other sites from
embedding a widget, but does not keep programs out.
"""

import logging
import re
from urllib.parse import urlsplit

import jwt
from django.contrib.auth.models import User
from django.core import signing
from rest_framework.exceptions import AuthenticationFailed

from accounts.authentication import find_user
from accounts.delegation import acted_for, limit_to_agent
from accounts.exceptions import ForbiddenError, NescioError, NotFoundError
from accounts.outbound import PORTS
from integrations.widget.models import Widget

logger = logging.getLogger(__name__)

TOKEN_SECONDS = 600
MAX_CLAIM_SECONDS = 600
_SALT = "nescio.widget"
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]*:[0-9a-f:.]*")  # the second is IPv6


class WidgetNotFoundError(NotFoundError):
    code = "widget_not_found"


class OriginError(ForbiddenError):
    """The widget may not be embedded in pages of this origin."""

    code = "origin_not_allowed"


class ClaimError(ForbiddenError):
    """The page's claim about its reader is not valid."""

    code = "invalid_claim"


class OriginFormError(NescioError):
    code = "invalid_origin"


def as_origin(text: str) -> str:
    """Return an origin in the form that browsers send.

    Raises:
        OriginFormError: It is not an origin.
    """
    try:
        url = urlsplit(text.strip().lower())
        host, port = url.hostname or "", url.port
    except ValueError:
        url, host, port = urlsplit(""), "", None
    is_plain = url.path in ("", "/") and not (url.query or url.fragment)
    is_host = _HOST.fullmatch(host) and "@" not in url.netloc
    if url.scheme not in PORTS or not is_plain or not is_host:
        raise OriginFormError(
            f"{text[:100]!r} is not an origin; write scheme and host, such as "
            "https://intranet.example.org, each host by itself (there are no "
            "wildcards), and letters other than a to z as xn--."
        )
    shown = f"[{host}]" if ":" in host else host
    is_usual = port is None or port == PORTS[url.scheme]
    return f"{url.scheme}://{shown}" + ("" if is_usual else f":{port}")


def check_origin(widget: Widget | None, origin: str) -> Widget:
    """Return the widget if pages of this origin may embed it."""
    if widget is None:
        raise WidgetNotFoundError(
            "There is no such widget, or it is off; its name is in the admin, at Widgets."
        )
    if origin not in widget.origins:
        raise OriginError(
            f"Pages of {origin[:100] or 'no origin'!r} may not embed this widget; an admin "
            "can add the origin to it."
        )
    return widget


def issue_token(widget: Widget, origin: str, claim: str) -> str:
    """Return a token for a page of this origin, and its reader if a claim names one."""
    reader = _claimed_name(widget, claim) if claim else ""
    _asker(widget, reader)  # fails now rather than later
    logger.info("Widget %s: a token for %s, reader %r", widget, origin, reader)
    return signing.dumps(
        {"origin": origin, "reader": reader}, key=widget.token_key, salt=_SALT
    )


def user_of_token(widget: Widget, origin: str, token: str) -> User:
    """Return who asks with a token: the named reader, or the widget's account.

    Raises:
        AuthenticationFailed: It is not for this widget and origin, or has expired.
    """
    try:
        held = signing.loads(
            token, key=widget.token_key, salt=_SALT, max_age=TOKEN_SECONDS
        )
    except signing.BadSignature as error:  # an expired one, too
        raise AuthenticationFailed(
            "This widget's token is not valid or has expired; fetch another."
        ) from error
    if held["origin"] != origin:
        raise AuthenticationFailed("This token is for another origin; fetch one.")
    return _asker(widget, held["reader"])


def _asker(widget: Widget, reader: str) -> User:
    account = find_user(pk=widget.account_id, is_active=True)
    if account is None or account.is_superuser:
        raise ForbiddenError(
            f"The account of the widget {widget} is a superuser's or not active; name "
            "another in the admin."
        )
    if reader:
        if not widget.names_users:
            raise ClaimError(f"The widget {widget} accepts no claims; leave it out.")
        return acted_for(reader, service=account, named_by="The claim's sub")
    limit_to_agent(account)
    return account


def _claimed_name(widget: Widget, claim: str) -> str:
    try:
        said = jwt.decode(
            claim,
            widget.secret,
            algorithms=["HS256"],
            audience=widget.name,
            options={"require": ["sub", "aud", "iat", "exp"]},
        )
    except jwt.InvalidTokenError as error:
        raise ClaimError(
            f"The claim is not valid: {error}. Sign sub, aud (the widget's name), iat "
            "and exp with the widget's secret by HS256."
        ) from error
    lasts = int(said["exp"]) - int(said["iat"])  # the library accepts digits in quotes
    if lasts > MAX_CLAIM_SECONDS:
        raise ClaimError(
            f"The claim lasts {lasts} s; sign one for {MAX_CLAIM_SECONDS} s at most."
        )
    return str(said["sub"])
