"""The dashboard's charts: the same numbers as a drawing and as a table.

The library that draws them comes with the admin's theme, so nothing is fetched from
elsewhere; the table is for readers who cannot see the drawing.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from textwrap import wrap
from typing import Any

from qa.answers.wording import GATES, time_in_words
from qa.dashboard.services import SignalDrift
from qa.dashboard.traffic import Decided, Step, Traffic
from qa.pipeline.gates import Gate, Reason
from qa.policies.wording import REASONS
from qa.reviews.sample_plan import Estimate

# Each has a contrast of at least 3:1 on the theme's light and dark surfaces.
_COLOURS = ("#2f9a91", "#c27a12", "#d4564a", "#5b83d6", "#9a6fd0", "#6f8a2f", "#c25590")
_GOOD, _WARN, _BAD, _PLAIN = _COLOURS[:4]
_OUTCOMES = {"answered": _GOOD, "refused": _WARN, "failed": _BAD}
_TICKS = "#8b8f98"
_LABEL_LENGTH = 22  # characters of a line: on a phone more are cut off
_LINE_REM, _BETWEEN_REM, _AXIS_REM, _MIN_REM = 0.95, 0.5, 2.5, 9.0

Series = tuple[str, str, Callable[[Step], float | None]]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of `kind` "bar" or "line" as the library's JSON, and its table.

    Attributes:
        height: In rem; None for the usual one.
    """

    title: str
    summary: str
    kind: str
    data: str
    options: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    height: float | None = None


def volume_chart(traffic: Traffic, step: str) -> Chart:
    series = [(name, colour, attrgetter(name)) for name, colour in _OUTCOMES.items()]
    summary = f"{traffic.answered:,} answered, {traffic.refused:,} refused, {traffic.failed:,} failed"
    return _over_time(f"Questions by {step}", summary, traffic.steps, series, str)


def votes_chart(traffic: Traffic, step: str) -> Chart:
    series = [("up", _GOOD, attrgetter("up")), ("down", _BAD, attrgetter("down"))]
    summary = f"{traffic.up:,} thumbs up, {traffic.down:,} down"
    title = f"Votes, by the {step} of the question"
    return _over_time(title, summary, traffic.steps, series, str)


def latency_chart(traffic: Traffic, step: str) -> Chart:
    series: list[Series] = [
        ("half within", _GOOD, lambda each: each.latency.p50 if each.latency else None),
        ("95 % within", _WARN, lambda each: each.latency.p95 if each.latency else None),
        ("99 % within", _BAD, lambda each: each.latency.p99 if each.latency else None),
    ]
    summary = ", ".join(
        f"{name or 'all'}: half within {time_in_words(found.p50)}, 95 % within "
        f"{time_in_words(found.p95)}, 99 % within {time_in_words(found.p99)}"
        for name, found in sorted(traffic.latency.items())
    )
    title = f"Time to an answer or a refusal, by {step}, in milliseconds"
    return _over_time(
        title, summary, traffic.steps, series, time_in_words, is_line=True
    )


def decided_chart(traffic: Traffic) -> Chart:
    whole = max(1, traffic.questions)
    rows = [(decided_by(each), each.answers) for each in traffic.decided]
    bars = [_OUTCOMES[each.outcome] for each in traffic.decided]
    labels = [_label_lines(name) for name, _ in rows]
    longest = max(map(len, labels), default=0)  # all bars are as high as the highest
    data = {
        "labels": labels,
        "datasets": [
            {
                **_bar("questions", bars, [count for _, count in rows]),
                "maxBarThickness": 24,
            }
        ],
    }
    return Chart(
        "Answered and refused, by gate and reason",
        ", ".join(f"{name}: {count:,}" for name, count in rows[:3]),
        "bar",
        json.dumps(data),
        json.dumps(_options(is_sideways=True, has_legend=False)),
        ("decided", "questions", "share"),
        tuple((name, f"{count:,}", percent(count / whole)) for name, count in rows),
        max(_MIN_REM, len(labels) * (longest * _LINE_REM + _BETWEEN_REM) + _AXIS_REM),
    )


def quality_chart(estimates: dict[str, Estimate | None]) -> Chart | None:
    """Draw the intervals of shares in percent; None if nothing was reviewed."""
    known = {name: each for name, each in estimates.items() if each is not None}
    if not known:
        return None
    spans = [[round(100 * end, 2) for end in (e.low, e.high)] for e in known.values()]
    points = [round(100 * each.share, 2) for each in known.values()]
    marks = [[max(0, point - 0.15), min(100, point + 0.15)] for point in points]
    data = {
        "labels": list(known),
        "datasets": [
            {**_bar("95 % interval", [_PLAIN] * len(spans), spans), "barThickness": 14},
            {**_bar("estimate", [_BAD] * len(marks), marks), "barThickness": 28},
        ],
    }
    options = _options(is_sideways=True)
    options["scales"]["x"] |= {"beginAtZero": True, "suggestedMax": 10}
    options["scales"]["y"]["stacked"] = True
    return Chart(
        "False answers and false refusals as reviewed, in percent",
        "; ".join(
            f"{name} {percent(each.share)} ({interval(each)})"
            for name, each in known.items()
        ),
        "bar",
        json.dumps(data),
        json.dumps(options),
        ("share", "estimate", "95 % interval", "reviews", "answers covered"),
        tuple(
            (
                name,
                percent(each.share),
                interval(each),
                f"{each.reviewed:,}",
                f"{each.covered:,} of {each.population:,}",
            )
            for name, each in known.items()
        ),
    )


def drift_chart(drift: Sequence[SignalDrift]) -> Chart | None:
    """Draw each signal's distance from the labelled ones over time; None for none."""
    if not drift:
        return None
    days = sorted({day for each in drift for day, _ in each.history})
    names = [each.signal.replace("_", " ") for each in drift]
    datasets = [
        _line(
            name, _COLOURS[n % len(_COLOURS)], [dict(each.history).get(d) for d in days]
        )
        for n, (name, each) in enumerate(zip(names, drift, strict=True))
    ]
    drifted = [n for n, each in zip(names, drift, strict=True) if each.has_drifted]
    return Chart(
        "Drift: distance of live signals from the certified ones",
        f"Drifted: {', '.join(drifted) or 'none'}",
        "line",
        json.dumps({"labels": [day.isoformat() for day in days], "datasets": datasets}),
        json.dumps(_options()),
        ("signal", "policy", "live answers", "distance", "stability index", "state"),
        tuple(
            (
                name,
                each.policy,
                f"{each.live:,}",
                "none" if each.distance is None else f"{each.distance:.3f}",
                f"{each.psi:.3f}",
                "drifted" if each.has_drifted else "as labelled",
            )
            for name, each in zip(names, drift, strict=True)
        ),
    )


def decided_by(each: Decided) -> str:
    gate = GATES[Gate(each.gate)].name if each.gate else ""
    if each.outcome == "refused":
        reason = REASONS[Reason(each.reason)].title if each.reason else ""
        return f"Refused, {gate.lower()}: {reason}"
    if each.outcome == "answered":
        return f"Answered, {gate.lower()}" if gate else "Answered, all gates passed"
    return each.outcome.capitalize()


def percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def interval(each: Estimate) -> str:
    return f"{percent(each.low)} to {percent(each.high)}"


def _over_time(
    title: str,
    summary: str,
    steps: Sequence[Step],
    series: Sequence[Series],
    say: Callable[[float], str],
    *,
    is_line: bool = False,
) -> Chart:
    draw = _line if is_line else _bar
    labels = [step.begin.isoformat() for step in steps]
    columns = [[value(step) for step in steps] for _, _, value in series]
    datasets = [
        draw(name, colour, values)
        for (name, colour, _), values in zip(series, columns, strict=True)
    ]
    cells = [
        ["none" if value is None else say(value) for value in values]
        for values in columns
    ]
    return Chart(
        title,
        summary,
        "line" if is_line else "bar",
        json.dumps({"labels": labels, "datasets": datasets}),
        json.dumps(_options(is_stacked=not is_line)),
        ("from", *(name for name, _, _ in series)),
        tuple(zip(labels, *cells, strict=True)),
    )


def _bar(name: str, colour: object, values: Sequence[object]) -> dict[str, Any]:
    return {"label": name, "backgroundColor": colour, "data": values, "borderWidth": 0}


def _line(name: str, colour: str, values: Sequence[float | None]) -> dict[str, Any]:
    rounded = [None if value is None else round(value, 3) for value in values]
    return {
        "label": name, "borderColor": colour, "backgroundColor": colour, "data": rounded,
        "borderWidth": 2, "pointRadius": 2, "spanGaps": True, "tension": 0,
    }  # fmt: skip


def _options(
    *, is_stacked: bool = False, is_sideways: bool = False, has_legend: bool = True
) -> dict[str, Any]:
    def axis(*, has_lines: bool) -> dict[str, Any]:
        ticks = {"color": _TICKS, "maxRotation": 0, "autoSkipPadding": 16}
        # Every bar's name must be shown; labels of dates and numbers may be skipped.
        ticks["autoSkip"] = has_lines or not is_sideways
        return {"stacked": is_stacked, "ticks": ticks, "grid": {"display": has_lines}}

    labels = {"color": _TICKS, "boxWidth": 12, "boxHeight": 12}
    legend = {"display": has_legend, "position": "bottom", "labels": labels}
    return {
        "animation": False,
        "responsive": True,
        "maintainAspectRatio": False,
        "indexAxis": "y" if is_sideways else "x",
        "interaction": {"mode": "index", "intersect": False},
        "plugins": {"legend": legend},
        "scales": {
            "x": axis(has_lines=is_sideways),
            "y": {**axis(has_lines=not is_sideways), "beginAtZero": True},
        },
    }


def _label_lines(name: str) -> list[str]:
    """Split a label into lines that leave room for bars: what decided, then why."""
    return [line for part in name.split(": ") for line in wrap(part, _LABEL_LENGTH)]
