"""Stage 9: whether the sources agree on what the answer rests on.

Two entries may contradict each other although each is near, verified and well quoted; to
pick one is to guess. Only contradictions that curators have not settled count.
"""

from collections.abc import Sequence

from kb.types import Contradiction, Evidence

from .gates import DISAGREEING, Decision, Gate, judge
from .policy import Policy
from .values import Retriever


def judge_agreement(
    evidence: Sequence[Evidence],
    used: Sequence[int],
    *,
    retriever: Retriever,
    policy: Policy,
) -> tuple[tuple[Contradiction, ...], Decision]:
    """Refuse an answer that other evidence contradicts, or let it pass with the notice.

    What nobody verified puts no verified entry in doubt.

    Args:
        evidence: All that was found.
        used: Ids of the entries that the answer rests on.
    """
    pieces = {piece.entry_id: piece for piece in evidence}
    # A single piece of evidence has nothing to disagree with.
    found = retriever.contradictions(tuple(pieces)) if used and len(pieces) > 1 else ()
    unsettled = tuple(each for each in found if _counts(each, used, pieces))
    values = {DISAGREEING: float(len(unsettled))}
    return unsettled, judge(Gate.AGREEMENT, values, policy)


def _counts(
    each: Contradiction, used: Sequence[int], pieces: dict[int, Evidence]
) -> bool:
    """Tell whether a used entry is contradicted by one that is as verified."""
    one, other = each.entries
    if one not in pieces or other not in pieces:
        return False
    return any(
        ours in used and (pieces[theirs].is_verified or not pieces[ours].is_verified)
        for ours, theirs in ((one, other), (other, one))
    )
