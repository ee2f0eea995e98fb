"""How much a gap matters: who asks, how often, how lately.

Every question weighs half after `HALF_LIFE`, and an asker weighs as the square root of
what he asked: ten people who ask once matter more than one who asks ten times.

Weights are kept as seen from a fixed day, growing forward instead of decaying backward
(Cormode et al.: Forward Decay, ICDE 2009), so that a stored score orders gaps rightly at
any later time without being touched: passing time multiplies all of them by the same.
"""

import math
from datetime import UTC, datetime, timedelta

HALF_LIFE = timedelta(days=30)
LANDMARK = datetime(2026, 1, 1, tzinfo=UTC)
"""The day from which weights grow; a double overflows some 84 years later."""


def impact(score: float, at: datetime) -> float:
    """Return what a stored score is worth at a time: about the people who ask it now.

    One question that is asked now by one person is worth 1.
    """
    return score * math.exp2(-_half_lives(at) / 2)


def _half_lives(at: datetime) -> float:
    return (at - LANDMARK) / HALF_LIFE
