"""What a policy would make of signals that were measured before: the gates, replayed.

Thresholds can be compared on logged answers without asking any model. Only what was
measured can be judged: where a gate was enforced and refused, nothing behind it is known.
The same steps decide one question's numbers and columns of many.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from .gates import EARLY, SIGNALS, Gate, deciding_signals
from .policy import Policy, RetrievalTiming, Scope
from .rules import Mask, Measured, Values
from .self_knowledge import HAS_DRAFT, KNOWN_PROBABILITY, SIGNAL_BY_TIMING

Signals = Mapping[str, float | None]
RATIO = "distance_over_confidence"
RATIOS = ("verified_ratio", "unverified_ratio")
EVIDENCE = (*RATIOS, RATIO)
_ANSWERABLE, _OWN = "answerability", "entry_answers"
# Measured of an answer that was watched while it was written, and of no other.
_WATCHED = "least_token_confidence"


class Played(StrEnum):
    ANSWERED = "answered"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Replay:
    """The outcome; `gate` is set exactly where it is a refusal."""

    outcome: Played
    gate: Gate | None = None


def replay(signals: Signals, policy: Policy) -> Replay:
    """Decide by stored signals, as the gates would with this policy's thresholds.

    Staleness is not replayed. An answer that its early confidence would end is refused
    before the verdict on it, as by a language model that can be stopped.

    Args:
        signals: By name, as `flat` returns them.
    """
    known = _by_self_knowledge(signals, policy)
    if known is not None:
        return known
    if not signals.keys() & set(RATIOS):  # stored before the two were told apart
        signals = {**signals, RATIOS[0]: signals.get(RATIO)}
    measured = Values(signals)
    if not passes_hard_gate(measured, policy):
        return Replay(Played.REFUSED, Gate.HARD_REFUSAL)
    for gate, stops in steps_behind_hard_gate(measured, policy):
        if stops:
            return Replay(Played.REFUSED if gate else Played.UNKNOWN, gate)
    return Replay(Played.ANSWERED)


def passes_hard_gate(measured: Measured, policy: Policy) -> Mask:
    """Tell whether there is evidence, and any of it is near enough."""
    found = covered = False
    for name in EVIDENCE:
        found = found | is_measured(measured, name)
    for name in RATIOS:
        covered = covered | (SIGNALS[name].fails(name, measured, policy) ^ True)
    return found & covered


def steps_behind_hard_gate(
    measured: Measured, policy: Policy
) -> Iterator[tuple[Gate | None, Mask]]:
    """Yield in order which gate ends a question; None where nothing more is known.

    The first that ends it counts. What nothing ends is answered.
    """
    unread = is_measured(measured, "readable") ^ True
    verbatim = unread & _is_verbatim(measured, policy)
    # Beside an entry's own answer nothing was written, and of what was written it is not
    # known whether the entry's own would have been right.
    own = (verbatim ^ True) & _answers_itself(measured, policy)
    yield Gate.ENTRY, (verbatim ^ True) & _is_unanswered(measured, policy)
    yield None, own & (unread ^ True)
    written = (verbatim | own) ^ True
    yield Gate.ABSTENTION, written & SIGNALS[EARLY].is_low(EARLY, measured, policy)
    yield None, written & unread
    for gate in (Gate.SOFT_REFUSAL, Gate.ABSTENTION):
        yield gate, written & _fails(gate, measured, policy)
    unknown: Mask = False
    for name, row in deciding_signals(Gate.ABSTENTION).items():
        unknown = unknown | row.is_unknown(name, measured, policy)
    yield None, written & unknown
    yield Gate.AGREEMENT, _fails(Gate.AGREEMENT, measured, policy)


def is_measured(measured: Measured, name: str) -> Mask:
    value = measured.value(name)
    return value == value


def ends_early(signals: Signals, policy: Policy) -> bool:
    """Tell whether the answer ends before it begins, for too little early confidence."""
    return bool(SIGNALS[EARLY].is_low(EARLY, Values(signals), policy))


def flat(signals: object) -> dict[str, float | None]:
    """Return the values by name of a stored list of signals."""
    rows = signals if isinstance(signals, list) else []
    return {str(row["name"]): row["value"] for row in rows}


def _fails(gate: Gate, measured: Measured, policy: Policy) -> Mask:
    fails: Mask = False
    for name, row in deciding_signals(gate).items():
        fails = fails | row.fails(name, measured, policy)
    return fails


def _is_verbatim(measured: Measured, policy: Policy) -> Mask:
    """Tell what a verified entry answers word for word; its distance is its ratio."""
    is_near = measured.value("question_distance") < policy.alpha
    is_on = policy.verbatim_distance > 0
    return is_on & is_near & (_fails(Gate.VERBATIM, measured, policy) ^ True)


def _is_unanswered(measured: Measured, policy: Policy) -> Mask:
    return SIGNALS[_ANSWERABLE].is_low(_ANSWERABLE, measured, policy)


def _answers_itself(measured: Measured, policy: Policy) -> Mask:
    """Tell what a verified entry answers by itself."""
    row = SIGNALS[_OWN]
    fails = row.fails(_OWN, measured, policy) | _is_unanswered(measured, policy)
    return (fails ^ True) if row.is_enforced(policy) else False


def _by_self_knowledge(signals: Signals, policy: Policy) -> Replay | None:
    """Decide what the model answers by itself; None where evidence is looked for.

    A known probability is held against a threshold of its own timing alone, and what
    was watched while it was written can't be replayed.
    """
    has_draft = signals.get(HAS_DRAFT)
    if _WATCHED in signals:
        return Replay(Played.UNKNOWN)
    if policy.scope == Scope.ADAPTIVE:
        if (
            SIGNAL_BY_TIMING.get(RetrievalTiming(policy.retrieval_timing))
            not in signals
        ):
            return Replay(Played.UNKNOWN)
        row = SIGNALS[KNOWN_PROBABILITY]
        is_known = not row.fails(KNOWN_PROBABILITY, Values(signals), policy)
        if is_known and has_draft != 0.0:
            return Replay(Played.UNKNOWN if has_draft is None else Played.ANSWERED)
    if has_draft == 1.0 and all(signals.get(name) is None for name in EVIDENCE):
        return Replay(Played.UNKNOWN)  # it was answered before anything was looked for
    return None
