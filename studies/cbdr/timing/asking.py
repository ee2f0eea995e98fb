"""Asking each question with notes, closed-book and by each decider, with a record."""

import json
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Final, TypeVar

from probes.language_model import WhiteBoxModel
from qa.exceptions import EvaluationDataError
from qa.inference.closed_book_form import ClosedBookForm
from qa.inference.evidence_text import note_text
from qa.pipeline.hard_gate import passes
from qa.pipeline.policy import Policy
from qa.pipeline.self_knowledge import SelfKnowledge
from qa.pipeline.values import Question, Retriever
from qa.pipeline.verbatim import match_verbatim
from studies.study import OnProgress

from .questions import TimedQuestion

_FORMAT: Final = "retrieval-timing-1"

Row = Mapping[str, Any]
Item = TypeVar("Item")


class Record:
    """A JSON Lines file: what it is bound to, then a row for each question and kind.

    Attributes:
        bound: What its rows are valid for: models, data, knowledge and protocol.
    """

    def __init__(self, path: Path, bound: Mapping[str, str]) -> None:
        """Open the file, or create it.

        Raises:
            EvaluationDataError: The file can't be read or written, is not a record, or
                is bound to something else.
        """
        self.bound = {"format": _FORMAT, **bound}
        self._path = path
        self._rows: dict[tuple[str, str, str], Row] = {}
        with self._opened():
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            if not text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(self.bound), encoding="utf-8")
        # Not `splitlines`: it also splits at U+2028 and its like, which JSON keeps.
        lines = text.split("\n")
        if text:
            self._require_bound(lines[0])
        for line in lines[1:]:
            try:
                row = json.loads(line)
                key = row["kind"], row["by"], row["id"]
            except (KeyError, TypeError, ValueError):
                continue  # interrupted while writing the line: ask again
            self._rows[key] = row

    def of(self, kind: str, by: str) -> dict[str, Row]:
        """Return the rows of a kind by question id.

        Args:
            by: Fingerprint of what made them; rows made by another are left out.
        """
        return {
            question: row
            for (one, other, question), row in self._rows.items()
            if (one, other) == (kind, by)
        }

    def keep(self, kind: str, by: str, rows: Mapping[str, Row]) -> None:
        """Add rows, by question id."""
        with self._opened(), self._path.open("a", encoding="utf-8") as stream:
            for question, values in rows.items():
                row = {"kind": kind, "by": by, "id": question, **values}
                # The line break comes first, so that it ends an interrupted line.
                stream.write(f"\n{json.dumps(row, ensure_ascii=False)}")
                self._rows[kind, by, question] = row

    def filled(
        self,
        kind: str,
        by: str,
        asked: Mapping[str, Item],
        rows: Callable[[Sequence[Item]], Iterable[Row]],
        on_progress: OnProgress,
        *,
        at_once: int = 1,
    ) -> Mapping[str, Row]:
        """Add the missing rows of a kind, and return all of its rows.

        Args:
            asked: The items to ask, by id.
            rows: Returns the rows of at most `at_once` items, in their order.
        """
        done = self.of(kind, by)
        missing = [name for name in asked if name not in done]
        what, total = f"Asking: {kind}", len(asked)
        on_progress(what, total - len(missing), total)
        for first in range(0, len(missing), at_once):
            batch = missing[first : first + at_once]
            found = rows([asked[name] for name in batch])
            self.keep(kind, by, dict(zip(batch, found, strict=True)))
            on_progress(what, total - len(missing) + first + len(batch), total)
        return self.of(kind, by)

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
                f"{self._path} is not a record of this comparison; name another file."
            )
        other = [name for name in self.bound if found.get(name) != self.bound[name]]
        if other:
            raise EvaluationDataError(
                f"{self._path} was made with another {', '.join(other)}; name another "
                "file with --record, or remove it to ask everything again."
            )


# Each question is answered with notes and closed-book, then considered by each decider.


# Chosen on teaching questions that have an entry: the bundled model answers 2 % of them
# correctly with three notes, best first, 40 % with the best last, and 50 % with only
# the best.
TOP_K: Final = 1
_AT_ONCE: Final = 16
_ALONE: Final = "alone"
_WITH_NOTES: Final = "with notes"


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a piece of work: time, and passes and tokens of the model.

    Attributes:
        prompt_passes: Passes over several tokens at once.
        prompt_tokens: Tokens read in those passes.
        steps: Tokens read one at a time, as generated ones are.
    """

    milliseconds: float
    prompt_passes: float
    prompt_tokens: float
    steps: float

    def plus(self, other: "Cost", times: float = 1.0) -> "Cost":
        return Cost(
            self.milliseconds + times * other.milliseconds,
            self.prompt_passes + times * other.prompt_passes,
            self.prompt_tokens + times * other.prompt_tokens,
            self.steps + times * other.steps,
        )


NOTHING: Final = Cost(0.0, 0.0, 0.0, 0.0)


def costed(
    models: Iterable[WhiteBoxModel], work: Callable[[], Item]
) -> tuple[Item, Cost]:
    """Return the result of `work` and its cost on these models, each given once."""
    with ExitStack() as held:
        meters = [held.enter_context(model.metered()) for model in models]
        began = perf_counter()
        done = work()
        taken = (perf_counter() - began) * 1000
    passes, tokens, steps = (
        float(sum(getattr(meter, name) for meter in meters))
        for name in ("prompt_passes", "prompt_tokens", "steps")
    )
    return done, Cost(taken, passes, tokens, steps)


class Asker:
    """Asks the questions that a record lacks; returns its rows by question id."""

    def __init__(
        self, form: ClosedBookForm, record: Record, on_progress: OnProgress
    ) -> None:
        """Ask with this closed-book form."""
        self._form, self._record, self._tell = form, record, on_progress

    def alone(self, questions: Sequence[TimedQuestion]) -> Mapping[str, Row]:
        """Return the closed-book `answer` to each question."""

        def rows(batch: Sequence[TimedQuestion]) -> Iterator[Row]:
            answers = self._form.write_each([one.case.question for one in batch])
            yield from ({"answer": answer} for answer in answers)

        return self._asked(_ALONE, self._form.fingerprint, questions, rows)

    def with_notes(
        self,
        questions: Sequence[TimedQuestion],
        *,
        retriever: Retriever,
        policy: Policy,
    ) -> Mapping[str, Row]:
        """Return the model's answer to each question with the best notes.

        A row holds the `answer`, the texts of the `notes`, the ids of their `entries`,
        whether the policy's hard gate `passes` them, and the `verbatim` answer or None.
        The notes are used in any case, so that both accounts can be drawn up.
        """

        def rows(batch: Sequence[TimedQuestion]) -> Iterator[Row]:
            asked = [one.case.question for one in batch]
            found = [retriever.look(q, top_k=TOP_K, deep=False) for q in asked]
            notes = [
                [note_text(piece) for piece in looked.evidence] for looked in found
            ]
            answers = self._form.write_each(asked, notes)
            for one, answer, pieces, looked in zip(
                asked, answers, notes, found, strict=True
            ):
                match = match_verbatim(Question(one), looked, policy=policy).evidence
                yield {
                    "answer": answer,
                    "notes": pieces,
                    "entries": [piece.entry_id for piece in looked.evidence],
                    "passes": passes(looked, policy),
                    "verbatim": match.text if match else None,
                }

        return self._asked(_WITH_NOTES, self._form.fingerprint, questions, rows)

    def considered(
        self,
        name: str,
        decider: SelfKnowledge,
        questions: Sequence[TimedQuestion],
        *,
        tried: Collection[str],
    ) -> Mapping[str, Row]:
        """Return each question's estimate by a decider, with its cost.

        A row holds `sureness` (the known probability in [0, 1], or None), the `signals`
        and the cost of deciding, `decided`. For questions whose ids are in `tried`, it
        also holds the closed-book `answer` that follows and its cost, `answered`.
        """

        def rows(batch: Sequence[TimedQuestion]) -> Iterator[Row]:
            if batch[0] is missing[0]:
                # Reads what all questions share, which is not part of any one's cost.
                decider.consider(Question(batch[0].case.question)).answer()
            for one in batch:
                yield self._considered(decider, one, goes_on=one.case.id in tried)

        missing = self._missing(name, decider.fingerprint, questions)
        return self._asked(name, decider.fingerprint, questions, rows)

    def _asked(
        self,
        kind: str,
        by: str,
        questions: Sequence[TimedQuestion],
        rows: Callable[[Sequence[TimedQuestion]], Iterator[Row]],
    ) -> Mapping[str, Row]:
        asked = {one.case.id: one for one in questions}
        return self._record.filled(kind, by, asked, rows, self._tell, at_once=_AT_ONCE)

    def _missing(
        self, kind: str, by: str, questions: Sequence[TimedQuestion]
    ) -> Sequence[TimedQuestion]:
        done = self._record.of(kind, by)
        return [one for one in questions if one.case.id not in done]

    def _considered(
        self, decider: SelfKnowledge, asked: TimedQuestion, *, goes_on: bool
    ) -> Row:
        question = Question(asked.case.question)
        models = [self._form.model]
        considered, decided = costed(models, lambda: decider.consider(question))
        row: dict[str, Any] = {
            "sureness": considered.known_probability,
            "signals": dict(considered.signals),
            "decided": asdict(decided),
        }
        if goes_on:
            generation, answered = costed(models, considered.answer)
            row |= {"answer": generation.answer.strip(), "answered": asdict(answered)}
        return row
