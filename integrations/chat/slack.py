"""Slack: its signature, how answers look there, and where they are posted.

https://docs.slack.dev/authentication/verifying-requests-from-slack
https://docs.slack.dev/reference/block-kit/blocks
"""

import hashlib
import hmac
import html
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

import requests
from django.conf import settings

from accounts.exceptions import NescioError
from integrations.chat.asking import Line, lines, text_of, words_of
from jobs.exceptions import RetryableJobError

SIGNED_FOR_SECONDS = 300
_TIMEOUT_SECONDS = 10
_MAX_TEXT = 2_900  # Slack's limit is 3,000
_MENTION = re.compile(r"<[@!][^>]*>")
_LINK = re.compile(r"<([^|>]*)\|?([^>]*)>")
_TRANSIENT: Final = {
    "ratelimited",
    "rate_limited",
    "internal_error",
    "service_unavailable",
}


class SlackError(NescioError):
    """Slack rejects a post or a token, or a response address is not Slack's."""

    code = "slack_refused"


def is_signed(body: bytes, headers: Mapping[str, str], *, now: float) -> bool:
    """Return whether Slack signed this body within the last five minutes."""
    stamp = headers.get("X-Slack-Request-Timestamp", "")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 12):
        return False
    if abs(now - int(stamp)) > SIGNED_FOR_SECONDS:
        return False
    key = settings.SLACK_SIGNING_SECRET.encode()
    signed = f"v0:{stamp}:".encode() + body
    expected = f"v0={hmac.new(key, signed, hashlib.sha256).hexdigest()}"
    given = headers.get("X-Slack-Signature", "")
    return hmac.compare_digest(expected.encode(), given.encode())


def answer_id(event: str) -> UUID:
    """Return the id of the one answer to an event, however often Slack resends it."""
    key = settings.SLACK_SIGNING_SECRET.encode()
    digest = hmac.new(key, event.encode(), hashlib.sha256).digest()
    return UUID(bytes=digest[:16], version=4)


def question_in(text: str) -> str:
    """Return the typed text without mentions and Slack's link markup."""
    plain = _LINK.sub(lambda found: found[2] or found[1], _MENTION.sub(" ", text))
    return html.unescape(plain).strip()


def checked_response_url(url: str) -> str:
    """Return a response address after checking that it is Slack's own.

    Raises:
        SlackError: It is not.
    """
    parts = urlsplit(url)
    if f"{parts.scheme}://{parts.netloc}" != settings.SLACK_RESPONSE_ORIGIN:
        raise SlackError(
            f"response_url is {url[:100]!r}; it must begin with "
            f"{settings.SLACK_RESPONSE_ORIGIN}/."
        )
    return url


def answer_message(shown: dict[str, Any], *, user: str) -> dict[str, Any]:
    """Return an answer as a message with vote buttons that only `user` may press."""
    return {
        "text": _escaped(text_of(shown)),  # for the notification
        "blocks": [*map(_block, lines(shown)), _buttons(shown, user)],
    }


def _block(line: Line) -> dict[str, Any]:
    """Return a block of literal text: Slack reads no marks, links or mentions."""
    text = line.text if len(line.text) <= _MAX_TEXT else f"{line.text[:_MAX_TEXT]}…"
    said = {"type": "plain_text", "text": text, "emoji": False}
    if line.is_small or line.is_head:
        return {"type": "context", "elements": [said]}
    return {"type": "section", "text": said}


def _buttons(shown: dict[str, Any], user: str) -> dict[str, Any]:
    labels = words_of(shown).labels
    return {
        "type": "actions",
        "elements": [
            {
                "type": "button",
                "action_id": f"vote_{rating}",
                "value": f"{shown['id']} {user}",
                "text": {"type": "plain_text", "text": labels[name]},
            }
            for rating, name in (("up", "helpful"), ("down", "not_helpful"))
        ],
    }


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)[:_MAX_TEXT]


# What is sent to Slack.


def workspace() -> str:
    """Return the name of the workspace that the app's token belongs to.

    Raises:
        RetryableJobError: Slack can't be reached now.
        SlackError: Slack refused the token.
    """
    said = _call("auth.test", {})
    if not said.get("ok"):
        raise SlackError(f"Slack refused NESCIO_SLACK_BOT_TOKEN: {said.get('error')}.")
    return str(said.get("team"))


def mail_of(user: str) -> str:
    """Return the mail address of a member of the app's own workspace, else "".

    In a channel shared with another organisation, that organisation's administrators
    set its members' addresses, and `is_stranger` is false for them.
    """
    own = _call("auth.test", {}).get("team_id")
    said = _call("users.info", {"user": user}, as_form=True)
    found: dict[str, Any] = said.get("user") or {}
    is_member = (
        own
        and found.get("team_id") == own
        and not any(
            found.get(each)
            for each in ("deleted", "is_bot", "is_stranger", "is_restricted")
        )
    )
    is_confirmed = found.get("is_email_confirmed", True)
    mail: str = (found.get("profile") or {}).get("email") or ""
    return mail if is_member and is_confirmed else ""


def post(place: Mapping[str, str], message: dict[str, Any]) -> None:
    """Post a message to a response address, or into a channel.

    Raises:
        RetryableJobError: Slack can't take it now.
        SlackError: Slack refused it.
    """
    if url := place.get("response_url"):
        own = {"response_type": "ephemeral", "replace_original": False}
        _send(checked_response_url(url), json={**own, **message})
        return
    where = {name: place[name] for name in ("channel", "thread_ts") if name in place}
    said = _call("chat.postMessage", {**where, **message, "unfurl_links": False})
    if not said.get("ok"):
        raise SlackError(f"Slack refused the message: {said.get('error')}.")


def _call(
    method: str, body: dict[str, Any], *, as_form: bool = False
) -> dict[str, Any]:
    response = _send(
        f"{settings.SLACK_API_URL}/{method}",
        headers={"Authorization": f"Bearer {settings.SLACK_BOT_TOKEN}"},
        **{"data" if as_form else "json": body},
    )
    try:
        said: dict[str, Any] = response.json()
    except requests.JSONDecodeError as error:
        raise RetryableJobError(f"Slack's {method} returned no JSON.") from error
    if said.get("error") in _TRANSIENT:
        raise RetryableJobError(f"Slack's {method} answered {said['error']}.")
    return said


def _send(url: str, **options: Any) -> requests.Response:
    try:
        response = requests.post(
            url, timeout=_TIMEOUT_SECONDS, allow_redirects=False, **options
        )
    except requests.RequestException as error:
        raise RetryableJobError(f"Slack cannot be reached: {error}") from error
    if response.status_code == 429 or response.status_code >= 500:
        raise RetryableJobError(f"Slack answered {response.status_code}.")
    if response.status_code != 200:
        raise SlackError(
            f"Slack answered {response.status_code}: {response.text[:200]}"
        )
    return response
