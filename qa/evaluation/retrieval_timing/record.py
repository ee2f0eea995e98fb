"""What was asked, kept line by line: a run that is broken off goes on from there."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from qa.exceptions import EvaluationDataError

_FORMAT: Final = "retrieval-timing-1"

Row = Mapping[str, Any]


class Record:
    """A JSON Lines file: first what it is bound to, then a row a question and kind.

    Attributes:
        bound: What its rows hold for: fingerprints of models, data and protocol.
    """

    def __init__(self, path: Path, bound: Mapping[str, str]) -> None:
        """Open the file, or begin it.

        Raises:
            EvaluationDataError: It is bound to something else, is no such record, or
                can't be read or written.
        """
        self.bound = {"format": _FORMAT, **bound}
        self._path = path
        self._rows: dict[tuple[str, str, str], Row] = {}
        with self._opened():
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            if not text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(self.bound), encoding="utf-8")
        # Not `splitlines`: JSON leaves U+2028 and its like within a line.
        lines = text.split("\n")
        if text:
            self._require_bound(lines[0])
        for line in lines[1:]:
            try:
                row = json.loads(line)
                key = row["kind"], row["by"], row["id"]
            except (KeyError, TypeError, ValueError):
                continue  # broken off in mid-line: it is asked anew
            self._rows[key] = row

    def of(self, kind: str, by: str) -> dict[str, Row]:
        """Return the rows of a kind by the questions' ids.

        Args:
            by: Fingerprint of what gave them; what another one gave is not returned.
        """
        return {
            question: row
            for (one, other, question), row in self._rows.items()
            if (one, other) == (kind, by)
        }

    def keep(self, kind: str, by: str, rows: Mapping[str, Row]) -> None:
        """Add rows, by the questions' ids.

        Raises:
            EvaluationDataError: They can't be written.
        """
        with self._opened(), self._path.open("a", encoding="utf-8") as stream:
            for question, values in rows.items():
                row = {"kind": kind, "by": by, "id": question, **values}
                # The line break comes first: a line that was broken off ends there.
                stream.write(f"\n{json.dumps(row, ensure_ascii=False)}")
                self._rows[kind, by, question] = row

    @contextmanager
    def _opened(self) -> Iterator[None]:
        try:
            yield
        except (OSError, UnicodeDecodeError) as error:
            raise EvaluationDataError(
                f"The record {self._path} can't be read or written: {error}. Name "
                "another file with --record."
            ) from error

    def _require_bound(self, line: str) -> None:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise EvaluationDataError(
                f"{self._path} is no record of this comparison; name another file."
            )
        other = [name for name in self.bound if found.get(name) != self.bound[name]]
        if other:
            raise EvaluationDataError(
                f"{self._path} was asked with another {', '.join(other)}; name another "
                "file with --record, or remove it to ask everything anew."
            )
