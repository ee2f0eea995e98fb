"""The verifier's study asks the data sets that are there and names the others."""

import json

import pytest

from qa.exceptions import TrainingDataError
from studies.verifier import Command

INTENTS = {
    "card lost": ["i lost my card", "my card is gone", "i can't find my card"],
    "opening hours": ["when do you open", "are you open on sunday", "your hours"],
}
TEST = [
    ["help, i have lost my card", "card lost"],
    ["where is my card, it is lost", "card lost"],
    ["when are you open", "opening hours"],
    ["are you open on saturday", "opening hours"],
]


def measured(directory):
    asked = {"data": directory, "questions": 5, "seed": 0}
    return Command().measure(asked, lambda *_: None)


@pytest.mark.verifier
def test_sets_that_are_there_are_asked_and_the_others_named(tmp_path):
    train = [[text, intent] for intent, texts in INTENTS.items() for text in texts]
    rows = {"train": train, "test": TEST, "oos_test": [["who won the cup", "oos"]]}
    (tmp_path / "data_full.json").write_text(json.dumps(rows))

    outcome = measured(tmp_path)

    assert [row[:2] for row in outcome.tables[0].rows] == [("CLINC150", "5")]
    absent = [
        note for note in outcome.notes if note.startswith("Not asked: There is no")
    ]
    assert len(absent) == 5


def test_without_any_of_them_the_missing_file_is_named(tmp_path):
    with pytest.raises(TrainingDataError, match=r"no squad-v2\.0-24-articles\.json"):
        measured(tmp_path)
