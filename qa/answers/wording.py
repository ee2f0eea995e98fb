"""What gates, signals, reasons and numbers are called where people read them."""

from collections.abc import Mapping
from dataclasses import dataclass

from qa.pipeline.gates import Gate
from qa.pipeline.policy import Policy
from qa.pipeline.rules import Kind


@dataclass(frozen=True, slots=True)
class GateWords:
    """What pages call a gate.

    Attributes:
        stages: Whose time it takes: what it waits for and its own.
        answers: Whether it answers, or lets the question go on.
        is_optional: Whether it is shown only where it measured something.
    """

    name: str
    question: str
    doing: str
    done: str
    stages: tuple[str, ...]
    answers: bool = False
    is_optional: bool = False

    @property
    def stage_words(self) -> tuple[str, str]:
        return (self.doing, self.done)


GATES: Mapping[Gate, GateWords] = {
    Gate.VERBATIM: GateWords(
        "Word for word",
        "Has an expert already answered exactly this question?",
        "Looking for an exact answer",
        "Exact answers compared",
        ("verbatim",),
        answers=True,
    ),
    Gate.HARD_REFUSAL: GateWords(
        "Hard refusal",
        "Is any entry close enough to the question?",
        "Checking how close the evidence is",
        "Distance checked",
        ("hard_refusal",),
    ),
    Gate.ENTRY: GateWords(
        "Entry",
        "Does an entry answer the question by itself?",
        "Reading the entries found",
        "Entries read",
        ("verify", "entry"),
        answers=True,
        is_optional=True,
    ),
    Gate.BOUNDARY: GateWords(
        "Own knowledge",
        "Does the language model know the answer by itself?",
        "Checking what the model knows itself",
        "Own knowledge checked",
        ("boundary_load", "boundary", "recall", "monitored"),
        answers=True,
        is_optional=True,
    ),
    Gate.SOFT_REFUSAL: GateWords(
        "Soft refusal",
        "Does the evidence really answer the question?",
        "Checking the draft",
        "Draft checked",
        ("rerank", "load", "generate", "debias", "support", "soft_refusal"),
    ),
    Gate.ABSTENTION: GateWords(
        "Abstention",
        "Is the answer reliable enough?",
        "Checking the confidence",
        "Confidence checked",
        ("abstention",),
    ),
    Gate.AGREEMENT: GateWords(
        "Agreement",
        "Do the sources agree with each other?",
        "Comparing the sources",
        "Sources compared",
        ("agreement",),
        is_optional=True,
    ),
}

# stage -> what is being done while it runs, and its name once done
STAGES = {
    "question": ("Reading the question", "Question read"),
    "boundary_load": ("Starting the language model", "Language model ready"),
    Gate.BOUNDARY.value: GATES[Gate.BOUNDARY].stage_words,
    "monitored": (
        "Writing, and searching where a word is uncertain",
        "Written and monitored",
    ),
    "recall": ("Writing from the model's own knowledge", "Answer drafted"),
    "retrieve.embed": ("", "Search: embedding the question"),
    "retrieve.sql": ("", "Search: database query"),
    "retrieve": ("Searching the knowledge base", "Searched"),
    "rerank": ("Ranking the results", "Results reranked"),
    "debias": ("Comparing with past verdicts", "Compared with past verdicts"),
    Gate.VERBATIM.value: GATES[Gate.VERBATIM].stage_words,
    Gate.HARD_REFUSAL.value: GATES[Gate.HARD_REFUSAL].stage_words,
    "verify": ("Reading the entries found", "Entries read"),
    Gate.ENTRY.value: GATES[Gate.ENTRY].stage_words,
    "load": ("Starting the language model", "Language model ready"),
    "generate": ("Reading the evidence and writing", "Answer drafted"),
    "support": ("Checking every statement against the evidence", "Statements checked"),
    Gate.SOFT_REFUSAL.value: GATES[Gate.SOFT_REFUSAL].stage_words,
    Gate.ABSTENTION.value: GATES[Gate.ABSTENTION].stage_words,
    Gate.AGREEMENT.value: GATES[Gate.AGREEMENT].stage_words,
    "mark": ("Marking the words that answer", "Words that answer marked"),
    "outcome": ("Finishing", "Stored"),
}


def distance_in_words(distance: float, policy: Policy) -> str:
    """Say how far a distance in [0, 2] is, on the scale of the policy's own limits."""
    if distance <= policy.verbatim_distance:
        return "very close"
    if distance < policy.alpha:
        return "close"
    if distance <= policy.horizon:
        return "far"
    return "unrelated"


def confidence_in_words(confidence: float) -> str:
    words = {1.0: "certain", 0.9: "high", 0.75: "fair"}
    return next((word for low, word in words.items() if confidence >= low), "low")


def time_in_words(milliseconds: float) -> str:
    if milliseconds < 1:
        return "under 1 ms"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1_000:.1f} s"


def number_in_words(value: float | None, kind: Kind = Kind.NUMBER) -> str:
    if value is None:
        return "none"
    match kind:
        case Kind.YES_NO:
            return "yes" if value else "no"
        case Kind.COUNT:
            return f"{value:,.0f}"
        case Kind.NUMBER:
            return f"{value:.2f}"
