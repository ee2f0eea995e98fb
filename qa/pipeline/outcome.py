"""A question as data: each stage takes earlier values and returns one new frozen value.

No Django, no torch: whatever reaches into a database or a model is a Protocol that is
handed in.
"""

from dataclasses import dataclass
from enum import StrEnum

from .activations import Confidence
from .evidence import Contradiction, Evidence, Retrieval
from .gates import Decision, Gate, Reason, Signal
from .generation import Citation, Generation
from .policy import Policy
from .segment import Segment


class Calibration(StrEnum):
    """Whether the policy's thresholds hold for the models that are running."""

    HAND_SET = "hand_set"
    CURRENT = "current"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, cleaned: NFC, no control characters, trimmed."""

    text: str
    language: str = "en"


@dataclass(frozen=True, slots=True)
class Boundary:
    """Whether the model answers by itself, before anything is looked for.

    Attributes:
        is_known: Whether it is sure enough.
        is_answered: Whether it wrote an answer that stands.
        fingerprint: Of what told it.
        examples: Ids of the past questions that it was decided by, nearest first.
        segments: What was watched while it was written, in order.
    """

    is_known: bool
    fingerprint: str
    examples: tuple[str, ...]
    signals: tuple[Signal, ...]
    is_answered: bool = False
    segments: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class VerbatimMatch:
    """The verified question-and-answer entry that is returned word for word, if any."""

    evidence: Evidence | None
    signals: tuple[Signal, ...]


@dataclass(frozen=True, slots=True)
class Support:
    """What of a generation stands in the evidence that it cites.

    Attributes:
        citations: Those whose number was among the evidence and whose quote stands in
            the entry; where the model quoted nothing, the sentence that fits best.
        dropped: How many claimed citations failed that.
        unsupported: What the answer says and no cited entry does: numbers, dates, a
            negation that was added or lost.
        answer_overlap: Share of the answer's content words in [0, 1] that stand in the
            cited entries; None where it has none.
        question_overlap: The same of the question's.
    """

    citations: tuple[Citation, ...]
    dropped: int
    unsupported: tuple[str, ...]
    answer_overlap: float | None
    question_overlap: float | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether what an answer rests on is contradicted by what was found beside it."""

    contradictions: tuple[Contradiction, ...]
    decision: Decision


@dataclass(frozen=True, slots=True)
class StageTime:
    """How long one stage took; "stage.part" is a part of it, in its time already."""

    stage: str
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything a question came to, so that it can be explained and replayed.

    Attributes:
        gate: The gate that refused, VERBATIM for a verbatim answer, BOUNDARY for one that
            rests on the model's own knowledge, else None.
        reason: Set exactly when refused.
        shown_reason: What the asker may be told (`reason`, unless the policy hides it).
        evidence: What the language model saw; for a verbatim answer the one entry;
            empty where no model was asked.
        near_misses: Entries within the horizon that a refusal did not answer from,
            never citations. A soft refusal's are what the model saw.
        confidence: What the probes made of the draft; None where none was asked.
        probes: Fingerprints of those in force, separated by spaces; "" where there are
            none or no language model was asked.
        contradictions: Between what the answer rests on and other evidence; where there
            are any, both entries are among `evidence` or `near_misses`.
        language_model: Fingerprint of the one that answered from evidence; "" where it was
            not asked. What the model answered by itself has `boundary.fingerprint`.
        boundary: What was decided before anything was looked for; None in the scope of
            the knowledge base.
    """

    question: Question
    policy: Policy
    answered: bool
    gate: Gate | None
    reason: Reason | None
    shown_reason: Reason | None
    answer: str
    reasoning: str
    citations: tuple[Citation, ...]
    evidence: tuple[Evidence, ...]
    near_misses: tuple[Evidence, ...]
    signals: tuple[Signal, ...]
    times: tuple[StageTime, ...]
    calibration: Calibration
    embedder: str
    language_model: str
    generation: Generation | None = None
    confidence: Confidence | None = None
    probes: str = ""
    contradictions: tuple[Contradiction, ...] = ()
    boundary: Boundary | None = None


StageValue = (
    Question
    | Boundary
    | Retrieval
    | VerbatimMatch
    | Decision
    | Generation
    | Support
    | Confidence
    | Outcome
)


def stage_of(value: StageValue) -> str:
    """Return the name of the stage that made `value`, as `Outcome.times` calls it.

    A confidence is the first half of "abstention", and is in its time.
    """
    match value:
        case Question():
            return "question"
        case Boundary():
            return "boundary"
        case Retrieval():
            return "retrieve"
        case VerbatimMatch():
            return "verbatim"
        case Decision(gate=gate):
            return gate.value
        case Generation():
            return "generate"
        case Support():
            return "support"
        case Confidence():
            return "confidence"
        case Outcome():
            return "outcome"
