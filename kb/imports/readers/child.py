"""Reads a file in a child process, so that a malicious file cannot harm the caller.

Parsers may need any amount of time and memory for a crafted file, and cannot be
interrupted from outside. The child has neither database nor secrets: it gets the open
file and writes each item as a line of JSON.
"""

import json
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter

from . import read
from .formats import (
    BadRow,
    Fact,
    FileItem,
    GuessedEncoding,
    ImportFileError,
    Limits,
    SourceDocument,
    UnreadColumns,
    Withdrawn,
)

_ROOT = Path(__file__).resolve().parents[3]
CHECK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class _Failure:
    failure: str


_LINE: TypeAdapter[FileItem | _Failure] = TypeAdapter(
    Fact
    | SourceDocument
    | BadRow
    | UnreadColumns
    | Withdrawn
    | GuessedEncoding
    | _Failure
)


def read_in_child(
    stream: IO[bytes],
    file_format: str,
    *,
    language: str,
    limits: Limits,
    check: Callable[[], None],
) -> Generator[FileItem]:
    """Read like `read`, within limits of time and memory; `stream` must be a real file.

    `check` is called about twice a second while the child works; an exception from it
    kills the child, as does closing the generator.

    Raises:
        ImportFileError: The file cannot be read, or not within the limits.
    """
    how = json.dumps([file_format, language, asdict(limits)])
    with subprocess.Popen(  # noqa: S603  # our own command
        [sys.executable, "-m", __name__, how],
        cwd=_ROOT,
        env={},
        stdin=stream.fileno(),
        stdout=subprocess.PIPE,
    ) as child:
        try:
            for line in _lines(child, limits, check):
                item = _LINE.validate_json(line)
                if isinstance(item, _Failure):
                    raise ImportFileError(item.failure)
                yield item
        finally:
            child.kill()  # it only reads, so nothing is lost
    if status := child.returncode:
        raise _too_much(limits, f"its process ended with status {status}")


def _lines(
    child: subprocess.Popen[bytes], limits: Limits, check: Callable[[], None]
) -> Iterator[bytes]:
    assert child.stdout  # noqa: S101  # it is a pipe
    output = child.stdout.fileno()
    waited, checked = 0.0, time.monotonic()
    parts: list[bytes] = []
    while True:
        began = time.monotonic()
        ready, _, _ = select.select([output], [], [], CHECK_SECONDS)
        now = time.monotonic()
        waited += now - began
        if now - checked >= CHECK_SECONDS:
            check()
            checked = now
        if waited > limits.seconds:
            raise _too_much(limits, "it was not done in time")
        if not ready:
            continue
        chunk = os.read(output, 1 << 20)
        if not chunk:
            child.wait()
            return
        first, *rest = chunk.split(b"\n")
        parts.append(first)
        for part in rest:
            yield b"".join(parts)
            parts = [part]


def _too_much(limits: Limits, what: str) -> ImportFileError:
    return ImportFileError(
        f"The file could not be read within {limits.seconds} s and "
        f"{limits.memory_bytes / 1024**2:,.0f} MiB of memory: {what}. Split it, or raise "
        "NESCIO_IMPORT_MAX_SECONDS or NESCIO_IMPORT_MAX_MEMORY_MIB."
    )


def _main(how: str) -> None:
    file_format, language, given = json.loads(how)
    limits = Limits(**given)
    with suppress(ValueError, OSError):  # macOS does not limit memory
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes,) * 2)
    # In case the parent was killed; otherwise it would have killed the child before.
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds + 1,) * 2)
    with open(0, "rb", closefd=False) as stream:  # 0 is a file descriptor
        stream.seek(0)
        try:
            for item in read(stream, file_format, language=language, limits=limits):
                _say(asdict(item))
        except ImportFileError as error:
            _say({"failure": str(error)})
        except MemoryError:
            _say({"failure": str(_too_much(limits, "memory ran out"))})


def _say(values: dict[str, object]) -> None:
    sys.stdout.write(f"{json.dumps(values)}\n")


if __name__ == "__main__":
    _main(sys.argv[1])
