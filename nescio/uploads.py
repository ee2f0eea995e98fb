from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadhandler import FileUploadHandler
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from accounts.exceptions import NescioError

_FORM_BYTES = 1024 * 1024  # what the fields beside the file may take


class UploadTooLargeError(NescioError, RequestDataTooBig):
    """A form with a file is larger than any that is accepted."""

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
        """Let the other handlers do it, unless it is too large.

        Raises:
            UploadTooLargeError: It is.
        """
        limit = settings.IMPORT_MAX_MIB * 1024 * 1024
        if content_length > limit + _FORM_BYTES:
            raise UploadTooLargeError(
                f"The upload has {content_length:,} bytes and a file may have {limit:,}; "
                "split it, or raise NESCIO_IMPORT_MAX_MIB."
            )
        return None

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        """Pass the data on."""
        return raw_data

    def file_complete(self, file_size: int) -> None:
        """Leave the file to the other handlers."""
