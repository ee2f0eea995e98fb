"""Replay of the gates: what a policy would decide on signals that were measured before.

Thresholds can be compared on logged answers without asking any model. Only what was
measured can be judged: if an enforced gate refused, nothing after it is known. The same
steps decide the numbers of one question and the columns of many.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from .gates import (
    EARLY,
    NEAREST_OBSTACLE,
    QUESTION_RATIO,
    SIGNALS,
    Gate,
    deciding_signals,
)
from .hard_gate import obstacle_limit
from .policy import Policy, RetrievalTiming, Scope
from .rules import Mask, Measured, Values
from .self_knowledge import HAS_DRAFT, KNOWN_PROBABILITY, SIGNAL_BY_TIMING

Signals = Mapping[str, float | None]
RATIO = "distance_over_confidence"
RATIOS = ("verified_ratio", "unverified_ratio")
EVIDENCE = (*RATIOS, RATIO)
_ANSWERABLE, _OWN = "answerability", "entry_answers"
# Measured for monitored answers only.
_WATCHED = "least_token_confidence"


class Played(StrEnum):
    ANSWERED = "answered"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Replay:
    """The outcome of a replay; `gate` is set if and only if it is a refusal."""

    outcome: Played
    gate: Gate | None = None


def replay(signals: Signals, policy: Policy) -> Replay:
    """Decide by stored signals as the gates would with this policy's thresholds.

    Staleness is not replayed. An answer with too low an early confidence is refused
    before its verdict is judged, as with a language model that can be stopped.

    Args:
        signals: Values by name, as `flat` returns them.
    """
    if not signals.keys() & set(RATIOS) and RATIO in signals:
        # Stored before verified and unverified evidence had ratios of their own.
        signals = {**signals, RATIOS[0]: signals[RATIO]}
    for step in steps(Values(signals), policy):
        if step.ends:
            return Replay(step.outcome, step.gate)
    return Replay(Played.ANSWERED)


@dataclass(frozen=True, slots=True)
class Step:
    """The questions that end here, and how; `gate` is set if and only if refused."""

    outcome: Played
    gate: Gate | None
    ends: Mask


def steps(measured: Measured, policy: Policy) -> Iterator[Step]:
    """Yield the steps in order, of which the first to end a question decides it.

    A question that no step ends is answered.
    """
    asks_itself = policy.scope == Scope.ADAPTIVE
    # Monitored answers can't be replayed.
    yield Step(Played.UNKNOWN, None, measured.is_asked(_WATCHED))
    if asks_itself and policy.own_knowledge_first:
        yield from _by_self_knowledge(True, measured, policy)
    yield Step(Played.UNKNOWN, None, _was_never_looked_for(measured))
    hard = passes_hard_gate(measured, policy) ^ True
    if asks_itself and not policy.own_knowledge_first:
        # If the verifier read the evidence, the obstacle stored is that of its gate,
        # which is not what hard refusal would have measured.
        read = is_measured(measured, _ANSWERABLE)
        yield Step(Played.UNKNOWN, None, hard & read)
        yield from _uncovered(Gate.HARD_REFUSAL, hard, measured, policy)
    yield Step(Played.REFUSED, Gate.HARD_REFUSAL, hard)
    for gate, stops in steps_behind_hard_gate(measured, policy):
        if gate is Gate.ENTRY and asks_itself and not policy.own_knowledge_first:
            yield from _uncovered(gate, stops, measured, policy)
        yield Step(Played.REFUSED if gate else Played.UNKNOWN, gate, stops)


def passes_hard_gate(measured: Measured, policy: Policy) -> Mask:
    """Return whether there is evidence and any of it is near enough."""
    found = covered = False
    for name in EVIDENCE:
        found = found | is_measured(measured, name)
    for name in RATIOS:
        covered = covered | (SIGNALS[name].fails(name, measured, policy) ^ True)
    return found & covered


def steps_behind_hard_gate(
    measured: Measured, policy: Policy
) -> Iterator[tuple[Gate | None, Mask]]:
    """Yield in order each gate with the questions that it ends; None if unknown.

    The first to end a question decides it. A question that nothing ends is answered.
    """
    unread = is_measured(measured, "readable") ^ True
    verbatim = unread & _is_verbatim(measured, policy)
    # If an entry was the answer, no draft was written; if a draft was written, it is
    # not known whether the entry would have been right.
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
    """Return whether too low an early confidence ends the answer before it begins."""
    return bool(SIGNALS[EARLY].is_low(EARLY, Values(signals), policy))


def flat(signals: object) -> dict[str, float | None]:
    """Return a stored list of signals as values by name."""
    rows = signals if isinstance(signals, list) else []
    return {str(row["name"]): row["value"] for row in rows}


def _fails(gate: Gate, measured: Measured, policy: Policy) -> Mask:
    fails: Mask = False
    for name, row in deciding_signals(gate).items():
        fails = fails | row.fails(name, measured, policy)
    return fails


def _is_verbatim(measured: Measured, policy: Policy) -> Mask:
    """Return which questions a verified entry within alpha answers word for word."""
    ratio = measured.value(QUESTION_RATIO)
    # If no ratio is stored, it equals the distance.
    is_near = (ratio < policy.alpha) | (
        (ratio != ratio) & (measured.value("question_distance") < policy.alpha)
    )
    is_on = policy.verbatim_distance > 0
    return is_on & is_near & (_fails(Gate.VERBATIM, measured, policy) ^ True)


def _is_unanswered(measured: Measured, policy: Policy) -> Mask:
    return SIGNALS[_ANSWERABLE].is_low(_ANSWERABLE, measured, policy)


def _answers_itself(measured: Measured, policy: Policy) -> Mask:
    """Return which questions a verified entry answers by itself."""
    row = SIGNALS[_OWN]
    fails = row.fails(_OWN, measured, policy) | _is_unanswered(measured, policy)
    return (fails ^ True) if row.is_enforced(policy) else False


def _by_self_knowledge(
    is_tried: Mask, measured: Measured, policy: Policy
) -> Iterator[Step]:
    """Yield which of the questions put to the model it answers by itself.

    A known probability is compared only with a threshold for the same retrieval timing.
    """
    timing = SIGNAL_BY_TIMING.get(RetrievalTiming(policy.retrieval_timing))
    was_asked = measured.is_asked(timing) if timing else False
    yield Step(Played.UNKNOWN, None, is_tried & (was_asked ^ True))
    row = SIGNALS[KNOWN_PROBABILITY]
    is_known = is_tried & (row.fails(KNOWN_PROBABILITY, measured, policy) ^ True)
    draft = measured.value(HAS_DRAFT)
    yield Step(Played.UNKNOWN, None, is_known & (draft != draft))
    yield Step(Played.ANSWERED, None, is_known & (draft == 1.0))


def _uncovered(
    gate: Gate, refused: Mask, measured: Measured, policy: Policy
) -> Iterator[Step]:
    """Yield which of a gate's refused questions, if uncovered, the model answers."""
    was_told = measured.is_asked(NEAREST_OBSTACLE)
    yield Step(Played.UNKNOWN, None, refused & (was_told ^ True))
    is_kept = measured.value(NEAREST_OBSTACLE) < obstacle_limit(gate, policy)
    yield from _by_self_knowledge(refused & (is_kept ^ True), measured, policy)


def _was_never_looked_for(measured: Measured) -> Mask:
    """Return which questions were answered before any search."""
    was_looked_for: Mask = False
    for name in EVIDENCE:
        was_looked_for = was_looked_for | measured.is_asked(name)
    return (measured.value(HAS_DRAFT) == 1.0) & (was_looked_for ^ True)
