"""`Idempotency-Key`: a POST that is repeated is executed once and gets the same reply.

Follows draft-ietf-httpapi-idempotency-key-header. A database row claims the key before
the request runs and is kept for a day, so it works across processes without holding a
lock or a transaction meanwhile.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.exceptions import ConflictError, NescioError
from accounts.models import ApiToken, KeptReply

HEADER: Final = "Idempotency-Key"
# Printable ASCII; a header's value neither begins nor ends with a space.
KEY_PATTERN: Final = "[!-~]([ -~]{0,253}[!-~])?"
KEEP: Final = timedelta(hours=24)
_ABANDONED: Final = timedelta(minutes=10)  # a request that runs longer was killed
_MAX_REPLY_LENGTH: Final = 256 * 1024  # characters of a reply

Handler = Callable[..., HttpResponseBase]


class InvalidKeyError(NescioError):
    """The key is malformed, or this request can't have one."""

    code = "invalid_idempotency_key"


class KeyReusedError(NescioError):
    code = "idempotency_key_reused"
    status = 422


class KeyInUseError(ConflictError):
    """The first request with this key is still in progress."""

    code = "idempotency_key_in_use"
    retry_seconds = 1


class ReplyTooLargeError(ConflictError):
    code = "reply_not_kept"


def done_once(view: APIView, post: Handler) -> Handler:
    """Wrap a view's `post` so that it runs once for each key of a caller."""

    def handler(request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
        row = _claim(request)
        if row.status is not None:
            return _replay(row)
        try:
            try:
                response = post(request, *args, **kwargs)
            except Exception as error:  # noqa: BLE001  # raised again without a reply
                response = view.handle_exception(error)
        except BaseException:
            row.delete()
            raise
        _keep(row, response)
        return response

    return handler


def prune_replies() -> int:
    old = KeptReply.objects.filter(created_at__lt=timezone.now() - KEEP)
    return old.delete()[0]


def _claim(request: Request) -> KeptReply:
    """Return the row for the request's key: a new one, or the earlier request's."""
    if not request.user.is_authenticated:
        raise InvalidKeyError(
            f"{HEADER} needs a signed-in caller; leave it out of this request."
        )
    key = request.headers[HEADER]
    if not re.fullmatch(KEY_PATTERN, key):
        raise InvalidKeyError(
            f"{HEADER} has 1 to 255 printable ASCII characters, such as a UUID."
        )
    _refuse_stream(request)
    digest = _digest(request)
    token = request.auth if isinstance(request.auth, ApiToken) else None
    values = {"user_id": request.user.pk, "token": token, "key": key}
    of_caller = partial(KeptReply.objects.get_or_create, {"digest": digest}, **values)
    row, is_new = of_caller()
    if not is_new and _is_over(row):
        row.delete()
        row, is_new = of_caller()
    if is_new:
        return row
    if row.digest != digest:
        raise KeyReusedError(
            f"{HEADER} {key[:60]!r} was used for another request, with another address "
            "or body; use a new key for each request, the same only to send it again."
        )
    if row.status is None:
        raise KeyInUseError(
            f"The request with the {HEADER} {key[:60]!r} is still in progress; send it "
            "again in a moment."
        )
    return row


def _is_over(row: KeptReply) -> bool:
    age = timezone.now() - row.created_at
    return age > (_ABANDONED if row.status is None else KEEP)


def _refuse_stream(request: Request) -> None:
    accepted = request.accepted_renderer.media_type
    body = request.data
    asks = isinstance(body, Mapping) and body.get("stream") is True
    if asks or accepted == "text/event-stream":
        raise InvalidKeyError(
            f"A stream of events is not kept, so it can't be sent again: leave {HEADER} "
            "out, or ask for application/json."
        )


def _digest(request: Request) -> str:
    """Return a hash that identifies a request, of its method, URL and parsed body."""
    said = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    body = request.data
    if isinstance(body, QueryDict):
        body = [(name, [*map(_of_form, body.getlist(name))]) for name in sorted(body)]
    said.update(json.dumps(body, sort_keys=True).encode())
    return said.hexdigest()


def _of_form(value: object) -> object:
    if not isinstance(value, UploadedFile):
        return value
    digest = hashlib.sha256()
    for chunk in value.chunks():
        digest.update(chunk)
    value.seek(0)
    return {"file": value.name, "sha256": digest.hexdigest()}


def _keep(row: KeptReply, response: HttpResponseBase) -> None:
    """Keep a reply, unless repeating the request may soon have another result."""
    passing = response.status_code >= 500 or response.status_code == 429
    if passing or not isinstance(response, Response):
        row.delete()
        return
    body = JSONRenderer().render(response.data).decode() or "null"
    headers = {
        name: value for name, value in response.items() if name != "Content-Type"
    }
    # Not by `row.save()`: if another request took over the key, this row is gone.
    KeptReply.objects.filter(pk=row.pk).update(
        status=response.status_code,
        headers=headers,
        body=body if len(body) <= _MAX_REPLY_LENGTH else "",
    )


def _replay(row: KeptReply) -> Response:
    if not row.body:
        raise ReplyTooLargeError(
            f"The request with the {HEADER} {row.key[:60]!r} was done, with status "
            f"{row.status}; its reply was too large to be kept. Look up its result."
        )
    response = Response(json.loads(row.body), row.status, headers=row.headers)
    response["Idempotency-Replayed"] = "true"
    return response
