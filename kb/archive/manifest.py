"""The first thing that is read of an archive: what it is, and what each file must hold."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kb.exceptions import InvalidArchiveError

from .tables import TABLES

FILE = "manifest.json"
FORMAT = "nescio-knowledge"
VERSION = 2
_READ = (1, VERSION)
_NOTHING = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a file of the archive must be: lines, bytes before compression, digest."""

    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive says of itself.

    Attributes:
        complete: Whether it holds everything of its knowledge bases, and not only what
            one user may see.
        files: By table; one that an earlier version has not is empty.
        version: Of the format.
    """

    complete: bool
    knowledge_bases: tuple[str, ...]
    files: Mapping[str, FileFacts]
    version: int = VERSION

    def to_json(self) -> str:
        """Return it as it stands in the archive; the same facts give the same bytes."""
        values = {
            "format": FORMAT,
            "version": self.version,
            "complete": self.complete,
            "knowledge_bases": list(self.knowledge_bases),
            "files": {name: asdict(facts) for name, facts in self.files.items()},
        }
        return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def parse_manifest(text: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        InvalidArchiveError: It is none, or one of another version.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArchiveError(f"{FILE} is no JSON: {error}.") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise InvalidArchiveError(
            f"{FILE} is not that of a knowledge archive; take a file that "
            "export_knowledge wrote."
        )
    if values.get("version") not in _READ:
        raise InvalidArchiveError(
            f"The archive has version {values.get('version')!r} of the format and this "
            f"installation reads 1 to {VERSION}; export it again with this version, or "
            "upgrade."
        )
    return _manifest(values)


def _manifest(values: dict[str, Any]) -> Manifest:
    try:
        files = {
            table.name: FileFacts(**values["files"][table.name])
            if table.since <= values["version"]
            else FileFacts(rows=0, bytes=0, sha256=_NOTHING)
            for table in TABLES
        }
        manifest = Manifest(
            complete=values["complete"],
            knowledge_bases=tuple(values["knowledge_bases"]),
            files=files,
            version=values["version"],
        )
    except (KeyError, TypeError) as error:
        raise InvalidArchiveError(
            f"{FILE} lacks what it should say: {error}."
        ) from error
    for name, facts in files.items():
        numbers = (facts.rows, facts.bytes)
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise InvalidArchiveError(
                f"{FILE} gives {name} no counts of rows and bytes."
            )
    return manifest
