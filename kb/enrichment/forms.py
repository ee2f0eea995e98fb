"""The forms that the three agents fill in, reading them, and the protocol of a writer.

A form does not determine how it is filled in. For a small model the frame is written
and it fills one line after the other; a server gets the same fields as a JSON schema.
"""

import json
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol

import jsonschema
from pydantic import TypeAdapter

PROMPT_VERSION: Final = "enrich-1"
"""Changes with the forms; stored with every proposal."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One field to fill in: a line of text, or a choice among anchored words."""

    name: str
    label: str  # what precedes it when the frame is written
    description: str
    limit: int = 0  # most characters of a text
    anchors: tuple[tuple[str, float], ...] = ()  # words with numbers in [0, 1]


@dataclass(frozen=True, slots=True)
class Form:
    name: str
    instructions: str
    given: tuple[tuple[str, str], ...]  # names and labels, in order
    slots: tuple[Slot, ...]
    examples: tuple[tuple[str, ...], ...]  # from none of the evaluation data sets
    last: str = ""  # name of the last slot to fill in; "" for all of them

    @property
    def wanted(self) -> tuple[Slot, ...]:
        names = [slot.name for slot in self.slots]
        return self.slots[: names.index(self.last) + 1] if self.last else self.slots

    def schema(self) -> Mapping[str, object]:
        """Return a JSON schema of the slots to fill in; a confidence is in [0, 1]."""
        return {
            "type": "object",
            "properties": {slot.name: _property(slot) for slot in self.wanted},
            "required": [slot.name for slot in self.wanted],
            "additionalProperties": False,
        }


def _property(slot: Slot) -> Mapping[str, object]:
    if slot.anchors:
        return {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": slot.description,
        }
    return {
        "type": "string",
        "minLength": 1,
        "maxLength": slot.limit,
        "description": slot.description,
    }


_FORMS: Final = TypeAdapter(dict[str, Form]).validate_python(
    tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
)
QUESTIONS: Final = _FORMS["question"]
ANSWERS: Final = _FORMS["answer"]
# The same form without the confidence, to see whether the answer stays the same.
ANSWERS_AGAIN: Final = replace(ANSWERS, name="answer again", last="answer")
SENTENCES: Final = _FORMS["sentence"]
QUESTION_LIMIT: Final = QUESTIONS.slots[0].limit

_MAX_REPLY = 20_000
# Control and format characters, surrogates, private use, unassigned.
_NO_TEXT = frozenset(("Cc", "Cf", "Cs", "Co", "Cn"))
# A model caught in a loop repeats the same text over and over.
_RUNAWAY = re.compile(r"(.{1,40}?)\1{7,}")


def read_reply(form: Form, reply: str) -> dict[str, str | float] | None:
    """Return the values of a JSON object that matches the form exactly, else None."""
    if len(reply) > _MAX_REPLY:
        return None
    try:
        found = json.loads(reply, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return read_values(form, found) if isinstance(found, dict) else None


def read_values(
    form: Form, values: Mapping[str, object]
) -> dict[str, str | float] | None:
    tidied = {
        name: tidy(value) if isinstance(value, str) else value
        for name, value in values.items()
    }
    if not _validator(form).is_valid(tidied):
        return None
    read: dict[str, str | float] = {}
    for slot in form.wanted:
        value = tidied[slot.name]
        if isinstance(value, str):
            if _RUNAWAY.search(value) or not any(c.isalnum() for c in value):
                return None
            read[slot.name] = value
        elif isinstance(value, (int, float)):
            read[slot.name] = float(value)
    if form is QUESTIONS and not str(read["question"]).endswith(("?", "\uff1f")):
        return None
    return read


def tidy(text: str) -> str:
    """Return a text on one line, in NFC, without characters that are not text."""
    shown = "".join(
        " " if c.isspace() else c
        for c in text
        if c.isspace() or unicodedata.category(c) not in _NO_TEXT
    )
    return " ".join(unicodedata.normalize("NFC", shown).split())


@lru_cache(maxsize=16)
def _validator(form: Form) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(dict(form.schema()))


def _refuse(name: str) -> object:
    raise ValueError(name)


@dataclass(frozen=True, slots=True)
class Completion:
    """A completed form: checked values by slot, a confidence in [0, 1].

    `log_probability` is the mean natural log-probability of the tokens of the first
    text slot; None if the model does not report it.
    """

    values: Mapping[str, str | float]
    log_probability: float | None

    def text(self, name: str) -> str:
        return str(self.values[name])


class Writer(Protocol):
    """A language model that fills in forms."""

    @property
    def name(self) -> str:
        """The model's display name."""

    @property
    def fingerprint(self) -> str:
        """64 hex digits that identify the model and how it is asked."""

    def fill_in(
        self,
        form: Form,
        given: Sequence[Mapping[str, str]],
        *,
        temperature: float,
        seed: int,
    ) -> Sequence[Completion | None]:
        """Fill the form in once for each of `given`, in their order.

        Returns:
            The completions, with None for an unreadable reply.

        Raises:
            UnavailableError: The model is not available now.
        """
