"""Questions with options, read from TruthfulQA, CommonsenseQA and MedQA."""

import csv
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kb.types import Evidence
from qa.evaluation.cases import plain_question, question_id, read_lines
from qa.evaluation.suites.options import digest_of, find_file, misread, read_json
from qa.exceptions import EvaluationDataError


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    """One question and its options, in the order in which they are shown.

    Attributes:
        id: Unique in its data set and the same in all tasks and runs, to join them.
        group: Its cluster in resampling: the category, or "".
        correct: Indices of the right options, 0-based, ascending; at least one.
        several: Whether all right options are to be chosen, rather than the only one.
        scored: All options that any task shows with this question. A model that scores
            options reads them in one batch, so tasks share the work and no result
            depends on which task ran first.
    """

    id: str
    group: str
    question: str
    options: tuple[str, ...]
    correct: tuple[int, ...]
    several: bool
    scored: tuple[str, ...]

    def share_right(self, chosen: Sequence[int]) -> float:
        """Return the share in [0, 1] of the options that `chosen` labels correctly."""
        right = sum(
            (index in chosen) == (index in self.correct)
            for index in range(len(self.options))
        )
        return right / len(self.options)


@dataclass(frozen=True, slots=True)
class Choice:
    """A model's choice among a question's options.

    Attributes:
        scores: One per option, higher for likelier: nats per token for a model that
            scores, else 1 for the chosen ones and 0 for the others. Empty if
            unreadable.
        chosen: 0-based indices, ascending; at most one unless `several`. Empty if the
            model declined or its output was unreadable.
        cited: 1-based numbers of the pieces of evidence that the choice rests on.
        reasoning: "" if the model gives none.
        can_answer: The model's own verdict on the evidence.
        verdict_probability: Probability of "can answer" in [0, 1]; None if unknown.
        readable: Whether the output could be read, possibly after one repair.
        milliseconds: Time in the model; scores reused from an earlier task or share of
            the knowledge take none.
    """

    scores: tuple[float, ...]
    chosen: tuple[int, ...]
    cited: tuple[int, ...]
    reasoning: str
    can_answer: bool
    verdict_probability: float | None
    readable: bool
    repaired: bool
    milliseconds: float


class ChoiceModel(Protocol):
    """Chooses among options, from evidence or closed-book."""

    @property
    def fingerprint(self) -> str:
        """64 hex digits: the model's fingerprint and the way of choosing."""
        ...

    def choose(self, question: ChoiceQuestion, evidence: Sequence[Evidence]) -> Choice:
        """Return the options chosen; without evidence, from the model's own knowledge.

        Raises:
            UnavailableError: The model is unavailable; ask again later.
        """
        ...


def shuffled(options: Sequence[str], *, question_id: str, seed: int) -> tuple[str, ...]:
    """Return the options in an order that depends only on id, option texts and seed."""

    def place(option: str) -> bytes:
        return hashlib.sha256(f"{seed}:{question_id}:{option}".encode()).digest()

    return tuple(sorted(options, key=place))


# Reading the data sets: TruthfulQA's multiple choice, CommonsenseQA, MedQA.


@dataclass(frozen=True, slots=True)
class ChoiceData:
    """The questions of a task, and the digest of the files that they were read from."""

    questions: tuple[ChoiceQuestion, ...]
    digest: str


def read_truthfulqa(data: Path | None, *, several: bool, seed: int) -> ChoiceData:
    """Read the multiple-choice file, and categories from the table beside it, if any.

    The file that Learn to Refuse evaluated on has the right option first in every row.
    Options are shuffled here, so any of the published files will do.

    Args:
        several: Whether to read MC2 (all right options) rather than MC1 (one).
        seed: Of the options' order.
    """
    file = find_file(
        "truthfulqa", data, "truthfulqa/mc_task_random.json", "truthfulqa/mc_task*.json"
    )
    table = file.with_name("TruthfulQA.csv")
    files = [file, table] if table.is_file() else [file]
    categories = _categories(table) if table.is_file() else {}
    task = "mc2_targets" if several else "mc1_targets"
    questions = []
    try:
        for row in read_json(file):
            question = str(row["question"]).strip()
            questions.append(
                _question(
                    question_id(question),
                    categories.get(plain_question(question), ""),
                    question,
                    {str(text): bool(right) for text, right in row[task].items()},
                    several=several,
                    scored=[*row["mc1_targets"], *row["mc2_targets"]],
                    seed=seed,
                )
            )
    except (KeyError, TypeError, AttributeError) as error:
        raise misread(file, "TruthfulQA's multiple-choice file") from error
    return ChoiceData(_unique(questions, file), digest_of(*files))


def read_commonsenseqa(data: Path | None, *, seed: int) -> ChoiceData:
    """Read CommonsenseQA's JSON Lines; the group is the question's concept."""
    file = find_file("commonsenseqa", data, "commonsenseqa/*.jsonl")

    def read(row: Mapping[str, Any]) -> ChoiceQuestion:
        asked = row["question"]
        choices = {choice["label"]: choice["text"] for choice in asked["choices"]}
        return _one_right(
            str(row["id"]),
            str(asked.get("question_concept", "")),
            str(asked["stem"]),
            choices,
            row["answerKey"],
            seed,
        )

    return _read_lines(file, read)


def read_medqa(data: Path | None, *, seed: int) -> ChoiceData:
    """Read MedQA's JSON Lines; the questions have no groups."""
    file = find_file("medqa", data, "medqa/*.jsonl")

    def read(row: Mapping[str, Any]) -> ChoiceQuestion:
        question = str(row["question"])
        # A question can recur with other options, so the id is made from both.
        name = question_id("\n".join([question, *map(str, row["options"].values())]))
        return _one_right(name, "", question, row["options"], row["answer_idx"], seed)

    return _read_lines(file, read)


def _one_right(
    name: str,
    group: str,
    question: str,
    choices: Mapping[str, str],
    key: str,
    seed: int,
) -> ChoiceQuestion:
    """Return a question from choices by label, `key` being the right one's label.

    Labels are not kept, because the options are shuffled.
    """
    right = choices[key]
    options = {text: text == right for text in choices.values()}
    return _question(
        name, group, question, options, several=False, scored=list(options), seed=seed
    )


def _question(
    name: str,
    group: str,
    question: str,
    options: Mapping[str, bool],
    *,
    several: bool,
    scored: Sequence[str],
    seed: int,
) -> ChoiceQuestion:
    shown = shuffled(list(options), question_id=name, seed=seed)
    correct = tuple(index for index, text in enumerate(shown) if options[text])
    if not correct or (not several and len(correct) != 1):
        wanted = "at least one right option" if several else "one right option"
        raise EvaluationDataError(
            f"Question {name} ({question[:60]!r}) needs {wanted}."
        )
    return ChoiceQuestion(
        id=name,
        group=group,
        question=question,
        options=shown,
        correct=correct,
        several=several,
        scored=shuffled(list(dict.fromkeys(scored)), question_id=name, seed=seed),
    )


def _read_lines(
    file: Path, read: Callable[[Mapping[str, Any]], ChoiceQuestion]
) -> ChoiceData:
    questions = [question for _, question in read_lines(file, read)]
    return ChoiceData(_unique(questions, file), digest_of(file))


def _unique(
    questions: Sequence[ChoiceQuestion], file: Path
) -> tuple[ChoiceQuestion, ...]:
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise EvaluationDataError(
                f"{file.name} contains {question.question[:60]!r} twice."
            )
        seen.add(question.id)
    return tuple(questions)


def _categories(table: Path) -> dict[str, str]:
    with table.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    if rows and not {"Question", "Category"} <= rows[0].keys():
        raise misread(table, "TruthfulQA's table")
    return {plain_question(row["Question"]): row["Category"] for row in rows}
