"""Answers of one group (an article) hang together: they are split and resampled as one."""

import numpy as np

from .decisions import BoolArray, FloatArray, IntArray

_RESAMPLES = 2_000


def split(
    groups: IntArray, *, learn_share: float, seed: int
) -> tuple[BoolArray, BoolArray]:
    """Return which rows to learn from and which to test on; no group is in both.

    Groups are drawn in random order until the share of the rows is reached.

    Args:
        groups: Number of each row's group, from 0 without gaps.
        learn_share: In (0, 1).
        seed: The same one gives the same split.
    """
    sizes = np.bincount(groups)
    order = np.random.default_rng(seed).permutation(len(sizes))
    before = np.concatenate(([0], np.cumsum(sizes[order])[:-1]))
    taken = order[before < learn_share * len(groups)]
    learn = np.isin(groups, taken)
    return learn, ~learn


def group_bound(
    shown: BoolArray, wrong: BoolArray, groups: IntArray, *, delta: float, seed: int
) -> float | None:
    """Return the 1 - delta quantile of the risk over resampled groups (bootstrap).

    No guarantee, but it sees how groups hang together, which the exact bound does not.
    None where nothing is wrong, for then resampling has nothing to show.
    """
    if not wrong.any():
        return None
    count = int(groups.max()) + 1
    weights = resampled_groups(count, seed=seed, resamples=_RESAMPLES)
    shows = weights @ np.bincount(groups, shown)
    fails = weights @ np.bincount(groups, wrong)
    risks = fails[shows > 0] / shows[shows > 0]
    return float(np.quantile(risks, 1 - delta))


def resampled_groups(count: int, *, seed: int, resamples: int) -> FloatArray:
    """Return how often each resample holds each group, shape (resamples, count)."""
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(count, np.full(count, 1 / count), size=resamples)
    return drawn.astype(np.float64)
