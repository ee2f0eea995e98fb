"""The seven sets in their public layouts, small and made up here, and texts beside them."""

import csv
import json
from pathlib import Path

from tests.qa.evaluation import data_sets

TOWNS = (
    "Arlen",
    "Brück",
    "Castrop",
    "Dorne",
    "Elm",
    "Farn",
    "Gorm",
    "Hals",
    "Ising",
    "Jurk",
)


def write_all(directory: Path, *, towns: tuple[str, ...] = TOWNS) -> Path:
    """Write every set with a question a town; the answer is the town's name in capitals."""
    data_sets.squad2(directory)
    asked = [f"Which town is called {town} by its people" for town in towns]
    answers = [[town, f"town of {town}"] for town in towns]
    both = list(zip(asked, answers, strict=True))
    _lines(
        directory / "nq_open/NQ-open.dev.jsonl",
        [{"question": f"{q} (nq)", "answer": a} for q, a in both],
    )
    _lines(
        directory / "triviaqa/triviaqa_test.jsonl",
        [
            {"id": f"t{n}", "question": f"{q} (trivia)", "answers": a}
            for n, (q, a) in enumerate(both)
        ],
    )
    _lines(
        directory / "popqa/popqa_longtail.jsonl",
        [
            {"id": n, "question": f"{q} (pop)", "answers": a, "prop": "name"}
            for n, (q, a) in enumerate(both)
        ],
    )
    _json(
        directory / "webquestions/test.json",
        [
            {"qId": f"w{n}", "qText": f"{q} (web)", "answers": a}
            for n, (q, a) in enumerate(both)
        ],
    )
    _lines(
        directory / "freshqa/FreshQA.jsonl",
        [
            {"id": n, "question": f"{q} today", "answer_0": a[0], "answer_1": a[1]}
            for n, (q, a) in enumerate(both)
        ],
    )
    _json(
        directory / "selfaware/SelfAware.json",
        {
            "example": [
                data_sets.row(question_id=n, question=f"{q} (self)", answer=a)
                for n, (q, a) in enumerate(both)
            ]
            + [
                data_sets.row(
                    question_id=100 + n,
                    question=f"What does {town} dream?",
                    answer=None,
                )
                for n, town in enumerate(towns)
            ]
        },
    )
    _table(
        directory / "truthfulqa/TruthfulQA.csv",
        ["Question", "Best Answer", "Correct Answers", "Incorrect Answers"],
        [
            [f"{q} (true)", f"It is {a[0]}", f"{a[0]} it is; {a[0]}", "It has no name"]
            for q, a in both
        ],
    )
    _table(
        directory / "true_false/towns_true_false.csv",
        ["statement", "label"],
        [[f"{town} is a town.", 1] for town in towns]
        + [[f"{town} is a river.", 0] for town in towns],
    )
    _lines(
        directory / "doc2dial/documents.jsonl",
        [
            {
                "_id": "d1",
                "domain": "towns",
                "title": "Offices",
                "text": "An office opens at nine. " * 60,
            }
        ],
    )
    return directory


def _lines(file: Path, rows: list[dict[str, object]]) -> None:
    _text(file, "".join(f"{json.dumps(row)}\n" for row in rows))


def _json(file: Path, content: object) -> None:
    _text(file, json.dumps(content))


def _table(file: Path, heads: list[str], rows: list[list[object]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8-sig", newline="") as stream:
        csv.writer(stream).writerows([heads, *rows])


def _text(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
