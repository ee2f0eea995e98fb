"""A question as data: each stage takes earlier values and returns one new frozen value.

No Django, no torch: whatever reaches into a database or a model is a Protocol that is
handed in.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from .activations import NO_CAPTURE, Capture, Confidence, Trace


class Gate(StrEnum):
    """Where a question was decided, in the order in which the gates stand."""

    VERBATIM = "verbatim"
    HARD_REFUSAL = "hard_refusal"
    SOFT_REFUSAL = "soft_refusal"
    ABSTENTION = "abstention"


class Reason(StrEnum):
    """Why a question was refused; each is true on its own and none stands for another."""

    NOTHING_KNOWN = "nothing_known"
    TOO_FAR = "too_far"
    UNVERIFIED_ONLY = "unverified_only"
    EXPIRED_ONLY = "expired_only"
    NOT_ENTITLED = "not_entitled"
    MODEL_DECLINED = "model_declined"
    MALFORMED_OUTPUT = "malformed_output"
    UNSUPPORTED = "unsupported"
    LOW_CONFIDENCE = "low_confidence"
    NO_PROBE = "no_probe"
    POLICY_STALE = "policy_stale"


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
class Policy:
    """Every threshold and switch of one answer; versioned and stored with it.

    Attributes:
        alpha: Hard refusal unless some verified piece of evidence has distance /
            confidence < alpha (L2R eq. 2, on Euclidean L2 of unit vectors), or some
            unverified piece has it < alpha_unverified too.
        alpha_unverified: The bound for evidence that nobody verified, where it is the
            lower one.
        horizon: Distance beyond which an entry counts as unrelated ("nothing known"
            instead of "too far"; no near miss).
        top_k: Pieces of evidence handed to the language model.
        verbatim_distance: Largest distance of the verbatim tier; 0 switches it off.
        unverified_floor: Least confidence of unverified evidence; 1 admits verified
            evidence alone.
        hard_refusal: Whether the distance may refuse; if not, it is measured and
            stored (shadow). Without any evidence there is nothing to answer from.
        soft_refusal: Whether the model's own verdict may refuse, or is in shadow.
        support_check: Whether an answer that its evidence does not carry is refused, or
            the check is in shadow.
        min_verdict: Least probability of "can answer" in [0, 1] where the language
            model gives one.
        abstention: Whether too little confidence may refuse, or is in shadow.
        min_confidence: Least confidence in [0, 1] by the answer's own activations; 0
            lets all pass, and so do the next two.
        min_early_confidence: The same from the prompt alone; below it no answer is
            written.
        min_joint_confidence: The same from all signals together.
        answer_without_probe: Whether an answer is shown whose confidence abstention
            enforces and nothing in force can tell.
        reveal_not_entitled: Whether a refusal may tell that knowledge exists which the
            asker may not see.
        refuse_when_stale: Whether a stale policy refuses everything or answers with a
            warning.
        calibrated_embedder: Fingerprint that alpha was set for.
        calibrated_language_model: Fingerprint that min_verdict was set for; several are
            separated by spaces.
        calibrated_retrieval: Way of searching, and its metric, that alpha was set for.
        calibrated_probes: Fingerprints, separated by spaces, of the probes that the
            least confidences were set for; such sets of several language models are
            separated by "|".
        is_calibrated: Whether the thresholds come from labelled answers.
    """

    name: str
    version: int
    alpha: float
    alpha_unverified: float
    horizon: float
    top_k: int
    verbatim_distance: float
    unverified_floor: float
    hard_refusal: bool
    soft_refusal: bool
    support_check: bool
    min_verdict: float
    abstention: bool
    min_confidence: float
    min_early_confidence: float
    min_joint_confidence: float
    answer_without_probe: bool
    reveal_not_entitled: bool
    refuse_when_stale: bool
    calibrated_embedder: str
    calibrated_language_model: str
    calibrated_retrieval: str
    calibrated_probes: str
    is_calibrated: bool

    def alpha_of(self, piece: "Evidence") -> float:
        """Return the bound that this piece's distance / confidence is held against."""
        if piece.is_verified:
            return self.alpha
        return min(self.alpha, self.alpha_unverified)

    @property
    def least_early(self) -> float | None:
        """The early confidence below which no answer is written; None for no such one."""
        is_enforced = self.abstention and self.min_early_confidence > 0
        return self.min_early_confidence if is_enforced else None


@dataclass(frozen=True, slots=True)
class Evidence:
    """An entry that supports an answer; `distance` is Euclidean L2 in [0, 2]."""

    entry_id: int
    revision_id: int
    text: str
    question: str
    confidence: float
    is_verified: bool
    distance: float
    vector_rank: int | None
    text_rank: int | None
    score: float
    document_title: str
    section: str
    verified_at: datetime | None
    valid_until: datetime | None

    @property
    def ratio(self) -> float:
        """Distance over confidence, what hard refusal compares with alpha."""
        return self.distance / self.confidence


@dataclass(frozen=True, slots=True)
class Withheld:
    """That an entry outside the asker's scope is near; it is never shown."""

    reason: Reason
    distance: float
    confidence: float

    @property
    def ratio(self) -> float:
        """Distance over confidence, on the same scale as the evidence's."""
        return self.distance / self.confidence


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


class Retriever(Protocol):
    """Search on behalf of one asker: entitlement and expiry are inside it."""

    def look(self, question: str, *, top_k: int, deep: bool) -> Retrieval:
        """Return evidence best first; `deep` spends more for certainty of recall."""
        ...

    def withheld(self, question: str) -> Sequence[Withheld]:
        """Return the nearest entry outside the scope for each cause, if any."""
        ...


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a language model answers from; texts are data and can't break its structure.

    Attributes:
        question: The question's text.
        evidence: Pieces in order; piece i is called i + 1 in prompt and output.
        language: BCP 47 primary subtag of the answer.
    """

    question: str
    evidence: tuple[Evidence, ...]
    language: str


@dataclass(frozen=True, slots=True)
class Citation:
    """A piece of evidence that an answer rests on; `quote` stands in the entry."""

    entry_id: int
    revision_id: int
    quote: str


@dataclass(frozen=True, slots=True)
class Generation:
    """What a language model gave back, parsed.

    Attributes:
        cited: 1-based numbers of the pieces of evidence it says it used.
        quotes: (piece number, words it says it quotes).
        reasoning: One step from evidence to answer.
        can_answer: Its own verdict.
        verdict_probability: Probability of the verdict "can answer" in [0, 1]; None
            where the server does not tell.
        answer: Displayable text; empty if it can't answer.
        malformed: Whether the output could not be read even after one repair.
        repaired: Whether it took the one repair.
        log_probability: Mean natural-log probability of the answer's tokens, or None.
        raw: The output as it came, for the record.
        short_answer: The words of `answer` that answer the question; empty where the
            model does not tell them from the rest.
        tokens: `short_answer` (or else `answer`) as the model's tokens, for showing how
            sure it was along the way; joined they give the text.
        least_log_probability: Natural log of the answer's least likely token, or None.
        entropy: Mean entropy in nats of the distributions that the answer's tokens were
            taken from, or None.
        willingness: What the model gives in [0, 1] to writing an answer as against
            writing nothing, or None.
        trace: What was kept of the model's insides; never stored.
    """

    cited: tuple[int, ...]
    quotes: tuple[tuple[int, str], ...]
    reasoning: str
    can_answer: bool
    verdict_probability: float | None
    answer: str
    malformed: bool
    repaired: bool
    log_probability: float | None
    raw: str
    prompt_tokens: int
    answer_tokens: int
    milliseconds: float
    short_answer: str = ""
    tokens: tuple[str, ...] = ()
    least_log_probability: float | None = None
    entropy: float | None = None
    willingness: float | None = None
    trace: Trace | None = field(default=None, repr=False, compare=False)

    @property
    def is_stopped(self) -> bool:
        """Whether the answer was ended before its first token."""
        return self.trace is not None and self.trace.is_stopped


class LanguageModel(Protocol):
    """Writes an answer from evidence alone."""

    @property
    def fingerprint(self) -> str:
        """What tells two models (weights, adapter, dtype, server) apart."""
        ...

    def generate(self, prompt: Prompt, capture: Capture = NO_CAPTURE) -> Generation:
        """Return evidence, reasoning, verdict and answer, in that order of thought.

        A model that can't keep what `capture` asks for gives no trace.

        Raises:
            LanguageModelUnavailableError: The model's server is down or too slow.
        """
        ...


@dataclass(frozen=True, slots=True)
class Signal:
    """One measured number beside the threshold that it was held against.

    `passed` is None where the signal is recorded and not enforced.
    """

    gate: Gate
    name: str
    value: float | None
    threshold: float | None
    passed: bool | None


@dataclass(frozen=True, slots=True)
class VerbatimMatch:
    """The verified question-and-answer entry that is returned word for word, if any."""

    evidence: Evidence | None
    signals: tuple[Signal, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """What one gate decided; `reason` is None where it let the question pass.

    Attributes:
        gate: The gate that decided.
        reason: The true reason of a refusal.
        shown_reason: What the asker may be told; never says that knowledge exists
            which they may not see, unless the policy allows it.
        signals: What was measured; holds nothing that the asker may not see.
    """

    gate: Gate
    reason: Reason | None
    shown_reason: Reason | None
    signals: tuple[Signal, ...]

    @property
    def refused(self) -> bool:
        """Whether the question ends here."""
        return self.reason is not None


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
class StageTime:
    """How long one stage took; "stage.part" is a part of it, in its time already."""

    stage: str
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything a question came to, so that it can be explained and replayed.

    Attributes:
        gate: The gate that refused, or VERBATIM for a verbatim answer, else None.
        reason: Set exactly when refused.
        shown_reason: What the asker may be told (`reason`, unless the policy hides it).
        evidence: What the language model saw; for a verbatim answer the one entry;
            empty where no model was asked.
        near_misses: Entries within the horizon that a refusal did not answer from,
            never citations. A soft refusal's are what the model saw.
        confidence: What the probes made of the draft; None where none was asked.
        probes: Fingerprints of those in force, separated by spaces; "" where there are
            none or no language model was asked.
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


StageValue = (
    Question
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
