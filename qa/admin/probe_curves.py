"""The curves of a probe, drawn from the numbers that its card keeps.

A card may have been uploaded: what it says is checked before it is drawn.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from qa.evaluation.report.curves import draw_legend, draw_steps, share_axes
from qa.evaluation.report.figure import (
    INK,
    SVG,
    Description,
    house_style,
    panels,
    saved,
    styles,
)

Points = list[tuple[float, float]]


def curve_names(metrics: Mapping[str, Any]) -> list[str]:
    """Return the names of the curves that these metrics hold."""
    return [name for name, read in _READ.items() if read(metrics)]


def curve_svg(name: str, metrics: Mapping[str, Any]) -> bytes | None:
    """Draw one of them; None where there is no such curve."""
    points = _READ[name](metrics) if name in _READ else []
    if not points:
        return None
    across, up = zip(*points, strict=True)
    with house_style():
        figure, (axes,) = panels()
        style = next(styles())
        if name == "reliability":
            axes.plot(across, up, label="this probe", **style)
            axes.plot((0, 1), (0, 1), color=INK, linestyle=":", label="exact")
            axes.set_xlabel("confidence")
            axes.set_ylabel("share that is right")
            title = "Reliability"
            text = "; ".join(
                f"at {x:.2f} confidence {y:.0%} are right" for x, y in points
            )
        else:
            draw_steps(axes, across, up, label="this probe", place=0, style=style)
            axes.set_xlabel("coverage: share of the answers that is shown")
            axes.set_ylabel("risk: share of the shown that is wrong")
            title = "Risk against coverage"
            text = f"Showing all, {up[-1]:.0%} are wrong."
        share_axes(axes, top=max(0.05, *up))
        draw_legend(axes, "")
        return saved(figure, SVG, Description(title, text))


def _risk_coverage(metrics: Mapping[str, Any]) -> Points:
    return _shares(metrics.get("risk_coverage"), lambda row: row)


def _reliability(metrics: Mapping[str, Any]) -> Points:
    def point(row: Any) -> Any:  # noqa: ANN401  # whatever JSON holds
        return (
            [row.get("probability"), row.get("accuracy")] if _is_object(row) else None
        )

    return _shares(metrics.get("reliability"), point)


def _shares(rows: object, point: Any) -> Points:  # noqa: ANN401  # from JSON to JSON
    """Return pairs of shares; none at all where one of them is none."""
    found: Points = []
    for row in rows if isinstance(rows, Sequence) and not isinstance(rows, str) else ():
        pair = point(row)
        if not isinstance(pair, Sequence) or len(pair) != 2:
            return []
        if not all(isinstance(v, int | float) and 0 <= v <= 1 for v in pair):
            return []
        found.append((float(pair[0]), float(pair[1])))
    return found


def _is_object(row: object) -> bool:
    return isinstance(row, Mapping)


_READ = {"reliability": _reliability, "risk_coverage": _risk_coverage}
