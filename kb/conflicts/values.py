"""What is judged and what the judgement says: plain frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kb.text.words import Span


class Kind(StrEnum):
    """How two entries stand to each other."""

    DUPLICATE = "duplicate"
    CONTRADICTION = "contradiction"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Statement:
    """What an entry says.

    Attributes:
        text: What it states, or its answer.
        question: The question that it answers, "" for a plain statement.
        language: Two letters; decides how words are stemmed.
    """

    text: str
    question: str = ""
    language: str = "en"


@dataclass(frozen=True, slots=True)
class Clash:
    """Why two statements can not both be right.

    Attributes:
        signal: Its name: value, negation, axis, direction, answer.
        first: Where it stands in the first text; None where it is what is missing there.
        second: The same in the second.
        why: In words, for the curator.
    """

    signal: str
    first: Span | None
    second: Span | None
    why: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a language model holds of two statements.

    Attributes:
        duplicate: Probability in [0, 1]; the three sum to 1.
        contradiction: The same.
        different: The same.
        name: The model's, as people know it.
        fingerprint: 64 hex digits of the model and its way of being asked.
    """

    duplicate: float
    contradiction: float
    different: float
    name: str
    fingerprint: str

    def of(self, kind: Kind) -> float:
        return {
            Kind.DUPLICATE: self.duplicate,
            Kind.CONTRADICTION: self.contradiction,
            Kind.DIFFERENT: self.different,
        }[kind]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What two statements are to each other.

    Attributes:
        score: Probability of `kind` in [0, 1].
        same_matter: Probability in [0, 1] that both speak of the same matter.
        clashes: What speaks against both being right, strongest first; may be non-empty
            for a kind other than contradiction.
        signals: Every measured number by name, for the record.
        probabilities: Of each kind in [0, 1]; they sum to 1.
        opinion: The language model's that is in it, None where none was asked for.
    """

    kind: Kind
    score: float
    same_matter: float
    clashes: tuple[Clash, ...]
    signals: Mapping[str, float]
    probabilities: Mapping[Kind, float]
    opinion: Opinion | None = None
