"""What is said of a refusal, in every language that there is a file of."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from django.conf import settings

from accounts.models import Preferences
from qa.pipeline.gates import Reason
from qa.policies import wording
from qa.policies.wording import WORDS, words_in

FOLDER = Path(wording.__file__).parent
# Where labels are named, and how: `words.labels.undo` in a template, labels["undo"] and
# lists of names in Python, `words.undo` in the widget.
NAMED = (
    ("templates/qa", "*.html", r"\blabels\.(\w+)"),
    ("nescio/static/nescio", "widget.js", r"\bwords\.(?!language\b)(\w+)"),
)
PROGRAMS = (
    "qa/answers/presentation.py",
    "integrations/chat/asking.py",
    "integrations/chat/slack.py",
    "integrations/widget/api.py",
    "qa/votes/models.py",
)


def texts(language: str) -> dict[str, str]:
    """Return the texts of a language's file by their dotted names."""

    def flat(table: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
        for name, value in table.items():
            if isinstance(value, dict):
                yield from flat(value, f"{path}{name}.")
            else:
                yield f"{path}{name}", value

    file = FOLDER / f"wording.{language}.toml"
    return dict(flat(tomllib.loads(file.read_text("utf-8")), ""))


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", WORDS)
def test_every_language_says_all_that_english_says_and_fills_in_the_same(language):
    english, spoken = texts("en"), texts(language)

    assert list(spoken) == list(english)
    for name, text in spoken.items():
        assert text == text.strip() != "", name
        assert placeholders(text) == placeholders(english[name]), name
        assert language == "en" or text != english[name], name


@pytest.mark.parametrize("language", WORDS)
def test_every_reason_has_its_words_and_steps_in_every_language(language):
    words = words_in(language)

    assert set(words.reasons) == set(Reason)
    for reason in words.reasons.values():
        said = (reason.title, reason.why, reason.asker, *reason.next_steps)
        assert reason.next_steps
        assert all(said)
        assert not any(placeholders(text) for text in said)
        assert all(text.endswith(".") for text in said[1:])
    report = words.reasons[Reason.NOTHING_KNOWN].next_steps[-1]
    assert words.labels["should_be_known"] in report


def test_all_languages_that_can_be_chosen_have_words_and_others_read_english():
    assert set(WORDS) >= set(Preferences.Language.values)
    assert words_in("xx") is words_in("fr") is WORDS["en"]


def test_every_label_that_is_named_is_there_and_every_one_is_named_somewhere():
    root, labels = Path(settings.BASE_DIR), set(WORDS["en"].labels)
    named = {
        found[1]
        for folder, files, pattern in NAMED
        for file in (root / folder).glob(files)
        for found in re.finditer(pattern, file.read_text("utf-8"))
    }
    programs = "".join((root / name).read_text("utf-8") for name in PROGRAMS)
    steps = set().union(*map(placeholders, texts("en").values()))
    unused = [
        name
        for name in labels - named - steps
        if f'"{name}"' not in programs and f"'{name}'" not in programs
    ]

    assert named <= labels
    assert not unused
