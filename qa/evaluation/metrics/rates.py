"""Rates, each with its interval."""

import math
from dataclasses import dataclass

_Z_95 = 1.959963984540054  # the normal distribution's 0.975 quantile


@dataclass(frozen=True, slots=True)
class Rate:
    """`count` of `total`, with the Wilson 95 % interval.

    `value`, `low` and `high` are None where there was nothing to count.
    """

    count: int
    total: int

    @property
    def value(self) -> float | None:
        """The share, in [0, 1]."""
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The Wilson score interval at 95 % (Wilson, 1927)."""
        return wilson_interval(self.count, self.total) if self.total else None


def wilson_interval(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share.

    References:
        E. B. Wilson, "Probable inference, the law of succession, and statistical
        inference", JASA 22 (1927).

    Raises:
        ValueError: `total` is not positive, or `count` is outside [0, total].
    """
    if total <= 0 or not 0 <= count <= total:
        msg = f"{count} of {total} is no share"
        raise ValueError(msg)
    share = count / total
    spread = _Z_95**2 / total
    centre = (share + spread / 2) / (1 + spread)
    half = _Z_95 * math.sqrt(share * (1 - share) / total + spread / (4 * total))
    half /= 1 + spread
    # Rounding must not put the share itself outside its interval.
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))
