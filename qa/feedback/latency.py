"""How long answering took, kept as counts in buckets that grow by a constant factor.

A percentile read from them is off by at most 2.5 % of itself, however many days are added
up: counts of buckets can be added, percentiles can not.

References:
    Masson, Rim and Lee, "DDSketch: a fast and fully-mergeable quantile sketch with
    relative-error guarantees", VLDB 12 (2019).
"""

import math
from collections.abc import Mapping

ACCURACY = 0.025
GROWTH = (1 + ACCURACY) / (1 - ACCURACY)
LEAST_MILLISECONDS = 0.1  # what is faster counts as this


def bucket_of(milliseconds: float) -> int:
    """Return the number of the bucket: that of all times in (GROWTH^(n-1), GROWTH^n]."""
    return math.ceil(math.log(max(milliseconds, LEAST_MILLISECONDS)) / math.log(GROWTH))


def quantile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the milliseconds that `share` of the times do not exceed; None of none.

    Args:
        counts: How many times fell into each bucket.
        share: In (0, 1].
    """
    rank = math.ceil(share * sum(counts.values()))
    for bucket in sorted(counts):
        rank -= counts[bucket]
        if rank <= 0 < counts[bucket]:
            return 2 * GROWTH**bucket / (GROWTH + 1)
    return None
