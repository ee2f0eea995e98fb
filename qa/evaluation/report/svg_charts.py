"""The style and the drawing of every plot, reproducible on any machine.

matplotlib is imported lazily, and without pyplot, which keeps a reference to every
figure.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import numpy as np

from qa.evaluation.metrics.selective import Scores, aurc, least_aurc, risk_coverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Legible on light and dark pages (contrast of at least 3:1 against both) and distinct
# to colour-blind readers; dashes and markers distinguish them without colour.
INK = "#767b85"
_COLOURS = ("#2e7fc2", "#d1651b", "#158f6b", "#b0589a", "#9a7d0a", "#8276d4", "#c4504a")
_DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 2)), (0, (7, 2, 1, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "nescio",
    "svg.fonttype": "none",  # text stays text: selectable, searchable, read aloud
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 11.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": INK,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.7,
    "lines.markersize": 5.0,
    "path.simplify": True,
}
_ONE_AT_A_TIME = threading.Lock()
SVG = "svg"
PNG = "png"


@dataclass(frozen=True, slots=True)
class Description:
    """A plot's title and a description of its curves, for screen readers."""

    title: str
    text: str


def styles() -> Iterator[dict[str, Any]]:
    """Yield line styles; no two of the first seven share colour or marker."""
    marks = zip(cycle(_COLOURS), cycle(_DASHES), cycle(_MARKERS), strict=False)
    for colour, dash, marker in marks:
        yield {"color": colour, "linestyle": dash, "marker": marker}


@contextmanager
def house_style() -> Iterator[None]:
    """Apply the style while a plot is drawn and saved; locked, since it is global."""
    import matplotlib as mpl  # noqa: PLC0415

    with _ONE_AT_A_TIME, mpl.rc_context(_STYLE):
        yield


def panels(
    *, rows: int = 1, width: float = 7.4, height: float = 4.4
) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(rows, 1, sharex=True, squeeze=False)
    return figure, [row[0] for row in grid]


def saved(figure: Figure, kind: str, description: Description) -> bytes:
    """Return a transparent `SVG` or a white `PNG`, byte-identical for equal figures."""
    held = io.BytesIO()
    if kind == SVG:
        figure.savefig(held, format=SVG, transparent=True, metadata={"Date": None})
        return _described(held.getvalue(), description)
    metadata = {"Software": None, "Title": description.title}
    figure.savefig(held, format=PNG, dpi=144, facecolor="white", metadata=metadata)
    return held.getvalue()


def _described(svg: bytes, description: Description) -> bytes:
    text = svg.decode("utf-8")
    start = text.index("<svg ")  # without the XML declaration, to embed it in a page
    end = text.index(">", start)
    name = description.title.lower().replace(" ", "-")  # ids, unique within a page
    described = (
        f' role="img" aria-labelledby="{name}-title {name}-text">\n'
        f' <title id="{name}-title">{escape(description.title)}</title>\n'
        f' <desc id="{name}-text">{escape(description.text)}</desc'
    )
    return (text[start:end] + described + text[end:]).encode("utf-8")


Drawing = tuple["Figure", Description]
_MIN_SHARE = 0.01
_MAX_POINTS = 400  # more would be invisible and make the page heavy


def risk_coverage_drawing(
    scores: Mapping[str, Scores], wrong: Sequence[bool]
) -> Drawing:
    """Draw each score's risk by coverage, beside the oracle's, within `house_style`."""
    figure, (axes,) = panels(width=9.0)  # with room for the legend
    curves = {}
    for name, values in scores.items():
        curve = risk_coverage(values, wrong)
        curves[name] = curve.coverage, curve.risk, aurc(values, wrong)
    areas = draw_scores(axes, curves)
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
        f"Of {total:,} questions, {bad / total:.1%} would be wrong if all were shown. "
        f"Area under each signal's curve (lower is better): {areas}; oracle "
        f"{least_aurc(wrong):.3f}."
    )
    return figure, Description("Risk against coverage", text)


def draw_scores(
    axes: Axes, curves: Mapping[str, tuple[Sequence[float], Sequence[float], float]]
) -> str:
    drawn = zip(enumerate(curves.items()), styles(), strict=False)
    for (place, (name, (across, up, area))), style in drawn:
        label = f"{words(name)} ({area:.3f})"
        draw_steps(axes, across, up, label=label, place=place, style=style)
    return ", ".join(f"{words(name)} {area:.3f}" for name, (*_, area) in curves.items())


def write_drawing(drawing: Drawing, name: str, directory: Path) -> list[Path]:
    figure, description = drawing
    files = []
    for kind in (SVG, PNG):
        file = directory / f"{name}.{kind}"
        file.write_bytes(saved(figure, kind, description))
        files.append(file)
    return files


def draw_steps(
    axes: Axes,
    across: Sequence[float],
    up: Sequence[float],
    *,
    label: str,
    place: int,
    style: dict[str, Any],
) -> None:
    # The first few answers are noisy and would dominate the scale.
    begin = min(int(np.searchsorted(across, _MIN_SHARE)), len(across) - 1)
    spread = np.linspace(begin, len(across) - 1, _MAX_POINTS).round()
    chosen = np.unique(spread.astype(int))
    every = max(1, len(chosen) // 9)
    axes.plot(
        np.asarray(across)[chosen],
        np.asarray(up)[chosen],
        label=label,
        markevery=(place * every // 7 % len(chosen), every),
        **style,
    )


def share_axes(axes: Axes, *, top: float) -> None:
    axes.set_xlim(0, 1.01)
    axes.set_ylim(0, top * 1.02)
    percent_axis(axes.xaxis)
    percent_axis(axes.yaxis)


def percent_axis(axis: Axis) -> None:
    from matplotlib.ticker import PercentFormatter  # noqa: PLC0415

    axis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def draw_legend(axes: Axes, title: str) -> None:
    """Draw the legend beside the axes, where it hides no curve."""
    axes.legend(title=title, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def words(name: str) -> str:
    return name.replace("_", " ")
