"""Knowledge for fitting a verifier: entries, and questions with or without an answer.

Files are read as published by their source, plain or gzipped.
"""

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from qa.exceptions import TrainingDataError
from qa.pipeline.weighing import Passage


@dataclass(frozen=True, slots=True)
class SourceEntry:
    text: str
    title: str = ""
    section: str = ""
    question: str = ""

    @property
    def passage(self) -> Passage:
        return Passage.of_entry(self.title, self.section, self.question, self.text)


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """A question, the positions of entries that answer it, and the answer's words."""

    text: str
    answered_by: frozenset[int]
    words: str = ""
    group: str = ""


@dataclass(slots=True)
class KnowledgeSet:
    """One data source as a knowledge base."""

    name: str
    licence: str
    entries: list[SourceEntry] = field(default_factory=list)
    questions: list[SourceQuestion] = field(default_factory=list)
    _places: dict[SourceEntry, int] = field(default_factory=dict)

    def place(self, entry: SourceEntry) -> int:
        """Add an entry and return its position; an existing one keeps its own."""
        if entry not in self._places:
            self._places[entry] = len(self.entries)
            self.entries.append(entry)
        return self._places[entry]

    def ask(
        self, text: str, places: Iterable[int], words: str = "", group: str = ""
    ) -> None:
        plain = " ".join(text.split())
        self.questions.append(SourceQuestion(plain, frozenset(places), words, group))

    def answers(self, question: SourceQuestion, place: int) -> bool:
        """Return whether an entry is marked as the answer or has the answer's words."""
        words = _plain(question.words) if len(question.words) > 2 else ""
        text = _plain(self.entries[place].text)
        return place in question.answered_by or bool(
            words and f" {words} " in f" {text} "
        )


def whole_words(text: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """Return a pattern that finds a text only as whole words."""
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", flags)


def _plain(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def read_json(file: Path) -> Any:
    with open_text(file) as stream, _reading_json(file):
        return json.load(stream)


def read_json_lines(file: Path) -> list[Any]:
    with open_text(file) as stream, _reading_json(file):
        return [json.loads(line) for line in stream]


@contextmanager
def _reading_json(file: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise TrainingDataError(f"{file} is not JSON: {error}.") from error


def open_text(file: Path) -> TextIO:
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8")
    return file.open(encoding="utf-8")


def find(directory: Path, name: str) -> Path:
    """Return the file `name` below a directory, plain or gzipped."""
    for wanted in (name, f"{name}.gz"):
        found = sorted(directory.rglob(wanted))
        if found:
            return found[0]
    raise TrainingDataError(
        f"There is no {name} below {directory}. Give --data the directory that "
        "holds the public data; docs/explanation/verifier.md lists the files."
    )
