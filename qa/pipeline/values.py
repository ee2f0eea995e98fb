"""The values passed between stages: question, evidence, trace and outcome."""

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
    """One sentence of a monitored answer, as it was settled.

    Attributes:
        tokens: Its tokens; joined they give the text.
        confidences: One for each token, in the unit of the monitor.
        weakest: The least confidence of a new word in the first draft, written without
            evidence, which decided whether to search; None if no word was new.
        triggers: The doubted words that triggered a search, in order; also empty if the
            first draft was a refusal.
        evidence: The evidence that the final text was written from.
        is_sourced: Whether it says something new and the evidence contains all of that.
        doubt: Why it may not be shown; None if it may.
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
    """The result of one search, best first; `deep` marks the second before a refusal.

    `method` names the search method and its metric: thresholds hold for only one.
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
    """Search on behalf of one asker, limited to current entries that they may see."""

    def look(self, question: str, *, top_k: int, deep: bool) -> Retrieval:
        """Return evidence, best first; `deep` spends more time on complete recall."""

    def withheld(self, question: str) -> Sequence[Excluded]:
        """Return the nearest excluded entry for each cause of exclusion, if any."""

    def contradictions(self, entry_ids: Sequence[int]) -> Sequence[Contradiction]:
        """Return the unresolved contradictions between any two of these entries."""

    def not_compared(self, entry_ids: Sequence[int]) -> Collection[int]:
        """Return the entries that the conflict check has not read as they are now."""


class Calibration(StrEnum):
    """Whether the policy's thresholds hold for the models that are running."""

    HAND_SET = "hand_set"
    SELF_CALIBRATED = "self_calibrated"  # chosen by the knowledge base's own questions
    CURRENT = "current"  # from labelled answers
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Question:
    """A question after cleaning: NFC, no control characters, trimmed."""

    text: str
    language: str = "en"


@dataclass(frozen=True, slots=True)
class Boundary:
    """Whether the model answers from its own knowledge.

    Attributes:
        is_answered: Whether it wrote an answer.
        fingerprint: Identifies the model or probe that decided.
        examples: Ids of the past questions that decided it, nearest first.
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
    """How far the evidence that a generation cites supports it.

    Attributes:
        citations: Those whose number is among the evidence and whose quote is in the
            entry; if the model quoted nothing, with the best-fitting sentence.
        dropped: The number of claimed citations that failed this check.
        unsupported: What the answer states and no cited entry does: numbers, dates, a
            negation that was added or lost.
        sentence_support: Least probability in [0, 1], over the answer's sentences, that
            a cited entry supports it; None if nothing could be checked.
        answer_overlap: Share in [0, 1] of the answer's content words that are in the
            cited entries; None if it has none.
        question_overlap: The same for the question.
    """

    citations: tuple[Citation, ...]
    dropped: int
    unsupported: tuple[str, ...]
    answer_overlap: float | None
    question_overlap: float | None
    sentence_support: float | None = None


@dataclass(frozen=True, slots=True)
class StageTime:
    """The duration of a stage; "stage.part" is a part included in its stage's time."""

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
        """Return the result of `call` and record how long it took."""
        start = perf_counter()
        value = call(*args, **kwargs)
        self._times.append(StageTime(stage, (perf_counter() - start) * 1000))
        return value

    @property
    def times(self) -> tuple[StageTime, ...]:
        return tuple(self._times)


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything known about a question so far; stages add to it with `replace`.

    Attributes:
        boundary: The result of asking the model without evidence; None if not asked.
        retrieval: The evidence found; for a monitored answer, what it was written from.
        entries: The verified entries that answer by themselves according to the
            verifier, the likeliest first.
        verifier: Its fingerprint; "" if it was not asked.
        odds: {entry: log-odds, by the verifier, that it answers versus that none does}.
        telling: For each of `matches`, the sentence that gives the answer; "" if none
            stands out.
        language_model: Fingerprint of the model asked to answer from evidence.
        probes: Fingerprints of the active probes; None if no such model was asked.
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
        """Whether it was refused, or answered without generating from evidence."""
        is_answered = self.boundary is not None and self.boundary.is_answered
        return bool(self.refusal or self.matches or is_answered)

    @property
    def matches(self) -> tuple[Evidence, ...]:
        """The entries that are the answer: word for word, or by the verifier."""
        verbatim = self.verbatim.evidence
        return (verbatim,) if verbatim else self.entries

    @property
    def citations(self) -> tuple[Citation, ...]:
        return self.support.citations if self.support else ()

    @property
    def signals(self) -> tuple[Signal, ...]:
        """All measurements so far, in order."""
        own = self.boundary.signals if self.boundary else ()
        by_evidence = (
            *self.verbatim.signals,
            *(signal for gate in self.decisions for signal in gate.signals),
        )
        is_first = self.policy.own_knowledge_first
        return (*own, *by_evidence) if is_first else (*by_evidence, *own)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a question, complete enough to be explained and replayed.

    Attributes:
        gate: The gate that refused; VERBATIM or ENTRY if an entry is the answer,
            BOUNDARY if it rests on the model's own knowledge, otherwise None.
        reason: Set if and only if refused.
        shown_reason: The reason that the asker may read (`reason`, unless the policy
            hides it).
        evidence: What a language model read; if entries are the answer, these and those
            that contradict them; empty if no model was asked.
        near_misses: Entries within the horizon that a refusal did not answer from;
            never citations. For a soft refusal, what the model read.
        confidence: The probes' confidence in the draft; None if none was asked.
        probes: Fingerprints of the active probes, the reranker and the verifier that
            were used, separated by spaces; "" for none.
        contradictions: Between what the answer rests on and other evidence; both
            entries of each are among `evidence` or `near_misses`.
        language_model: Fingerprint of the model that answered from evidence; "" if it
            was not asked. An answer from own knowledge has `boundary.fingerprint`.
        boundary: The result of asking the model without evidence; None if not asked.
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
    """Return the name of the stage that made `value`, as in `Outcome.times`.

    A confidence is the first half of "abstention", whose time includes it.
    """
    return value.gate.value if isinstance(value, Decision) else _STAGES[type(value)]


# Reordering marks can make a question look different from what it is; joiners stay
# because scripts and emoji need them.
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


# Characters that neither the database nor UTF-8 can store.
NO_TEXT: Final = re.compile("[\x00\ud800-\udfff]")


def clean_question(text: str, language: str) -> Question:
    return Question(clean_text(text), language)


def clean_text(text: str) -> str:
    """Return a text in NFC on one line, without control characters or extra spaces."""
    composed = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    spaced = "".join(" " if unicodedata.category(c) == "Cc" else c for c in composed)
    return " ".join(spaced.split())
