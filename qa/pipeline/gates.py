"""The table of gates: what each one measures, and the policy's limit on it.

Live decisions, `replay`, the columns that thresholds are calibrated on, gates in shadow
and the pages all read this table; everything they need to know about a signal is here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from .policy import Policy
from .rules import Comparison, Kind, Missing, SignalRow, Trust, Values


class Gate(StrEnum):
    """The gate that decided a question, in the order of the gates.

    BOUNDARY and VERBATIM answer a question or let it go on; ENTRY may also refuse it.
    BOUNDARY refuses monitored answers only. It comes first if the policy says so, and
    otherwise after ENTRY, for questions that no entry covers.
    """

    BOUNDARY = "boundary"
    VERBATIM = "verbatim"
    HARD_REFUSAL = "hard_refusal"
    ENTRY = "entry"
    SOFT_REFUSAL = "soft_refusal"
    ABSTENTION = "abstention"
    AGREEMENT = "agreement"


class Reason(StrEnum):
    """Why a question was refused; each reason states one distinct cause."""

    NOTHING_KNOWN = "nothing_known"
    TOO_FAR = "too_far"
    UNVERIFIED_ONLY = "unverified_only"
    EXPIRED_ONLY = "expired_only"
    NOT_ENTITLED = "not_entitled"
    NOT_ANSWERED = "not_answered"
    MODEL_DECLINED = "model_declined"
    MALFORMED_OUTPUT = "malformed_output"
    UNSUPPORTED = "unsupported"
    LOW_CONFIDENCE = "low_confidence"
    NO_PROBE = "no_probe"
    SOURCES_DISAGREE = "sources_disagree"
    POLICY_STALE = "policy_stale"


@dataclass(frozen=True, slots=True)
class Signal:
    """A measured value and its threshold; `passed` is None if it was only recorded."""

    gate: Gate
    name: str
    value: float | None
    threshold: float | None
    passed: bool | None


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of one gate; `reason` is None if it let the question pass.

    Attributes:
        shown_reason: The reason that the asker may read; it never reveals the existence
            of knowledge that they may not see, unless the policy allows that.
        signals: The measurements; they contain nothing that the asker may not see.
    """

    gate: Gate
    reason: Reason | None
    shown_reason: Reason | None
    signals: tuple[Signal, ...]

    @property
    def refused(self) -> bool:
        return self.reason is not None


DISAGREEING = "disagreeing_sources"
NEAREST_OBSTACLE = "nearest_obstacle"
QUESTION_RATIO = "question_ratio"
NOT_COMPARED = "sources_not_compared"
COMPETING = "competing_entries"
EARLY = "early_confidence"
_RATIOS = (0.0, 2.0)
_IS, _AT_LEAST, _AT_MOST = Comparison.IS, Comparison.AT_LEAST, Comparison.AT_MOST

# Keyed by the name under which answers store them, in the order of the gates.
SIGNALS: Mapping[str, SignalRow] = {
    "own_sureness": SignalRow(
        Gate.BOUNDARY, "Probability that the model knows the answer itself",
        comparison=_AT_LEAST, threshold="min_known", missing=Missing.FAILS,
    ),
    "boundary_confidence": SignalRow(
        Gate.BOUNDARY, "Probability from the probe on the question's activations"
    ),
    "history_known": SignalRow(
        Gate.BOUNDARY, "Probability from similar past questions, debiased"
    ),
    "history_uncorrected": SignalRow(
        Gate.BOUNDARY, "Probability from similar past questions, before debiasing"
    ),
    "history_bias_known": SignalRow(
        Gate.BOUNDARY, "Debiasing: added to the score of known"
    ),
    "history_bias_unknown": SignalRow(
        Gate.BOUNDARY, "Debiasing: added to the score of unknown"
    ),
    "history_examples": SignalRow(
        Gate.BOUNDARY, "Past questions used as examples", Kind.COUNT
    ),
    "history_known_share": SignalRow(
        Gate.BOUNDARY, "Share of these that the model knew"
    ),
    "asks_about_now": SignalRow(
        Gate.BOUNDARY, "The question is about the present time", Kind.YES_NO
    ),
    "own_log_probability": SignalRow(
        Gate.BOUNDARY, "Mean log-probability of its own draft"
    ),
    "least_token_confidence": SignalRow(
        Gate.BOUNDARY, "Lowest confidence in a new word"
    ),
    "monitored_segments": SignalRow(
        Gate.BOUNDARY, "Sentences monitored", Kind.COUNT
    ),
    "monitored_rounds": SignalRow(
        Gate.BOUNDARY, "Searches for evidence while writing", Kind.COUNT
    ),
    "monitored_sourced": SignalRow(
        Gate.BOUNDARY, "Sentences supported by an entry", Kind.COUNT
    ),
    "own_answer_stands": SignalRow(
        Gate.BOUNDARY, "The model wrote an answer without evidence", Kind.YES_NO,
        comparison=_IS, limit=1.0,
    ),
    "monitored_added_facts": SignalRow(
        Gate.BOUNDARY, "Facts that its evidence does not contain", Kind.COUNT,
        comparison=_AT_MOST, limit=0.0, switch="support_check",
        reason=Reason.UNSUPPORTED,
    ),
    "question_distance": SignalRow(
        Gate.VERBATIM, "Distance to the nearest answered question",
        comparison=_AT_MOST, threshold="verbatim_distance", missing=Missing.FAILS,
    ),
    "same_words": SignalRow(
        Gate.VERBATIM, "Same question, word for word", Kind.YES_NO,
        comparison=_IS, limit=1.0, missing=Missing.FAILS,
    ),
    # Stored only if it differs from the distance above, which is 0 for the same words.
    QUESTION_RATIO: SignalRow(
        Gate.VERBATIM, "Distance ÷ confidence of the entry with that question",
        is_shown=False,
    ),
    "distance_over_confidence": SignalRow(
        Gate.HARD_REFUSAL, "Best evidence: distance ÷ confidence",
        comparison=Comparison.BELOW, switch="hard_refusal", trust=Trust.LOW,
    ),
    "verified_ratio": SignalRow(
        Gate.HARD_REFUSAL, "Best verified evidence: distance ÷ confidence",
        comparison=Comparison.BELOW, threshold="alpha", switch="hard_refusal",
        missing=Missing.FAILS, is_shown=False, trust=Trust.LOW, limits=_RATIOS,
    ),
    "unverified_ratio": SignalRow(
        Gate.HARD_REFUSAL, "Best unverified evidence: distance ÷ confidence",
        comparison=Comparison.BELOW, threshold="alpha_unverified", cap="alpha",
        switch="hard_refusal", missing=Missing.FAILS, is_shown=False, trust=Trust.LOW,
        limits=_RATIOS,
    ),
    "nearest_distance": SignalRow(
        Gate.HARD_REFUSAL, "Distance of the nearest entry", trust=Trust.LOW
    ),
    "visible_entries": SignalRow(
        Gate.HARD_REFUSAL, "Entries that you have access to", Kind.COUNT
    ),
    # Stored with every refusal for lack of evidence; None if there is no such entry.
    NEAREST_OBSTACLE: SignalRow(
        Gate.HARD_REFUSAL, "Distance of the nearest entry that may not be used"
    ),
    "ratio_if_not_expired": SignalRow(
        Gate.HARD_REFUSAL, "Distance ÷ confidence, if the entry had not expired"
    ),
    "ratio_if_verified": SignalRow(
        Gate.HARD_REFUSAL, "Distance ÷ confidence, if the entry were verified"
    ),
    "ratio_if_entitled": SignalRow(
        Gate.HARD_REFUSAL, "Distance ÷ confidence, if you had access to the entry"
    ),
    "answerability": SignalRow(
        Gate.ENTRY, "Probability that an entry answers the question",
        comparison=_AT_LEAST, threshold="min_answerability", switch="verification",
        reason=Reason.NOT_ANSWERED, trust=Trust.HIGH,
    ),
    "entry_answers": SignalRow(
        Gate.ENTRY, "Probability that a verified entry answers by itself",
        comparison=_AT_LEAST, threshold="min_entry_answer", switch="verification",
        missing=Missing.FAILS, trust=Trust.HIGH, limits=(0.0, 1.01),
    ),
    # Stored only if there are several.
    COMPETING: SignalRow(
        Gate.ENTRY, "Verified entries that may be meant", Kind.COUNT
    ),
    "readable": SignalRow(
        Gate.SOFT_REFUSAL, "The model's output is readable", Kind.YES_NO,
        comparison=_IS, limit=1.0, reason=Reason.MALFORMED_OUTPUT,
    ),
    # Always enforced: an empty answer is refused whatever is in shadow.
    "answer_characters": SignalRow(
        Gate.SOFT_REFUSAL, "Characters in the draft", Kind.COUNT,
        comparison=_AT_LEAST, limit=1.0, reason=Reason.MODEL_DECLINED, is_shown=False,
    ),
    "verdict": SignalRow(
        Gate.SOFT_REFUSAL, "The model says that it can answer", Kind.YES_NO,
        comparison=_IS, limit=1.0, switch="soft_refusal", missing=Missing.FAILS,
        reason=Reason.MODEL_DECLINED, unless="verdict_probability",
    ),
    "verdict_probability": SignalRow(
        Gate.SOFT_REFUSAL, "Probability that the model can answer",
        comparison=_AT_LEAST, threshold="min_verdict", switch="soft_refusal",
        reason=Reason.MODEL_DECLINED, trust=Trust.HIGH,
    ),
    "debiased_verdict": SignalRow(
        Gate.SOFT_REFUSAL, "The same, corrected by past verdicts"
    ),
    "uncorrected_verdict": SignalRow(
        Gate.SOFT_REFUSAL, "The same with past verdicts as examples, not corrected"
    ),
    "own_verdict": SignalRow(Gate.SOFT_REFUSAL, "The same, as the model gave it"),
    "not_a_refusal_in_prose": SignalRow(
        Gate.SOFT_REFUSAL, "The answer is more than “I don't know”", Kind.YES_NO,
        comparison=_IS, limit=1.0, switch="soft_refusal", reason=Reason.MODEL_DECLINED,
    ),
    "citations_verified": SignalRow(
        Gate.SOFT_REFUSAL, "Citations found in their entries", Kind.COUNT,
        comparison=_AT_LEAST, limit=1.0, switch="support_check", missing=Missing.FAILS,
        reason=Reason.UNSUPPORTED,
    ),
    "citations_dropped": SignalRow(
        Gate.SOFT_REFUSAL, "Citations not found in their entries", Kind.COUNT
    ),
    "unsupported_facts": SignalRow(
        Gate.SOFT_REFUSAL, "Facts that no cited entry supports", Kind.COUNT,
        comparison=_AT_MOST, limit=0.0, switch="support_check",
        reason=Reason.UNSUPPORTED,
    ),
    "sentence_support": SignalRow(
        Gate.SOFT_REFUSAL, "Probability that a cited entry supports each sentence",
        comparison=_AT_LEAST, threshold="min_sentence_support", switch="support_check",
        reason=Reason.UNSUPPORTED, trust=Trust.HIGH,
    ),
    "answer_in_evidence": SignalRow(
        Gate.SOFT_REFUSAL, "Share of the answer's words found in the evidence",
        trust=Trust.HIGH,
    ),
    "question_in_evidence": SignalRow(
        Gate.SOFT_REFUSAL, "Share of the question's words found in the evidence",
        trust=Trust.HIGH,
    ),
    "log_probability": SignalRow(
        Gate.SOFT_REFUSAL, "Mean log-probability of the answer's tokens", trust=Trust.HIGH
    ),
    "least_token_probability": SignalRow(
        Gate.ABSTENTION, "Probability of the least likely token", trust=Trust.HIGH
    ),
    "mean_entropy": SignalRow(
        Gate.ABSTENTION, "Mean entropy of the token choices",
        trust=Trust.LOW,
    ),
    "willingness": SignalRow(
        Gate.ABSTENTION, "Probability of writing an answer at all", trust=Trust.HIGH
    ),
    "answer_confidence": SignalRow(
        Gate.ABSTENTION, "Confidence from the model's activations while it wrote",
        comparison=_AT_LEAST, threshold="min_confidence", switch="abstention",
        reason=Reason.LOW_CONFIDENCE, missing=Missing.NO_PROBE, trust=Trust.HIGH,
    ),
    EARLY: SignalRow(
        Gate.ABSTENTION, "Confidence before the first word, from question and evidence",
        comparison=_AT_LEAST, threshold="min_early_confidence", switch="abstention",
        reason=Reason.LOW_CONFIDENCE, missing=Missing.NO_PROBE, trust=Trust.HIGH,
    ),
    "joint_confidence": SignalRow(
        Gate.ABSTENTION, "Confidence from all signals combined",
        comparison=_AT_LEAST, threshold="min_joint_confidence", switch="abstention",
        reason=Reason.LOW_CONFIDENCE, missing=Missing.NO_PROBE, trust=Trust.HIGH,
    ),
    DISAGREEING: SignalRow(
        Gate.AGREEMENT, "Entries that contradict what the answer rests on", Kind.COUNT,
        comparison=_AT_MOST, limit=0.0, switch="sources_must_agree",
        reason=Reason.SOURCES_DISAGREE,
    ),
    NOT_COMPARED: SignalRow(
        Gate.AGREEMENT, "Entries not compared with others since they changed", Kind.COUNT
    ),
}  # fmt: skip
# The signals that rank answers, and those of them that have a threshold to choose.
SCORES: Mapping[str, SignalRow] = {
    name: row for name, row in SIGNALS.items() if row.trust
}
THRESHOLDED: Mapping[str, SignalRow] = {
    name: row for name, row in SCORES.items() if row.threshold
}
# The confidences of active probes, each with the policy field that holds its threshold.
CONFIDENCES: Mapping[str, str] = {
    name: row.threshold
    for name, row in SIGNALS.items()
    if row.missing is Missing.NO_PROBE
}


def find_row(name: str) -> SignalRow:
    """Return a signal's row; for one no longer measured, a row with its name."""
    return SIGNALS.get(name) or SignalRow(Gate.ABSTENTION, name.replace("_", " "))


def deciding_signals(gate: Gate) -> dict[str, SignalRow]:
    return {
        name: row
        for name, row in SIGNALS.items()
        if row.gate is gate and row.comparison
    }


def switches(gate: Gate | None = None) -> frozenset[str]:
    """Return the policy fields that enforce a gate, or any gate."""
    rows = (row for row in SIGNALS.values() if gate in (None, row.gate))
    return frozenset(row.switch for row in rows if row.switch)


def judge(
    gate: Gate,
    values: Mapping[str, float | None],
    policy: Policy,
    *,
    first: Reason | None = None,
) -> Decision:
    """Judge a gate's measurements by a policy.

    Args:
        values: Values by signal name, in the order of storing; a signal that is not in
            the table is only recorded.
        first: A reason that takes precedence over all others.
    """
    measured = Values(values)
    known = {name: SIGNALS[name] for name in values if name in SIGNALS}
    reasons = [
        *(
            row.reason
            for name, row in known.items()
            if row.is_low(name, measured, policy)
        ),
        *(
            Reason.NO_PROBE if row.missing is Missing.NO_PROBE else row.reason
            for name, row in known.items()
            if row.is_lacking(name, measured, policy)
        ),
    ]
    reason = first or next(iter(reasons), None)
    signals = tuple(_signal(gate, name, measured, policy) for name in values)
    return Decision(gate, reason, reason, signals)


def _signal(gate: Gate, name: str, measured: Values, policy: Policy) -> Signal:
    value, row = measured.signals[name], SIGNALS.get(name)
    if row is None or row.comparison is None or not row.is_shown:
        return Signal(gate, name, value, None, None)
    passed: bool | None = None
    is_beside = bool(row.unless) and measured.signals.get(row.unless) is not None
    if row.is_enforced(policy) and not is_beside:
        passed = not row.fails(name, measured, policy)
        if value is None and passed:
            passed = None
    return Signal(gate, name, value, row.limit_in(policy), passed)
