"""Bytes into text: UTF-8 with or without a mark, UTF-16 with one, else what is detected."""

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from charset_normalizer import from_bytes

from .exceptions import ImportFileError

_SAMPLE_BYTES = 256 * 1024


@contextmanager
def open_text(stream: IO[bytes], *, newline: str | None = None) -> Iterator[IO[str]]:
    """Open a file as text, decoded as it is read; the file itself stays open.

    Args:
        newline: As for `io.TextIOWrapper`.

    Raises:
        ImportFileError: On reading, where a byte is none of the encoding's.
    """
    encoding = encoding_of(stream)
    stream.seek(0)
    text = io.TextIOWrapper(stream, encoding=encoding, newline=newline)
    try:
        yield text
    except UnicodeDecodeError as error:
        raise ImportFileError(
            f"The file is no {encoding}: {error.reason} after {error.start} bytes of the "
            "part that was read. Save it as UTF-8."
        ) from error
    finally:
        text.detach()


def encoding_of(stream: IO[bytes]) -> str:
    """Return the encoding's name, by its mark, by trying UTF-8, or by detection.

    Raises:
        ImportFileError: Nothing fits.
    """
    stream.seek(0)
    sample = stream.read(_SAMPLE_BYTES)
    if sample.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(sample)  # a character may be cut off at the sample's end
    except UnicodeDecodeError:
        best = from_bytes(sample).best()
        if best is None:
            msg = "The file's encoding is unknown; save it as UTF-8."
            raise ImportFileError(msg) from None
        return best.encoding
    return "utf-8"
