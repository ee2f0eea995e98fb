"""Finished parts of headline reports, one JSON file each.

A part counts as done if its study already ran with the same arguments, models and data:
in this report, in an earlier one or in the shipped results.
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
    """What determines the figures of a part.

    Attributes:
        models: Fingerprints of the model that answers, with and without its adapter.
        data: The digest of each file read, by its path relative to the data directory.
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
        seconds: How long it took; 0 if that was not recorded.
        markdown: Its tables; "" if they are in `page`.
        page: The page in `studies/results` with its tables, or "".
        fault: Why it could not be measured, or "".
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
            "set there, or leave this part out with --parts."
        )
    digests = {str(file.relative_to(data)): sha256_of(file) for file in files}
    return Key(part.study, tuple(part.arguments(share)), models, digests)


def find_result(name: str, key: Key, directories: Sequence[Path]) -> Result | None:
    """Return the finished part from the first directory that has it with this key."""
    for directory in directories:
        file = directory / f"{name}.json"
        if not file.is_file():
            continue
        try:
            found = _RESULT.validate_python(json.loads(file.read_text("utf-8")))
        except (OSError, ValueError, ValidationError) as error:
            raise EvaluationDataError(
                f"{file} is not a part's result: {error}. Delete it to measure again."
            ) from error
        if found.key == key:
            return found
    return None


def keep_result(name: str, result: Result, directory: Path) -> None:
    said: dict[str, Any] = asdict(result)
    text = json.dumps(said, indent=2, ensure_ascii=False)
    write_figures(directory / f"{name}.json", text)
