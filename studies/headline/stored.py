"""Finished parts of headline reports: one JSON file each, found again by what was asked.

A part counts as done where the same study was asked with the same arguments of the same
model on the same data: of this run, of an earlier one, or of the shipped results.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from probes.cards import sha256_of
from qa.exceptions import EvaluationDataError
from qa.management.base import write_figures
from studies.study import Claim

from .parts import Part, data_files

SHIPPED: Final = Path(__file__).parents[1] / "results" / "headline"


@dataclass(frozen=True, slots=True)
class Key:
    """What decides the figures of a part.

    Attributes:
        models: Fingerprints of the model that answers, with its adapter, and as it came.
        data: The digest of each file that is read, by its path below the data directory.
    """

    study: str
    arguments: tuple[str, ...]
    models: tuple[str, str]
    data: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Result:
    """A finished part.

    Attributes:
        made_on: ISO 8601 date.
        seconds: How long it took; 0 where that was not kept.
        markdown: Its tables; "" where `page` has them.
        page: The page below `studies/results` that has them.
    """

    key: Key
    made_on: str
    claims: tuple[Claim, ...]
    seconds: float = 0.0
    markdown: str = ""
    page: str = ""
    fault: str = field(default="", compare=False)


_RESULT: Final = TypeAdapter(Result)


def key_of(part: Part, share: float, data: Path, models: tuple[str, str]) -> Key:
    files = data_files(part, data)
    if not files:
        raise EvaluationDataError(
            f"{part.method}: {data} has none of {', '.join(part.files)}. Put the data "
            "set there, or leave the part out with --parts."
        )
    digests = {str(file.relative_to(data)): sha256_of(file) for file in files}
    return Key(part.study, tuple(part.arguments(share)), models, digests)


def find_result(name: str, key: Key, directories: Sequence[Path]) -> Result | None:
    """Return the finished part of that name and key, of the first directory with it."""
    for directory in directories:
        file = directory / f"{name}.json"
        if not file.is_file():
            continue
        try:
            found = _RESULT.validate_python(json.loads(file.read_text("utf-8")))
        except (OSError, ValueError, ValidationError) as error:
            raise EvaluationDataError(
                f"{file} is no result of a part: {error}. Delete it to measure again."
            ) from error
        if found.key == key:
            return found
    return None


def keep_result(name: str, result: Result, directory: Path) -> None:
    said: dict[str, Any] = asdict(result)
    text = json.dumps(said, indent=2, ensure_ascii=False)
    write_figures(directory / f"{name}.json", text)
