"""Curves of scores over labelled answers: drawing that several reports share."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qa.evaluation.metrics.selective import Scores, aurc, least_aurc, risk_coverage

from .figure import INK, PNG, SVG, Description, panels, saved, styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Drawing = tuple["Figure", Description]
_LEAST_SHARE = 0.01
_MOST_POINTS = 400  # more can't be seen, and make a page heavy


def risk_coverage_drawing(
    scores: Mapping[str, Scores], wrong: Sequence[bool]
) -> Drawing:
    """Draw the risk of each score as it lets more through, beside the oracle's.

    Call it, and save what it returns, in the house's style.
    """
    figure, (axes,) = panels(width=9.0)  # with room for the legend
    told = []
    named = enumerate(scores.items())
    for (place, (name, values)), style in zip(named, styles(), strict=False):
        curve = risk_coverage(values, wrong)
        area = aurc(values, wrong)
        label = f"{words(name)} ({area:.3f})"
        draw_steps(
            axes, curve.coverage, curve.risk, label=label, place=place, style=style
        )
        told.append(f"{words(name)} {area:.3f}")
    total, bad = len(wrong), sum(wrong)
    shown = np.arange(1, total + 1)
    best = np.maximum(0, shown - (total - bad)) / shown
    axes.plot(
        shown / total,
        best,
        color=INK,
        linestyle=":",
        label=f"oracle ({least_aurc(wrong):.3f})",
    )
    axes.set_xlabel("coverage: share of all questions that is shown")
    axes.set_ylabel("risk: share of the shown that is wrong")
    share_axes(axes, top=max(0.05, min(1.0, 1.6 * bad / total)))
    draw_legend(axes, "signal (AURC)")
    text = (
        f"Of {total:,} questions {bad / total:.1%} would be wrong if all were shown. Area "
        f"under each signal's curve, lower is better: {', '.join(told)}; the oracle, "
        f"{least_aurc(wrong):.3f}."
    )
    return figure, Description("Risk against coverage", text)


def write_drawing(drawing: Drawing, name: str, directory: Path) -> list[Path]:
    """Write a drawing as SVG and PNG; return the files."""
    figure, description = drawing
    files = []
    for kind in (SVG, PNG):
        file = directory / f"{name}.{kind}"
        file.write_bytes(saved(figure, kind, description))
        files.append(file)
    return files


def draw_steps(
    axes: "Axes",
    across: Sequence[float],
    up: Sequence[float],
    *,
    label: str,
    place: int,
    style: dict[str, Any],
) -> None:
    """Draw a curve by its steps, a marker now and then; like curves show both."""
    # The first few answers are noise that would hide what follows.
    begin = min(int(np.searchsorted(across, _LEAST_SHARE)), len(across) - 1)
    spread = np.linspace(begin, len(across) - 1, _MOST_POINTS).round()
    chosen = np.unique(spread.astype(int))
    every = max(1, len(chosen) // 9)
    axes.plot(
        np.asarray(across)[chosen],
        np.asarray(up)[chosen],
        label=label,
        markevery=(place * every // 7 % len(chosen), every),
        **style,
    )


def share_axes(axes: "Axes", *, top: float) -> None:
    """Let both axes show shares: across from 0 to 1, up from 0 to `top`."""
    axes.set_xlim(0, 1.01)
    axes.set_ylim(0, top * 1.02)
    percent_axis(axes.xaxis)
    percent_axis(axes.yaxis)


def percent_axis(axis: "Axis") -> None:
    """Write an axis's shares as percentages."""
    from matplotlib.ticker import PercentFormatter  # noqa: PLC0415

    axis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def draw_legend(axes: "Axes", title: str) -> None:
    """Put the legend beside the curves: over them it would hide some."""
    axes.legend(title=title, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def words(name: str) -> str:
    """Return a score's name as words."""
    return name.replace("_", " ")
