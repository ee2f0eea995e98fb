"""The interface of a kind of source; see docs/how-to/follow-a-source.md."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Protocol

from django.conf import settings

from accounts.exceptions import NescioError
from kb.exceptions import InvalidKnowledgeError
from kb.imports.readers.formats import SUFFIXES

_MIB = 1024 * 1024
_SUFFIX_BY_TYPE = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "text/csv": ".csv",
    "application/pdf": ".pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
}
# Without formats that hold several documents: no check could tell which are gone.
_READ = tuple(each for each in SUFFIXES if each not in (".json", ".jsonl", ".ndjson"))
RESTRICTED = "restricted"
"""The group of documents that not every reader of their source may see: only a rule
with this name gives them to an audience."""


class SourceError(InvalidKnowledgeError):
    """A source, or one document of it, that cannot be read as it is."""

    code = "followed_source"


class SourceBoundsError(NescioError):
    """A source that needs more time or space than one check may use."""

    code = "followed_source_bounds"


class Bounds:
    """The limits of one check: bytes, time, documents; `check` ends a cancelled one."""

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self.check = check
        self.document_bytes: int = settings.IMPORT_MAX_MIB * _MIB
        self.unpacked_bytes: int = settings.IMPORT_MAX_UNPACKED_MIB * _MIB
        self.bytes_left: int = settings.SOURCE_MAX_MIB * _MIB
        self.documents: int = settings.SOURCE_MAX_DOCUMENTS
        self._ends: float = time.monotonic() + settings.SOURCE_MAX_SECONDS

    def seconds_left(self) -> float:
        """Return the time left; raise if there is none or the check was cancelled."""
        self.check()
        left = self._ends - time.monotonic()
        if left <= 0:
            raise SourceBoundsError(
                f"The source was not read within {settings.SOURCE_MAX_SECONDS} s. What was "
                "read is kept, and the next check continues; to read more at once, raise "
                "NESCIO_SOURCE_MAX_SECONDS."
            )
        return left

    def take(self, count: int) -> None:
        """Count bytes that were read."""
        self.check_room(count)
        self.bytes_left -= count

    def check_room(self, count: int) -> None:
        """Raise if reading this many bytes would exceed the limit."""
        if count > self.bytes_left:
            raise SourceBoundsError(
                f"The source holds more than {settings.SOURCE_MAX_MIB} MiB; follow a part "
                "of it, or raise NESCIO_SOURCE_MAX_MIB."
            )


@dataclass(frozen=True, slots=True)
class Place:
    """Where to read, with which credential and within which limits."""

    address: str
    credential: str = ""  # the value, from the environment
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True, slots=True)
class Content:
    """A document's bytes; the ending of `name` gives their format.

    `known` is passed to the next reading, to detect whether the document has changed.
    """

    content: bytes
    name: str
    known: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A document that exists in the source.

    `key` identifies it and stays the same. `marker` changes whenever its content does;
    empty if only reading can tell. `groups` are what rules refer to: folders from the
    root, a space, a section, labels. `read` takes the `known` of the last reading and
    returns None if nothing has changed since.
    """

    key: str
    read: Callable[[Mapping[str, str]], Content | None]
    title: str = ""
    marker: str = ""
    groups: tuple[str, ...] = ()


class Kind(Protocol):
    """A kind of source."""

    @property
    def name(self) -> str:
        """The name stored in rows."""

    @property
    def label(self) -> str:
        """The name shown to people."""

    @property
    def address_help(self) -> str:
        """What to enter as the address, with an example."""

    @property
    def lists_all(self) -> bool:
        """Whether documents not listed are gone; a feed lists only the latest."""

    def check_address(self, address: str) -> None:
        """Raise `SourceError` if the address may not be followed; reads nothing."""

    def open(self, place: Place) -> AbstractContextManager[Iterator[Listed]]:
        """Open the source for one check; its documents can be read only within."""


def is_read(name: str) -> bool:
    """Return whether a file with this ending is imported."""
    return PurePosixPath(name).suffix.lower() in _READ


def suffix_of(media_type: str) -> str:
    """Return the file name ending of a media type, as HTTP gives it.

    Raises:
        SourceError: The type is not imported.
    """
    plain = media_type.partition(";")[0].strip().lower()
    suffix = _SUFFIX_BY_TYPE.get(plain)
    if suffix is None:
        raise SourceError(
            "content", f"It is {plain or 'of no type'}, which is not read."
        )
    return suffix


def folders(path: PurePosixPath) -> tuple[str, ...]:
    """Return the group of a file: its folder."""
    return (path.parent.as_posix(),) if path.parent.parts else ("/",)
