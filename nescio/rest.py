"""Parsers for JSON bodies and uploads with limits, and other defaults of REST views."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import IO, TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadhandler import FileUploadHandler
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict
from rest_framework import status
from rest_framework.exceptions import APIException, NotAcceptable, ParseError
from rest_framework.metadata import BaseMetadata
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from accounts.exceptions import NescioError

MAX_DEPTH = 50

# Characters that PostgreSQL can't store can only come from escapes: a raw NUL is not
# valid JSON, and a raw surrogate is not valid UTF-8.
_SUSPECT_ESCAPE = re.compile(r"\\u(0000|d[89a-f])", re.IGNORECASE)


class BodyTooLargeError(APIException):
    """The request's body is larger than the limit."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"

    def __init__(self) -> None:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        super().__init__(f"The body is larger than {limit} bytes; send less at a time.")


class BoundedJSONParser(JSONParser):
    """UTF-8 JSON of at most DATA_UPLOAD_MAX_MEMORY_SIZE bytes and MAX_DEPTH levels."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLargeError
        try:
            text = body.decode("utf-8")
            parsed = json.loads(text, parse_constant=_refuse_constant)
        except RecursionError as error:
            raise _too_deep() from error
        except ValueError as error:
            raise ParseError(f"The body is not valid JSON: {error}.") from error
        _check_depth(parsed)
        if _SUSPECT_ESCAPE.search(text):
            _check_strings(parsed)
        return parsed


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _too_deep() -> ParseError:
    return ParseError(f"The body is nested more than {MAX_DEPTH} levels deep.")


def _check_depth(parsed: object) -> None:
    level = [parsed]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for each in level
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise _too_deep()


def _check_strings(parsed: object) -> None:
    if isinstance(parsed, str):
        if "\0" in parsed or any("\ud800" <= each <= "\udfff" for each in parsed):
            raise ParseError(
                f"The text {parsed[:60]!a} contains U+0000 or half a surrogate pair; "
                "remove it."
            )
    elif isinstance(parsed, dict):
        for name, value in parsed.items():
            _check_strings(name)
            _check_strings(value)
    elif isinstance(parsed, list):
        for value in parsed:
            _check_strings(value)


_FORM_BYTES = 1024 * 1024  # allowance for the form's other fields


class UploadTooLargeError(NescioError, RequestDataTooBig):
    """An uploaded form with a file is larger than the limit."""

    code = "too_large"
    status = 413


class BoundedUploadHandler(FileUploadHandler):
    """Refuses an upload that is too large before any of it is read."""

    def handle_raw_input(
        self,
        input_data: IO[bytes],
        META: dict[str, str],  # noqa: N803  # Django's
        content_length: int,
        boundary: str,
        encoding: str | None = None,
    ) -> tuple[QueryDict, MultiValueDict[str, Any]] | None:
        limit = settings.IMPORT_MAX_MIB * 1024 * 1024
        if content_length > limit + _FORM_BYTES:
            raise UploadTooLargeError(
                f"The upload has {content_length:,} bytes and a file may have {limit:,}; "
                "split it, or raise NESCIO_IMPORT_MAX_MIB."
            )
        return None

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        return raw_data

    def file_complete(self, file_size: int) -> None:
        """Leave the file to the other handlers."""


if TYPE_CHECKING:  # the library's views import this module by settings
    from rest_framework.views import APIView


class MethodsOnly(BaseMetadata):
    """The response to OPTIONS: only the methods; the library's own would query rows."""

    def determine_metadata(
        self, request: Request, view: "APIView"
    ) -> dict[str, list[str]]:
        return {"allow": view.allowed_methods}


class KnownFormats(DefaultContentNegotiation):
    """Chooses a format by `Accept` or `?format=`; an unknown one is a 406, not 404."""

    def filter_renderers(
        self,
        renderers: Iterable[BaseRenderer],
        format: str,  # noqa: A002  # the library's
    ) -> list[BaseRenderer]:
        known = list(renderers)
        if found := [each for each in known if each.format == format]:
            return found
        listed = ", ".join(sorted({str(each.format) for each in known}))
        raise NotAcceptable(f"There is no format {format[:80]!a}; there are: {listed}.")
