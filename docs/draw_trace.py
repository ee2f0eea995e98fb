"""Draw a trace as a picture: `python docs/draw_trace.py SPANS TRACE_ID PICTURE`.

SPANS is a file from the OpenTelemetry collector's file exporter: one line of OTLP JSON
per batch. TRACE_ID is in base64, as in that file. The picture is an SVG; each span is a
bar, below its parent's.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.patches import Patch

_COLOURS = {
    "web request": "#0b6663",
    "worker": "#43509a",
    "model": "#a1261d",
    "database": "#b7791f",
    "other": "#8a93a3",
}
_PARTS = {
    "job": "worker",
    "retrieve.sql": "database",
    **dict.fromkeys(
        ("retrieve.embed", "verify", "mark", "load", "generate", "support"), "model"
    ),
}
_MILLISECONDS = 1e-6  # per nanosecond


@dataclass(frozen=True, slots=True)
class Span:
    """One span of the trace; times in nanoseconds since 1970."""

    name: str
    span_id: str
    parent_id: str
    began: int
    ended: int


def main() -> None:
    """Draw the trace named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spans", type=Path)
    parser.add_argument("trace")
    parser.add_argument("picture", type=Path)
    options = parser.parse_args()
    draw(list(read(options.spans, options.trace)), options.picture)


def read(file: Path, trace: str) -> Iterator[Span]:
    """Yield the spans of one trace."""
    for line in file.read_text().splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    if span["traceId"] == trace:
                        yield Span(
                            span["name"],
                            span["spanId"],
                            span.get("parentSpanId", ""),
                            int(span["startTimeUnixNano"]),
                            int(span["endTimeUnixNano"]),
                        )


def draw(spans: list[Span], picture: Path) -> None:
    """Write the picture; the first span starts at 0 ms."""
    rows = [*_in_order(spans)]
    zero = min(span.began for span, _ in rows)
    figure = Figure(figsize=(9, 0.32 * len(rows) + 0.8), layout="constrained")
    axes = figure.subplots()
    for place, (span, _) in enumerate(rows):
        took = (span.ended - span.began) * _MILLISECONDS
        start = (span.began - zero) * _MILLISECONDS
        part = "web request" if "/" in span.name else _PARTS.get(span.name, "other")
        axes.barh(place, took, left=start, color=_COLOURS[part], height=0.7)
        axes.text(start + took, place, f" {took:,.1f} ms", va="center", fontsize=8)
    patches = [Patch(color=colour, label=part) for part, colour in _COLOURS.items()]
    axes.legend(handles=patches, frameon=False, fontsize=8, loc="lower left")
    names = ["   " * depth + span.name for span, depth in rows]
    axes.set_yticks(range(len(rows)), names, ha="left", fontsize=9)
    axes.tick_params(axis="y", pad=150, length=0)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlim(left=0)
    axes.set_xlabel("milliseconds since the request came")
    axes.spines[["top", "right", "left"]].set_visible(False)
    with rc_context({"svg.fonttype": "none"}):  # keep text as text, not as paths
        figure.savefig(picture, metadata={"Date": None})


def _in_order(spans: list[Span]) -> Iterator[tuple[Span, int]]:
    """Yield each span with its depth, parents before their children."""
    inside = defaultdict(list)
    known = {span.span_id for span in spans}
    for span in sorted(spans, key=lambda each: each.began):
        inside[span.parent_id if span.parent_id in known else ""].append(span)
    waiting = [(span, 0) for span in reversed(inside[""])]
    while waiting:
        span, depth = waiting.pop()
        yield span, depth
        waiting += [(part, depth + 1) for part in reversed(inside[span.span_id])]


if __name__ == "__main__":
    main()
