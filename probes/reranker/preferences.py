"""Preferences: the notes that help a language model with a question, or harm.

One JSON object per line, with the usual fields of reranker training data: {"query",
"pos": [...], "neg": [...], "prompt"}.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from accounts.ids import digest
from probes.exceptions import PreferenceFileError

PROMPT: Final = "Given a question, find the notes that help to answer it."


@dataclass(frozen=True, slots=True)
class Preference:
    """A question, with the most helpful and the most harmful notes first."""

    query: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]
    prompt: str = PROMPT

    def as_json(self) -> str:
        row = {
            "query": self.query,
            "pos": self.positives,
            "neg": self.negatives,
            "prompt": self.prompt,
        }
        return json.dumps(row, ensure_ascii=False)


def write_preferences(file: Path, preferences: Iterable[Preference]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{preference.as_json()}\n" for preference in preferences)
    file.write_text(lines, encoding="utf-8")


def read_preferences(*files: Path) -> list[Preference]:
    """Read preferences; a question may appear in several lines."""
    found = []
    for file in files:
        try:
            # Not `splitlines`: JSON allows U+2028 and its like within a line.
            lines = file.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise PreferenceFileError(f"{file} cannot be read: {error}.") from error
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                found.append(_preference(json.loads(line)))
            except (KeyError, RecursionError, TypeError, ValueError) as error:
                raise PreferenceFileError(
                    f"{file.name}, line {number} is not a preference: {error}. A line "
                    'is {"query": "...", "pos": ["..."], "neg": ["..."]}.'
                ) from error
    return found


def parted_by_query(
    preferences: Sequence[Preference], every: int
) -> tuple[list[Preference], list[Preference]]:
    """Split off the preferences of every n-th question, with n = `every`.

    Returns the others and those split off. All lines of a question stay together, so
    that what stops a fit was not fitted on.
    """
    queries = dict.fromkeys(preference.query for preference in preferences)
    apart = set(list(queries)[::every])
    return (
        [row for row in preferences if row.query not in apart],
        [row for row in preferences if row.query in apart],
    )


def digest_of(preferences: Sequence[Preference]) -> str:
    return digest(*sorted(preference.as_json() for preference in preferences))


def _preference(row: object) -> Preference:
    if not isinstance(row, dict):
        raise TypeError(f"it is {type(row).__name__}, not an object")
    (query,) = _texts([row["query"]], "query")
    prompt = row.get("prompt", PROMPT)
    if not isinstance(prompt, str):
        raise TypeError(f"prompt is {prompt!r}, not a text")
    return Preference(
        query, _texts(row["pos"], "pos"), _texts(row["neg"], "neg"), prompt
    )


def _texts(value: object, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise TypeError(f"{name} is {value!r}, not a list of texts")
    for text in value:
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{name} holds {text!r}, not a text with words")
    return tuple(value)
