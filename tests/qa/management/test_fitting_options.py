"""What no reranker can be fitted with is refused before anything is read."""

import pytest
from django.core.management import CommandError, call_command

FIT = ("train", "reranker", "preferences.jsonl", "--output", "reranker")
MAKE = ("make_preferences", "questions.jsonl", "--output", "preferences.jsonl")


@pytest.mark.parametrize(
    ("command", "option", "value", "said"),
    [
        (FIT, "--group", "1", "1 is less than 2"),
        (FIT, "--group", "two", "two is not a whole number"),
        (FIT, "--max-tokens", "4", "4 is less than 8"),
        (FIT, "--max-tokens", "65537", "65537 is more than 65,536"),
        (FIT, "--batch", "0", "0 is not a positive number"),
        (FIT, "--epochs", "0", "0 is not a positive number"),
        (FIT, "--patience", "0", "0 is not a positive number"),
        (FIT, "--temperature", "0", "0 is not above 0"),
        (FIT, "--learning-rate", "nan", "nan is not above 0"),
        (FIT, "--clip", "inf", "inf is not above 0"),
        (FIT, "--warm-up", "1.5", "1.5 is not between 0 and 1"),
        (MAKE, "--margin", "-1", "-1 is not between 0 and 1"),
    ],
)
def test_an_impossible_option_is_refused_with_its_value(command, option, value, said):
    with pytest.raises(CommandError, match=f"argument {option}: {said}"):
        call_command(*command, f"{option}={value}")
