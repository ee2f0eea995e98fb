"""Stage 4: refuse what no evidence covers, before any language model is asked.

References:
    Learn to Refuse (Cao, 2023), equation 2: a question may be answered only if
    min over evidence of distance / confidence < alpha. Here the distance is Euclidean
    between unit vectors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kb.types import Evidence, Excluded, Exclusion

from .gates import NEAREST_OBSTACLE, SIGNALS, Decision, Gate, Reason, Signal
from .policy import Policy, default
from .staleness import current_calibration
from .values import Calibration, Question, Retrieval, Retriever

# The signal for what the gate would have measured without each obstacle.
_COUNTERFACTUALS = {
    Exclusion.EXPIRED: "ratio_if_not_expired",
    Exclusion.UNVERIFIED: "ratio_if_verified",
    Exclusion.NOT_ENTITLED: "ratio_if_entitled",
}
_REASONS = {
    Exclusion.EXPIRED: Reason.EXPIRED_ONLY,
    Exclusion.UNVERIFIED: Reason.UNVERIFIED_ONLY,
    Exclusion.NOT_ENTITLED: Reason.NOT_ENTITLED,
}
# Of two causes that are equally near, the one that a curator can fix soonest is named.
_PRECEDENCE = (Reason.EXPIRED_ONLY, Reason.UNVERIFIED_ONLY, Reason.NOT_ENTITLED)


def passes(retrieval: Retrieval, policy: Policy) -> bool:
    """Return whether the evidence covers the question; monotone in alpha."""
    return any(covers(piece, policy) for piece in retrieval.evidence)


def covers(piece: Evidence, policy: Policy) -> bool:
    """Return whether a piece is near and certain enough to answer from."""
    return piece.ratio < bound(piece, policy)


def bound(piece: Evidence, policy: Policy) -> float:
    """Return the value that a piece's distance / confidence must stay below."""
    name = "verified_ratio" if piece.is_verified else "unverified_ratio"
    return SIGNALS[name].limit_in(policy) or 0.0


def judge_coverage(
    question: Question, retrieval: Retrieval, *, retriever: Retriever, policy: Policy
) -> Decision:
    """Pass, or refuse with the true reason and the one that the asker may read.

    With `policy.hard_refusal` off everything is measured, and only a question without
    any evidence, or under a stale policy that refuses, is refused.
    """
    signals = _signals(retrieval, policy)
    is_stale = current_calibration(policy, retrieval) is Calibration.STALE
    if is_stale and policy.refuse_when_stale:
        stale = Reason.POLICY_STALE
        return Decision(Gate.HARD_REFUSAL, stale, stale, signals)
    in_shadow = not policy.hard_refusal and bool(retrieval.evidence)
    if in_shadow or passes(retrieval, policy):
        return Decision(Gate.HARD_REFUSAL, None, None, signals)
    withheld = tuple(retriever.withheld(question.text))
    tellable = _tellable(withheld, policy)
    return Decision(
        Gate.HARD_REFUSAL,
        reason=_reason(retrieval.evidence, withheld, policy),
        shown_reason=_reason(retrieval.evidence, tellable, policy),
        signals=(
            *signals,
            *_signals_of_obstacles(
                retrieval.evidence, tellable, policy, within=policy.alpha
            ),
        ),
    )


def _reason(
    evidence: Sequence[Evidence], withheld: Sequence[Excluded], policy: Policy
) -> Reason:
    """Return the obstacle that prevented an answer, or TOO_FAR or NOTHING_KNOWN."""
    obstacle = _obstacle(evidence, withheld, within=policy.alpha)
    if obstacle:
        return obstacle
    if any(piece.distance <= policy.horizon for piece in evidence):
        return Reason.TOO_FAR
    return Reason.NOTHING_KNOWN


def _obstacle(
    evidence: Sequence[Evidence], withheld: Sequence[Excluded], *, within: float
) -> Reason | None:
    """Return the obstacle without which a ratio would have been below `within`.

    Each candidate is the ratio that the gate would have measured without that one
    obstacle: distance / confidence for an expired or restricted entry, the bare
    distance for an unverified one (verified means confidence 1). The smallest decides.
    """
    ratio, reason = _nearest_obstacle(evidence, withheld)
    return reason if ratio is not None and ratio < within else None


def _nearest_obstacle(
    evidence: Sequence[Evidence], withheld: Sequence[Excluded]
) -> tuple[float | None, Reason | None]:
    obstacles = [
        (_without_obstacle(piece), _REASONS[piece.cause]) for piece in withheld
    ]
    obstacles += [
        (piece.distance, Reason.UNVERIFIED_ONLY)
        for piece in evidence
        if not piece.is_verified
    ]
    if not obstacles:
        return None, None
    return min(obstacles, key=lambda o: (o[0], _PRECEDENCE.index(o[1])))


def with_obstacle(
    decision: Decision,
    question: Question,
    evidence: Sequence[Evidence],
    *,
    retriever: Retriever,
    policy: Policy,
) -> Decision:
    """Return a later gate's refusal with the obstacle that explains it, if any.

    The verifier reads only admissible evidence, so withheld entries are judged by their
    distance alone, and by a limit no wider than the default without a verifier.
    """
    withheld = tuple(retriever.withheld(question.text))
    tellable = _tellable(withheld, policy)
    within = obstacle_limit(Gate.ENTRY, policy)
    reason = _obstacle(evidence, withheld, within=within)
    shown = _obstacle(evidence, tellable, within=within)
    return replace(
        decision,
        reason=reason or decision.reason,
        shown_reason=shown or decision.shown_reason,
        signals=(
            *decision.signals,
            *_signals_of_obstacles(evidence, tellable, policy, within=within),
        ),
    )


def obstacle_limit(gate: Gate, policy: Policy) -> float:
    """Return the ratio below which an obstacle explains a gate's refusal."""
    if gate is Gate.HARD_REFUSAL:
        return policy.alpha
    return min(policy.alpha, float(default("alpha")))


def _tellable(withheld: Sequence[Excluded], policy: Policy) -> tuple[Excluded, ...]:
    return tuple(
        piece
        for piece in withheld
        if policy.reveal_not_entitled or piece.cause is not Exclusion.NOT_ENTITLED
    )


def _without_obstacle(piece: Excluded) -> float:
    return piece.distance if piece.cause is Exclusion.UNVERIFIED else piece.ratio


def _signals_of_obstacles(
    evidence: Sequence[Evidence],
    withheld: Sequence[Excluded],
    policy: Policy,
    *,
    within: float,
) -> Iterator[Signal]:
    gate = Gate.HARD_REFUSAL
    ratio, _ = _nearest_obstacle(evidence, withheld)
    yield Signal(gate, NEAREST_OBSTACLE, ratio, within, None)
    for piece in withheld:
        name, value = _COUNTERFACTUALS[piece.cause], _without_obstacle(piece)
        yield Signal(gate, name, value, policy.alpha, None)


def _signals(retrieval: Retrieval, policy: Policy) -> tuple[Signal, ...]:
    gate = Gate.HARD_REFUSAL
    evidence = retrieval.evidence
    # The deciding piece: the one nearest to passing, each measured by its own bound.
    best = min(evidence, key=lambda piece: share_of_bound(piece, policy), default=None)
    passed = passes(retrieval, policy) if policy.hard_refusal else None
    ratio = best.ratio if best else None
    limit = bound(best, policy) if best else policy.alpha
    nearest = min((piece.distance for piece in evidence), default=None)
    verified = min((p.ratio for p in evidence if p.is_verified), default=None)
    unverified = min((p.ratio for p in evidence if not p.is_verified), default=None)
    return (
        Signal(gate, "distance_over_confidence", ratio, limit, passed),
        Signal(gate, "verified_ratio", verified, policy.alpha, None),
        Signal(gate, "unverified_ratio", unverified, policy.alpha_unverified, None),
        Signal(gate, "nearest_distance", nearest, policy.horizon, None),
        Signal(gate, "visible_entries", float(retrieval.visible), None, None),
    )


def share_of_bound(piece: Evidence, policy: Policy) -> float:
    """Return the ratio as a share of its bound; nothing passes a bound of 0."""
    limit = bound(piece, policy)
    return piece.ratio / limit if limit > 0 else float("inf")
