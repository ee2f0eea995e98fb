"""Reading the data sets: TruthfulQA's multiple choice, CommonsenseQA, MedQA."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qa.evaluation.cases import plain_question, question_id, read_lines
from qa.evaluation.suites.files import digest_of, find_file, misread, read_json
from qa.exceptions import EvaluationDataError

from .values import ChoiceQuestion, shuffled


@dataclass(frozen=True, slots=True)
class ChoiceData:
    """A data set as one task shows it; `digest` is of the files that it came from."""

    questions: tuple[ChoiceQuestion, ...]
    digest: str


def read_truthfulqa(data: Path | None, *, several: bool, seed: int) -> ChoiceData:
    """Read the multiple-choice file; categories from the table beside it, if it is there.

    The file that Learn to Refuse evaluated on names the right option first in every
    row. Options are shuffled here, so it makes no difference which one is read.

    Args:
        several: Whether to read MC2 (every right option), and not MC1 (the one).
        seed: Of the options' order.

    Raises:
        EvaluationDataError: The file is missing or laid out otherwise.
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
    """Read CommonsenseQA's own JSON Lines; the group is the question's concept.

    Raises:
        EvaluationDataError: The file is missing or laid out otherwise.
    """
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
    """Read MedQA's JSON Lines; the group is the step of the examination.

    Raises:
        EvaluationDataError: The file is missing or laid out otherwise.
    """
    file = find_file("medqa", data, "medqa/*.jsonl")

    def read(row: Mapping[str, Any]) -> ChoiceQuestion:
        question = str(row["question"])
        # The same words are asked with other options: both make the id.
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
    """Make a question of labelled choices, of which `key` is the right one's label.

    Labels are looked up whole and not kept: the options are shuffled and numbered anew.
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
                f"{file.name}: {question.question[:60]!r} stands there twice."
            )
        seen.add(question.id)
    return tuple(questions)


def _categories(table: Path) -> dict[str, str]:
    with table.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    if rows and not {"Question", "Category"} <= rows[0].keys():
        raise misread(table, "TruthfulQA's table")
    return {plain_question(row["Question"]): row["Category"] for row in rows}
