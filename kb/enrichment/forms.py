"""The three agents' tasks as forms: what is given, what is to be filled in, examples.

A form says nothing of how it is filled in. A small model gets its frame written for it and
fills one line after the other; a server gets the same fields as a JSON schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

PROMPT_VERSION: Final = "enrich-1"
"""Changes when a form does; stored with every proposal."""

QUESTION_LIMIT: Final = 300
ANSWER_LIMIT: Final = 600
SENTENCE_LIMIT: Final = 900


@dataclass(frozen=True, slots=True)
class Slot:
    """One field to fill in: a line of text, or a choice among anchored words.

    Attributes:
        name: In the schema and among the values.
        label: What stands before it where the frame is written.
        limit: Most characters of a text.
        anchors: For a confidence: words, each with the number in [0, 1] that it means.
    """

    name: str
    label: str
    description: str
    limit: int = 0
    anchors: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Form:
    """One agent's task.

    Attributes:
        given: Names and labels of what the model is given, in order.
        last: Name of the last slot that is filled in; "" for all of them.
        examples: Values of what is given and then of the slots, in order; in no data
            set that this project measures on.
    """

    name: str
    instructions: str
    given: tuple[tuple[str, str], ...]
    slots: tuple[Slot, ...]
    examples: tuple[tuple[str, ...], ...]
    last: str = ""

    @property
    def wanted(self) -> tuple[Slot, ...]:
        """The slots that are filled in."""
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
