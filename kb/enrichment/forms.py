"""The forms that the three agents fill in: tasks, reading what was written, the writer's protocol.

A form says nothing of how it is filled in. A small model gets its frame written for it and
fills one line after the other; a server gets the same fields as a JSON schema.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Protocol

import jsonschema

PROMPT_VERSION: Final = "enrich-1"
"""Changes when a form does; stored with every proposal."""

QUESTION_LIMIT: Final = 300
ANSWER_LIMIT: Final = 600
SENTENCE_LIMIT: Final = 900


@dataclass(frozen=True, slots=True)
class Slot:
    """One field to fill in: a line of text, or a choice among anchored words."""

    name: str
    label: str  # what precedes it where the frame is written
    description: str
    limit: int = 0  # most characters of a text
    anchors: tuple[tuple[str, float], ...] = ()  # words with numbers in [0, 1]


@dataclass(frozen=True, slots=True)
class Form:
    """One agent's task."""

    name: str
    instructions: str
    given: tuple[tuple[str, str], ...]  # names and labels, in order
    slots: tuple[Slot, ...]
    examples: tuple[tuple[str, ...], ...]  # of no data set that is measured on
    last: str = ""  # name of the last slot that is filled in; "" for all of them

    @property
    def wanted(self) -> tuple[Slot, ...]:
        names = [slot.name for slot in self.slots]
        return self.slots[: names.index(self.last) + 1] if self.last else self.slots

    def schema(self) -> Mapping[str, object]:
        """Return what is wanted as a JSON schema; a confidence is a number in [0, 1]."""
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


QUESTIONS: Final = Form(
    name="question",
    instructions=(
        "Write another question about the same subject as the one given, which has one "
        "short factual answer. Keep to the language of the question given."
    ),
    given=(("seed", "Given"),),
    slots=(
        Slot(
            "question",
            "Another",
            "Another question on the subject, on one line, ending in a question mark.",
            limit=QUESTION_LIMIT,
        ),
    ),
    examples=(
        ("What is the capital of Australia?", "Which river flows through Canberra?"),
        ("How long may I keep a library book?",
         "What does it cost to return a library book late?"),
        ("Is a whale a fish?", "How long can a whale stay under water?"),
        ("Who wrote Don Quixote?", "In which year did Don Quixote first appear?"),
    ),
)  # fmt: skip

ANSWERS: Final = Form(
    name="answer",
    instructions=(
        "Answer each question truthfully in a few words or one short sentence, and say "
        "how sure you are. Never decline to answer: put any doubt into the confidence. "
        "Keep to the language of the question."
    ),
    given=(("question", "Question"),),
    slots=(
        Slot(
            "answer", "Answer", "The answer, on one line, at most 40 words.",
            limit=ANSWER_LIMIT,
        ),
        Slot(
            "confidence", "Sure",
            "How sure you are that the answer is true: 1 certainly, 0.5 as likely as "
            "not, 0 a mere guess.",
            anchors=(("certain", 1.0), ("unsure", 0.5), ("guess", 0.0)),
        ),
    ),
    examples=(
        ("What is the capital of Australia?", "Canberra, not Sydney.", "certain"),
        ("Who will win the next election?", "Probably the party in power.", "guess"),
        ("How long does light take from the Sun to the Earth?",
         "About eight minutes.", "certain"),
        ("How many people lived in Rome in the year 100?", "About a million.", "unsure"),
        ("Can the Great Wall of China be seen from the Moon?",
         "No, it is far too narrow to be seen from there.", "certain"),
        ("What was Ms Ostermark's first telephone number?", "Perhaps 4711.", "guess"),
        ("Does iron float on mercury?", "Yes, mercury is denser than iron.", "certain"),
        ("Do bats lay eggs?", "No, bats bear live young.", "certain"),
        ("Which language is the hardest to learn?",
         "It depends on the languages one speaks already.", "unsure"),
    ),
)  # fmt: skip

# The same form again, to see whether the answer is the same: nobody asks how sure it is.
ANSWERS_AGAIN: Final = replace(ANSWERS, name="answer again", last="answer")

SENTENCES: Final = Form(
    name="sentence",
    instructions=(
        "Say question and answer in one declarative sentence that is understood without "
        "the question. Add nothing, leave nothing out, keep the language."
    ),
    given=(("question", "Question"), ("answer", "Answer")),
    slots=(
        Slot("sentence", "Fact", "One declarative sentence, on one line.",
             limit=SENTENCE_LIMIT),
    ),
    examples=(
        ("What is the capital of Australia?", "Canberra, not Sydney.",
         "The capital of Australia is Canberra, not Sydney."),
        ("Can the Great Wall of China be seen from the Moon?",
         "No, it is far too narrow to be seen from there.",
         "The Great Wall of China cannot be seen from the Moon, because it is far too "
         "narrow."),
        ("How long does light take from the Sun to the Earth?", "About eight minutes.",
         "Light takes about eight minutes from the Sun to the Earth."),
        ("Does iron float on mercury?", "Yes, mercury is denser than iron.",
         "Iron floats on mercury, because mercury is denser than iron."),
        ("Do bats lay eggs?", "No, bats bear live young.",
         "Bats do not lay eggs; they bear live young."),
        ("Who wrote Don Quixote?", "Miguel de Cervantes",
         "Don Quixote was written by Miguel de Cervantes."),
        ("What happens when water is cooled below 0 degrees?", "It freezes.",
         "When water is cooled below 0 degrees, it freezes."),
    ),
)  # fmt: skip


_MAX_REPLY = 20_000
# Control and format characters, halves of surrogate pairs, private use, unassigned.
_NO_TEXT = frozenset(("Cc", "Cf", "Cs", "Co", "Cn"))
# A model that has run away says the same over and over.
_RUNAWAY = re.compile(r"(.{1,40}?)\1{7,}")


def read_reply(form: Form, reply: str) -> dict[str, str | float] | None:
    """Return the values of a JSON object that fills the form in exactly, else None."""
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
    """Return a text on one line, in NFC, without what is no text."""
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
    """A form filled in: checked values by slot, a confidence in [0, 1].

    `log_probability` is the mean natural log-probability of the tokens of the first text
    slot; None where the model does not tell.
    """

    values: Mapping[str, str | float]
    log_probability: float | None

    def text(self, name: str) -> str:
        return str(self.values[name])


class Writer(Protocol):
    """A language model that fills in forms."""

    @property
    def name(self) -> str:
        """As people know the model."""

    @property
    def fingerprint(self) -> str:
        """64 hex digits that tell it from every other model and way of asking."""

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
            None in the place of a reply that can't be read.

        Raises:
            UnavailableError: The model is not available now.
        """
