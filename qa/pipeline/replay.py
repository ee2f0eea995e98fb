"""What a policy would make of signals that were measured before: the gates, played again.

Thresholds can be compared on logged answers without asking any model. Only what was
measured can be judged: where a gate was enforced and refused, nothing behind it is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from .agree import DISAGREEING
from .gates import CONFIDENCES, EARLY, Gate
from .policy import RetrievalTiming, Scope
from .self_knowledge import HAS_DRAFT, KNOWN_PROBABILITY, SIGNAL_BY_TIMING

Signals = Mapping[str, float | None]
# Measured of an answer that was watched while it was written, and of no other.
_WATCHED = "least_token_confidence"


class Thresholds(Protocol):
    """What of a policy decides on signals: `types.Policy`, or the row that it is of."""

    @property
    def scope(self) -> str:
        """What may be answered from; a `Scope`."""
        ...

    @property
    def retrieval_timing(self) -> str:
        """When evidence is looked for; a `RetrievalTiming`."""
        ...

    @property
    def min_known(self) -> float:
        """Least known probability at which the model answers by itself."""
        ...

    @property
    def alpha(self) -> float:
        """Bound of distance / confidence, in [0, 2]."""
        ...

    @property
    def alpha_unverified(self) -> float:
        """The same for unverified evidence, where it is the lower one."""
        ...

    @property
    def verbatim_distance(self) -> float:
        """Largest distance of a verbatim answer; 0 for none."""
        ...

    @property
    def min_verdict(self) -> float:
        """Least probability of the verdict "can answer"."""
        ...

    @property
    def hard_refusal(self) -> bool:
        """Whether the distance may refuse."""
        ...

    @property
    def soft_refusal(self) -> bool:
        """Whether the verdict may refuse."""
        ...

    @property
    def support_check(self) -> bool:
        """Whether a lack of support may refuse."""
        ...

    @property
    def abstention(self) -> bool:
        """Whether too little confidence may refuse."""
        ...

    @property
    def min_confidence(self) -> float:
        """Least confidence by the answer's activations; 0 for none, as the next two."""
        ...

    @property
    def min_early_confidence(self) -> float:
        """The same before any answer token."""
        ...

    @property
    def min_joint_confidence(self) -> float:
        """The same by all signals together."""
        ...

    @property
    def answer_without_probe(self) -> bool:
        """Whether an answer is shown whose confidence nothing can tell."""
        ...

    @property
    def sources_must_agree(self) -> bool:
        """Whether an answer is refused that other evidence contradicts."""
        ...


class Played(StrEnum):
    """What became of a question that was played again."""

    ANSWERED = "answered"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Replay:
    """The outcome; `gate` is set exactly where it is a refusal."""

    outcome: Played
    gate: Gate | None = None


def replay(signals: Signals, policy: Thresholds) -> Replay:
    """Decide by stored signals, as the gates would with this policy's thresholds.

    Staleness is not played again. An answer that its early confidence would end is
    refused before the verdict on it, as by a language model that can be stopped.

    Args:
        signals: By name, as `flat` returns them.
        policy: The thresholds, and which gates are in shadow.
    """
    known = _by_own_knowledge(signals, policy)
    if known is not None:
        return known
    if not _has_evidence(signals):
        return Replay(Played.REFUSED, Gate.HARD_REFUSAL)
    if policy.hard_refusal and not _is_covered(signals, policy):
        return Replay(Played.REFUSED, Gate.HARD_REFUSAL)
    is_unread = signals.get("readable") is None
    if is_unread and _is_verbatim(signals, policy):
        return _by_agreement(signals, policy)
    if ends_early(signals, policy):
        return Replay(Played.REFUSED, Gate.ABSTENTION)
    if is_unread:
        return Replay(Played.UNKNOWN)
    if _is_refused_softly(signals, policy):
        return Replay(Played.REFUSED, Gate.SOFT_REFUSAL)
    trusted = _by_confidence(signals, policy)
    if trusted.outcome is not Played.ANSWERED:
        return trusted
    return _by_agreement(signals, policy)


def ends_early(signals: Signals, policy: Thresholds) -> bool:
    """Tell whether the answer ends before it begins, for too little early confidence."""
    early = signals.get(EARLY)
    is_low = early is not None and early < policy.min_early_confidence
    return policy.abstention and is_low


def flat(signals: object) -> dict[str, float | None]:
    """Return the values by name of a stored list of signals."""
    rows = signals if isinstance(signals, list) else []
    return {str(row["name"]): row["value"] for row in rows}


def _by_confidence(signals: Signals, policy: Thresholds) -> Replay:
    """Hold what the probes said; what they were not asked, the gate before prevented."""
    held = [
        (name, least)
        for name, field in CONFIDENCES.items()
        if policy.abstention and (least := getattr(policy, field)) > 0
    ]
    for name, least in held:
        value = signals.get(name)
        is_wanting = value is None and name in signals
        is_low = value is not None and value < least
        if is_low or (is_wanting and not policy.answer_without_probe):
            return Replay(Played.REFUSED, Gate.ABSTENTION)
    unknown = any(name not in signals for name, _ in held)
    return Replay(Played.UNKNOWN if unknown else Played.ANSWERED)


def _by_agreement(signals: Signals, policy: Thresholds) -> Replay:
    """Refuse what other evidence contradicts; where it was not asked, none is known."""
    if policy.sources_must_agree and signals.get(DISAGREEING):
        return Replay(Played.REFUSED, Gate.AGREEMENT)
    return Replay(Played.ANSWERED)


def _by_own_knowledge(signals: Signals, policy: Thresholds) -> Replay | None:
    """Decide what the model answers by itself; None where evidence is looked for.

    A known_probability is held against a threshold of its own timing alone, and what was watched
    while it was written can't be played again.
    """
    stands = signals.get(HAS_DRAFT)
    if _WATCHED in signals:
        return Replay(Played.UNKNOWN)
    if policy.scope == Scope.ADAPTIVE:
        told_by = SIGNAL_BY_TIMING.get(RetrievalTiming(policy.retrieval_timing))
        if told_by not in signals:
            return Replay(Played.UNKNOWN)
        known_probability = signals.get(KNOWN_PROBABILITY)
        if (
            known_probability is not None
            and known_probability >= policy.min_known
            and stands != 0.0
        ):
            return Replay(Played.UNKNOWN if stands is None else Played.ANSWERED)
    if stands == 1.0 and not _has_evidence(signals):
        return Replay(Played.UNKNOWN)  # it was answered before anything was looked for
    return None


def _has_evidence(signals: Signals) -> bool:
    return any(
        signals.get(name) is not None
        for name in ("verified_ratio", "unverified_ratio", "distance_over_confidence")
    )


def _is_covered(signals: Signals, policy: Thresholds) -> bool:
    bounds = (
        ("verified_ratio", policy.alpha),
        ("unverified_ratio", min(policy.alpha, policy.alpha_unverified)),
    )
    ratios = [(signals[name], bound) for name, bound in bounds if name in signals]
    if not ratios:  # stored before the two were told apart
        ratios = [(signals.get("distance_over_confidence"), policy.alpha)]
    return any(ratio is not None and ratio < bound for ratio, bound in ratios)


def _is_verbatim(signals: Signals, policy: Thresholds) -> bool:
    # Of a verified entry, whose distance is its ratio.
    distance = signals.get("question_distance")
    is_near = distance is not None and 0 < policy.verbatim_distance >= distance
    is_covered = distance is not None and distance < policy.alpha
    return is_near and is_covered and signals.get("same_words") == 1.0


def _is_refused_softly(signals: Signals, policy: Thresholds) -> bool:
    if signals["readable"] == 0.0 or signals.get("answer_characters") == 0.0:
        return True
    if policy.soft_refusal and not _is_willing(signals, policy):
        return True
    return policy.support_check and (
        not signals.get("citations_verified") or bool(signals.get("unsupported_facts"))
    )


def _is_willing(signals: Signals, policy: Thresholds) -> bool:
    probability = signals.get("verdict_probability")
    if signals.get("not_a_refusal_in_prose") == 0.0:
        return False
    if probability is None:
        return signals.get("verdict") == 1.0
    return probability >= policy.min_verdict
