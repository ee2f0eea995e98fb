"""The values between stages: question, evidence, trace and outcome, each frozen."""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter
from typing import Final, ParamSpec, Protocol, TypeVar

from kb.types import Contradiction, Evidence, Excluded

from .gates import Decision, Gate, Reason, Signal
from .language_model import Citation, Confidence, Generation
from .policy import Policy


@dataclass(frozen=True, slots=True)
class Segment:
    """One sentence, as it was settled.

    Attributes:
        tokens: Its tokens; joined they give the text.
        confidences: Of each of them, in the unit of the monitor.
        weakest: The least confidence of a new word as it was written first, without
            evidence: what decided whether to look; None where no word was new.
        triggers: The words in doubt that evidence was looked for because of, in order;
            empty too where the first draft was a refusal.
        evidence: What the segment was written by at last.
        is_sourced: Whether it says something new, and all of that stands in evidence.
        doubt: Why it may not be shown; None where it may.
    """

    text: str
    tokens: tuple[str, ...]
    confidences: tuple[float, ...]
    weakest: float | None
    triggers: tuple[str, ...]
    queries: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    rounds: int
    is_sourced: bool
    doubt: Reason | None


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What one look found, best first; `deep` marks the second look before a refusal.

    `method` names the way of searching and its metric: thresholds hold for one.
    """

    evidence: tuple[Evidence, ...]
    visible: int
    route: str
    method: str
    embedder: str
    deep: bool
    embed_milliseconds: float
    sql_milliseconds: float


NOTHING_FOUND = Retrieval((), 0, "", "", "", False, 0.0, 0.0)


class Retriever(Protocol):
    """Search on behalf of one asker: entitlement and expiry are inside it."""

    def look(self, question: str, *, top_k: int, deep: bool) -> Retrieval:
        """Return evidence best first; `deep` spends more for certainty of recall."""

    def withheld(self, question: str) -> Sequence[Excluded]:
        """Return the nearest entry outside the scope for each cause, if any."""

    def contradictions(self, entry_ids: Sequence[int]) -> Sequence[Contradiction]:
        """Return the unsettled contradictions between any two of these entries."""

    def not_compared(self, entry_ids: Sequence[int]) -> Collection[int]:
        """Return which of these the conflict check has not read as they are now."""


class Calibration(StrEnum):
    """Whether the policy's thresholds hold for the models that are running."""

    HAND_SET = "hand_set"
    SELF_CALIBRATED = "self_calibrated"  # chosen by the knowledge base's own questions
    CURRENT = "current"  # from labelled answers
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, cleaned: NFC, no control characters, trimmed."""

    text: str
    language: str = "en"


@dataclass(frozen=True, slots=True)
class Boundary:
    """Whether the model answers by itself, by what it knows.

    Attributes:
        is_answered: Whether it wrote an answer.
        fingerprint: Of what decided it.
        examples: Ids of the past questions that it was decided by, nearest first.
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


NO_MATCH = VerbatimMatch(None, ())


@dataclass(frozen=True, slots=True)
class Support:
    """What of a generation stands in the evidence that it cites.

    Attributes:
        citations: Those whose number was among the evidence and whose quote stands in
            the entry; where the model quoted nothing, the sentence that fits best.
        dropped: How many claimed citations failed that.
        unsupported: What the answer says and no cited entry does: numbers, dates, a
            negation that was added or lost.
        sentence_support: Least probability in [0, 1], over the answer's sentences, that
            a cited entry carries it; None where nothing could tell.
        answer_overlap: Share of the answer's content words in [0, 1] that stand in the
            cited entries; None where it has none.
        question_overlap: The same of the question's.
    """

    citations: tuple[Citation, ...]
    dropped: int
    unsupported: tuple[str, ...]
    answer_overlap: float | None
    question_overlap: float | None
    sentence_support: float | None = None


@dataclass(frozen=True, slots=True)
class StageTime:
    """How long one stage took; "stage.part" is a part of it, in its time already."""

    stage: str
    milliseconds: float


P = ParamSpec("P")
T = TypeVar("T")


class Clock:
    def __init__(self) -> None:
        self._times: list[StageTime] = []

    def time(
        self, stage: str, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return what `call` returns and remember how long it took."""
        start = perf_counter()
        value = call(*args, **kwargs)
        self._times.append(StageTime(stage, (perf_counter() - start) * 1000))
        return value

    @property
    def times(self) -> tuple[StageTime, ...]:
        return tuple(self._times)


@dataclass(frozen=True, slots=True)
class Trace:
    """What is known of a question so far; stages add to it by `dataclasses.replace`.

    Attributes:
        boundary: What came of asking the model by itself; None where it was not asked.
        retrieval: What was found; of a monitored answer, what it was written by.
        entries: The verified entries that the verifier found to answer by themselves, the
            likeliest first; empty where none does.
        verifier: Its fingerprint; "" where none was asked.
        odds: {entry: log-odds, by the verifier, that it answers against that none does}.
        telling: Of each of `matches` the sentence that tells the answer; "" where none
            stands out.
        language_model: Fingerprint of the one that was asked to answer from evidence.
        probes: Fingerprints of the active ones; None where no such model was asked.
    """

    question: Question
    policy: Policy
    clock: Clock
    boundary: Boundary | None = None
    retrieval: Retrieval = NOTHING_FOUND
    verbatim: VerbatimMatch = NO_MATCH
    entries: tuple[Evidence, ...] = ()
    verifier: str = ""
    odds: Mapping[int, float] = field(default_factory=dict)
    telling: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    generation: Generation | None = None
    support: Support | None = None
    confidence: Confidence | None = None
    contradictions: tuple[Contradiction, ...] = ()
    language_model: str = ""
    probes: str | None = None

    @property
    def refusal(self) -> Decision | None:
        """The first decision that refused, unless the model's own knowledge answers."""
        if self.boundary is not None and self.boundary.is_answered:
            return None
        return next((gate for gate in self.decisions if gate.refused), None)

    @property
    def is_decided(self) -> bool:
        """Whether it was refused, or answered without a model that reads evidence."""
        is_answered = self.boundary is not None and self.boundary.is_answered
        return bool(self.refusal or self.matches or is_answered)

    @property
    def matches(self) -> tuple[Evidence, ...]:
        """The entries that are the answer: asked in the same words, or found to answer."""
        verbatim = self.verbatim.evidence
        return (verbatim,) if verbatim else self.entries

    @property
    def citations(self) -> tuple[Citation, ...]:
        return self.support.citations if self.support else ()

    @property
    def signals(self) -> tuple[Signal, ...]:
        """All that was measured so far, in order."""
        own = self.boundary.signals if self.boundary else ()
        by_evidence = (
            *self.verbatim.signals,
            *(signal for gate in self.decisions for signal in gate.signals),
        )
        is_first = self.policy.own_knowledge_first
        return (*own, *by_evidence) if is_first else (*by_evidence, *own)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything a question came to, so that it can be explained and replayed.

    Attributes:
        gate: The gate that refused, VERBATIM or ENTRY where an entry is the answer, BOUNDARY
            for one that rests on the model's own knowledge, else None.
        reason: Set exactly when refused.
        shown_reason: What the asker may read (`reason`, unless the policy hides it).
        evidence: What the language model saw; where an entry is the answer that one;
            empty where no model was asked.
        near_misses: Entries within the horizon that a refusal did not answer from,
            never citations. A soft refusal's are what the model saw.
        confidence: What the probes made of the draft; None where none was asked.
        probes: Fingerprints of the active ones, separated by spaces; "" where there are
            none or no language model was asked.
        contradictions: Between what the answer rests on and other evidence; where there
            are any, both entries are among `evidence` or `near_misses`.
        language_model: Fingerprint of the one that answered from evidence; "" where it was
            not asked. What the model answered by itself has `boundary.fingerprint`.
        boundary: What came of asking the model by itself; None where it was not asked.
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


_STAGES: Mapping[type, str] = {
    Question: "question",
    Boundary: "boundary",
    Retrieval: "retrieve",
    VerbatimMatch: "verbatim",
    Generation: "generate",
    Support: "support",
    Confidence: "confidence",
    Outcome: "outcome",
}


def stage_name(value: StageValue) -> str:
    """Return the name of the stage that made `value`, as `Outcome.times` calls it.

    A confidence is the first half of "abstention", and is in its time.
    """
    return value.gate.value if isinstance(value, Decision) else _STAGES[type(value)]


# Reordering marks can make a question read otherwise than it is; joiners stay, since
# scripts and emoji need them.
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


# What neither the database nor UTF-8 can hold.
NO_TEXT: Final = re.compile("[\x00\ud800-\udfff]")


def clean_question(text: str, language: str) -> Question:
    return Question(clean_text(text), language)


def clean_text(text: str) -> str:
    """Return a text in NFC on one line: no control characters, single spaces."""
    composed = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    spaced = "".join(" " if unicodedata.category(c) == "Cc" else c for c in composed)
    return " ".join(spaced.split())
