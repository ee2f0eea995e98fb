"""How well a search ranks what is relevant.

References:
    Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM
    TOIS 20 (2002): nDCG; here with linear gains, as trec_eval and BEIR have it.
"""

import math
from collections.abc import Collection, Mapping, Sequence


def precision_at(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of the first k that is relevant, in [0, 1].

    Of fewer than k that are ranked, the share of those.
    """
    _check(ranked, relevant, k)
    if not ranked:
        raise ValueError("nothing is ranked")
    return len(set(ranked[:k]) & set(relevant)) / min(k, len(ranked))


def recall_at(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of the relevant that stands among the first k, in [0, 1]."""
    _check(ranked, relevant, k)
    return len(set(ranked[:k]) & set(relevant)) / len(set(relevant))


def ndcg_at(ranked: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Return the discounted gain of the first k over the best possible, in [0, 1].

    Args:
        ranked: Ids, best first.
        gains: What each relevant id is worth, above 0; all others are worth nothing.
        k: How many places count.
    """
    _check(ranked, [name for name, gain in gains.items() if gain > 0], k)
    got = _discounted([gains.get(name, 0.0) for name in ranked[:k]])
    return got / _discounted(sorted(gains.values(), reverse=True)[:k])


def reciprocal_rank(ranked: Sequence[str], relevant: Collection[str]) -> float:
    """Return 1 / the place of the first relevant id, 0 if none is ranked.

    Its mean over questions is MRR.
    """
    _check(ranked, relevant, 1)
    wanted = set(relevant)
    places = (place for place, name in enumerate(ranked, 1) if name in wanted)
    return 1 / next(places, math.inf)


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, 1))


def _check(ranked: Sequence[str], relevant: Collection[str], k: int) -> None:
    if not relevant or k < 1:
        msg = f"{len(relevant)} relevant ids and k {k} give no measure"
        raise ValueError(msg)
    if len(set(ranked)) != len(ranked):
        raise ValueError("an id is ranked twice")
