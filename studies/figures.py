"""Table cells for figures, and statistics that several studies share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from qa.evaluation.metrics.intervals import (
    Difference,
    Numbers,
    Rate,
    Statistic,
    bootstrap,
    differences,
    share,
)
from qa.evaluation.metrics.selective import Ranking
from qa.evaluation.report.tables import TextTable

UNKNOWN = "-"
Row = TypeVar("Row")


def table(
    title: str,
    rows: Iterable[Row],
    columns: Mapping[str, Callable[[Row], str]],
    *,
    words: int = 1,
) -> TextTable:
    """Return a table; `columns` maps each heading to what makes its cell from a row."""
    cells = tuple(tuple(cell(row) for cell in columns.values()) for row in rows)
    return TextTable(title, tuple(columns), cells, words=words)


def number(value: float | None, digits: int = 3, *, sign: str = "") -> str:
    return UNKNOWN if value is None else f"{value:{sign}.{digits}f}"


def with_interval(
    value: float | None,
    interval: Sequence[float] | None,
    digits: int = 3,
    *,
    sign: str = "",
) -> str:
    """Return e.g. "0.712 (0.667 to 0.754)", or only the value without an interval."""
    text = number(value, digits, sign=sign)
    if value is None or not interval:
        return text
    low, high = (number(bound, digits, sign=sign) for bound in interval)
    return f"{text} ({low} to {high})"


def percent_with_interval(value: float | None, interval: Sequence[float] | None) -> str:
    """Return a share in [0, 1] as e.g. "35.6 % (29.8 to 42.4)"."""
    if value is None:
        return UNKNOWN
    text = f"{100 * value:.1f} %"
    return f"{text} ({bounds(interval)})" if interval else text


def share_of(
    counted: NDArray[np.bool_], among: NDArray[np.bool_], clusters: NDArray[np.intp]
) -> str:
    """Return the share of `among` that is `counted`, and its interval over clusters."""
    value = float(counted[among].mean()) if among.any() else None
    (interval,) = bootstrap([share(counted, among)], clusters)
    return percent_with_interval(value, interval)


def points(value: float | None, interval: Sequence[float] | None) -> str:
    """Return a difference of shares in percentage points: "-18.8 (-25.0 to -11.2)"."""
    if value is None:
        return UNKNOWN
    text = f"{100 * value:+.1f}"
    return f"{text} ({bounds(interval, sign='+')})" if interval else text


def bounds(interval: Sequence[float] | None, *, sign: str = "") -> str:
    """Return an interval in per cent, e.g. "29.8 to 42.4"."""
    if interval is None:
        return UNKNOWN
    return " to ".join(f"{100 * bound:{sign}.1f}" for bound in interval)


def rate(found: Rate, digits: int = 2) -> str:
    return with_interval(found.value, found.interval, digits)


def share_difference(
    first: Sequence[bool] | NDArray[np.bool_],
    second: Sequence[bool] | NDArray[np.bool_],
    clusters: NDArray[np.intp] | None = None,
) -> Difference:
    """Return the difference between the shares of True on the same questions.

    Args:
        clusters: The cluster number of each question. The bootstrap draws clusters and
            questions within them; without `clusters` it draws questions.
    """
    whole = np.ones(len(first), np.bool_)
    pair = share(np.asarray(first), whole), share(np.asarray(second), whole)
    rows = np.arange(len(first)) if clusters is None else clusters
    (found,) = differences([pair], rows, within=clusters is not None)
    return found


def aurc(ranking: Ranking) -> Statistic:
    return lambda weights: _row(ranking, weights, 0)


def auroc(ranking: Ranking) -> Statistic:
    return lambda weights: _row(ranking, weights, 1)


def _row(ranking: Ranking, weights: Numbers, place: int) -> Numbers:
    area: Numbers = ranking.areas(weights)[place]
    return area
