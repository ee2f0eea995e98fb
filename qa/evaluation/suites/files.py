"""Finding a data set's file, and what it is known by."""

import hashlib
import json
from pathlib import Path
from typing import Any

from qa.exceptions import EvaluationDataError

_CHUNK = 1 << 20


def find_file(suite: str, data: Path | None, *patterns: str) -> Path:
    """Return the data set's file.

    Args:
        data: The file itself, its directory, or a directory of data sets.
        patterns: Where it is below a directory of data sets, best first.

    Raises:
        EvaluationDataError: There is none.
    """
    if data is None:
        raise EvaluationDataError(
            f"The suite {suite} needs its data set: --data PATH, the file "
            f"{Path(patterns[0]).name} or a directory with {patterns[0]}."
        )
    if data.is_file():
        return data
    for pattern in patterns:
        for below in (pattern, Path(pattern).name):
            found = sorted(data.glob(below))
            if found:
                return found[0]
    raise EvaluationDataError(
        f"{data} has no {patterns[0]}; give the file itself with --data."
    )


def read_json(file: Path) -> Any:  # noqa: ANN401  # whatever stands in it
    """Return what a JSON file holds.

    Raises:
        EvaluationDataError: It is no JSON.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise EvaluationDataError(f"{file.name} is no JSON: {error}.") from error


def misread(file: Path, what: str) -> EvaluationDataError:
    """Return the error that `file` is not laid out as its data set is."""
    return EvaluationDataError(f"{file.name} is not laid out as {what}.")


def digest_of(*files: Path) -> str:
    """Return 64 hex digits over the files' bytes."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()
