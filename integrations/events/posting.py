"""One signed POST to an address that a user entered (Standard Webhooks, v1).

Only public addresses, unless a setting allows others (`accounts.outbound`). Redirects
are not followed, proxies are not used, and a response is limited in time and length.
"""

import base64
import hashlib
import hmac
import http.client
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from accounts.exceptions import ConflictError, NescioError
from accounts.outbound import PrivateAddressError, check_without_lookup, connect, target


class WebhookAddressError(NescioError):
    code = "webhook_address"


class EndpointStateError(ConflictError):
    code = "endpoint_state"


TIMEOUT_SECONDS = 10.0
MAX_RESPONSE_BYTES = 1_000
_SETTING = "NESCIO_WEBHOOK_ALLOW_PRIVATE"


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one attempt; `status` is None if there was no response."""

    status: int | None
    milliseconds: int
    response: str = ""
    error: str = ""

    @property
    def is_accepted(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def signature(secret: bytes, message: Message, timestamp: int) -> str:
    signed = f"{message.id}.{timestamp}.".encode() + message.body
    digest = hmac.new(secret, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def post(url: str, message: Message, secrets: Sequence[bytes]) -> Result:
    """Post `message`, signed with each of `secrets`; failures are in the result."""
    began = time.monotonic()
    try:
        status, response = _exchange(checked_url(url), message, secrets)
    except (
        OSError,
        http.client.HTTPException,
        PrivateAddressError,
        WebhookAddressError,
    ) as error:
        name = type(error).__name__
        return Result(None, _milliseconds(began), error=str(error) or name)
    said = "" if 200 <= status < 300 else _remedy(status)
    return Result(status, _milliseconds(began), response, said)


def checked_url(text: str) -> SplitResult:
    """Return the parts of an address that may be posted to, without looking it up.

    Raises:
        PrivateAddressError: It is localhost or an IP address that is not public.
        WebhookAddressError: It is not an address, or not an allowed one.
    """
    schemes = ("https", "http") if settings.WEBHOOK_ALLOW_PRIVATE else ("https",)
    try:
        url = urlsplit(text)
        host, _port = url.hostname, url.port
    except ValueError as error:
        raise WebhookAddressError(f"{text!r} is not an address: {error}.") from error
    if url.scheme not in schemes or not host:
        raise WebhookAddressError(
            f"The address begins with {url.scheme or 'nothing'!r}; it must begin with "
            f"{' or '.join(f'{each}://' for each in schemes)} and name a host."
        )
    if url.username or url.password:
        raise WebhookAddressError(
            "The address contains a user name or a password; remove it, since the "
            "posts are signed."
        )
    if not settings.WEBHOOK_ALLOW_PRIVATE:
        check_without_lookup(url, setting=_SETTING)
    return url


def _exchange(
    url: SplitResult, message: Message, secrets: Sequence[bytes]
) -> tuple[int, str]:
    timestamp = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "nescio",
        "webhook-id": message.id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(
            signature(secret, message, timestamp) for secret in secrets
        ),
    }
    connection = connect(
        url,
        allow_private=settings.WEBHOOK_ALLOW_PRIVATE,
        setting=_SETTING,
        timeout=TIMEOUT_SECONDS,
    )
    try:
        with connection.in_time():
            connection.request("POST", target(url), message.body, headers)
            response = connection.getresponse()
            text = response.read(MAX_RESPONSE_BYTES).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        if connection.was_cut or isinstance(error, TimeoutError):
            raise _too_late() from error
        raise
    if connection.was_cut:  # the part read so far may look complete
        raise _too_late()
    return response.status, text.replace("\0", "\N{SYMBOL FOR NULL}")


def _too_late() -> TimeoutError:
    return TimeoutError(
        f"No complete response within {TIMEOUT_SECONDS:g} seconds; answer 2xx first and "
        "work afterwards."
    )


def _remedy(status: int) -> str:
    if 300 <= status < 400:
        return (
            f"Answered {status}; redirects are not followed, so name the last address."
        )
    return f"Answered {status}; only 2xx counts as received."


def _milliseconds(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
