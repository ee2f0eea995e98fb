"""Means over what is told token by token."""

from collections.abc import Sequence
from typing import Final

# Stands for minus infinity, which JSON does not know.
_LEAST: Final = -1e6


def mean_of(values: Sequence[float]) -> float | None:
    """Return the mean, at least -1e6; None of nothing."""
    return max(sum(values) / len(values), _LEAST) if values else None
