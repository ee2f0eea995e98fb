"""Reading an archive that anybody may have made: line by line, and nothing on trust."""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kb.exceptions import InvalidArchiveError

from .manifest import FILE, Manifest, parse_manifest
from .tables import TABLES, Table

MANIFEST_LIMIT = 1024 * 1024
"""Most bytes of a manifest."""
LINE_LIMIT = 1024 * 1024
"""Most bytes of a line; the longest entry there can be takes a tenth of it."""
_EXPANSION_LIMIT = 200
_EXPANSION_FREE = 64 * 1024 * 1024
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


class ArchiveFile:
    """An opened archive whose members and manifest are in order; `open_archive` makes it."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        """Look at the members and the manifest, and at nothing else yet."""
        self._archive = archive
        _check_members(archive)
        with _telling():
            text = self._archive.read(FILE)
        self.manifest: Manifest = parse_manifest(text)
        tables = [table for table in TABLES if table.since <= self.manifest.version]
        _check_names(archive, tables)
        for table in tables:
            told = self.manifest.files[table.name].bytes
            if archive.getinfo(table.file).file_size != told:
                raise InvalidArchiveError(
                    f"{table.file} has not the {told} bytes that {FILE} tells; the "
                    "archive is damaged, take another copy."
                )

    def rows(self, table: Table) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table as they stand there; at the end, hold the digest.

        What the archive's version of the format has not yet is None.

        Raises:
            InvalidArchiveError: The file is damaged, or a line is no JSON object.
        """
        version = self.manifest.version
        if table.since > version:
            return
        later = {each.field: None for each in table.columns if each.since > version}
        facts = self.manifest.files[table.name]
        digest = hashlib.sha256()
        rows = 0
        with _telling(), self._archive.open(table.file) as stream:
            while line := stream.readline(LINE_LIMIT + 1):
                rows += 1
                if len(line) > LINE_LIMIT:
                    raise InvalidArchiveError(
                        f"{table.file}, line {rows}: longer than {LINE_LIMIT} bytes."
                    )
                digest.update(line)
                yield {**_parse(line, table.file, rows), **later}
        if (rows, digest.hexdigest()) != (facts.rows, facts.sha256):
            raise InvalidArchiveError(
                f"{table.file} is not what {FILE} tells of it; the archive is damaged "
                "or was changed, take another copy."
            )


@contextmanager
def open_archive(path: Path) -> Iterator[ArchiveFile]:
    """Open an archive and look at its members and its manifest.

    Raises:
        InvalidArchiveError: It is none, or damaged.
        OSError: It can't be read.
    """
    with _telling():
        archive = zipfile.ZipFile(path)
    with archive:
        yield ArchiveFile(archive)


@contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        raise InvalidArchiveError(
            f"The file is no archive that can be read, or a damaged one: {error}."
        ) from error


def _check_members(archive: zipfile.ZipFile) -> None:
    members = archive.infolist()
    if len(members) > len(TABLES) + 1 or FILE not in archive.namelist():
        _check_names(archive, TABLES)
    for member in members:
        if member.compress_type not in _COMPRESSIONS or member.flag_bits & 0x1:
            raise InvalidArchiveError(
                f"{member.filename} is encrypted or packed in an unknown way; take an "
                "archive that export_knowledge wrote."
            )
        limit = max(_EXPANSION_FREE, _EXPANSION_LIMIT * member.compress_size)
        if member.file_size > (MANIFEST_LIMIT if member.filename == FILE else limit):
            raise InvalidArchiveError(
                f"{member.filename} would grow from {member.compress_size} to "
                f"{member.file_size} bytes, which no knowledge does; take another copy."
            )


def _check_names(archive: zipfile.ZipFile, tables: Sequence[Table]) -> None:
    names = sorted(archive.namelist())
    expected = sorted([FILE, *(table.file for table in tables)])
    if names != expected:
        raise InvalidArchiveError(
            f"The archive holds {', '.join(names[:10]) or 'nothing'}; one of knowledge "
            f"holds {', '.join(expected)}."
        )


def _parse(line: bytes, file: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidArchiveError(
            f"{file}, line {number}: no JSON: {error}."
        ) from error
    if not isinstance(row, dict):
        raise InvalidArchiveError(f"{file}, line {number}: no JSON object.")
    return row
