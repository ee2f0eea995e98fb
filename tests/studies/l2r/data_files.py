"""Small data files in the formats of the data sets, written by us."""

import csv
import json
from pathlib import Path
from typing import Any

TRUTHFULQA: list[dict[str, Any]] = [
    {
        "question": "How many legs does a healthy spider have?",
        "mc1_targets": {
            "A spider has eight legs": 1,
            "A spider has six legs": 0,
            "A spider has ten legs": 0,
        },
        "mc2_targets": {
            "A spider has eight legs": 1,
            "Spiders walk on eight legs": 1,
            "A spider has six legs": 0,
            "A spider has ten legs": 0,
        },
    },
    {
        "question": "Which metal is liquid at room temperature?",
        "mc1_targets": {"Mercury is liquid": 1, "Iron is liquid": 0},
        "mc2_targets": {
            "Mercury is liquid": 1,
            "Iron is liquid": 0,
            "Gold is liquid": 0,
        },
    },
    {
        "question": "What is the tallest kind of tree?",
        "mc1_targets": {"The coast redwood": 1, "The oak": 0, "The pear tree": 0},
        "mc2_targets": {"The coast redwood": 1, "The oak": 0, "The pear tree": 0},
    },
    {
        "question": "When do swallows leave for the south?",
        "mc1_targets": {"Swallows leave in autumn": 1, "Swallows leave in spring": 0},
        "mc2_targets": {"Swallows leave in autumn": 1, "Swallows leave in spring": 0},
    },
]


def write_truthfulqa(directory: Path, rows: list[dict[str, Any]] | None = None) -> Path:
    folder = directory / "truthfulqa"
    folder.mkdir(parents=True, exist_ok=True)
    rows = TRUTHFULQA if rows is None else rows
    (folder / "mc_task_random.json").write_text(json.dumps(rows, indent=4))
    with (folder / "TruthfulQA.csv").open(
        "w", encoding="utf-8-sig", newline=""
    ) as file:
        writer = csv.writer(file)
        writer.writerow(["Type", "Category", "Question", "Best Answer"])
        writer.writerows(["Plain", "Nature", row["question"], "x"] for row in rows)
    return directory


def write_commonsenseqa(directory: Path) -> Path:
    folder = directory / "commonsenseqa"
    folder.mkdir(parents=True, exist_ok=True)
    choices = [("A", "garage"), ("B", "ocean"), ("C", "sky")]
    row = {
        "answerKey": "B",
        "id": "c1",
        "question": {
            "question_concept": "whale",
            "choices": [{"label": label, "text": text} for label, text in choices],
            "stem": "Where does a whale live?",
        },
    }
    (folder / "dev.jsonl").write_text(json.dumps(row) + "\n")
    return directory


def write_medqa(
    directory: Path, texts: tuple[str, ...] = ("rest", "run", "sing")
) -> Path:
    folder = directory / "medqa"
    folder.mkdir(parents=True, exist_ok=True)
    row = {
        "question": "A runner sprained an ankle. What helps first?",
        "answer": texts[0],
        "options": dict(zip("ABC", texts, strict=True)),
        "meta_info": "step1",
        "answer_idx": "A",
    }
    (folder / "test.jsonl").write_text(json.dumps(row) + "\n")
    return directory
