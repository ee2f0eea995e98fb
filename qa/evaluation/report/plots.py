"""The plots of a report, as SVG for web pages and PNG for everything else."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.metrics.calibration_error import (
    Bin,
    expected_calibration_error,
    reliability,
)
from qa.evaluation.metrics.selective import auroc, precision_recall
from qa.exceptions import EvaluationDataError
from qa.pipeline.policy import Policy

from . import svg_charts as charts
from .signals import PROBABILITIES, alpha_sweep, probabilities_of, scores_of

if TYPE_CHECKING:
    from matplotlib.axis import Axis

Rows = Sequence[LabelledAnswer]


def plot_svg(name: str, rows: Rows, policy: Policy | None) -> bytes:
    with charts.house_style():
        figure, description = PLOTS[name](rows, policy)
        return charts.saved(figure, charts.SVG, description)


def write_plots(rows: Rows, directory: Path, *, policy: Policy | None) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, draw in PLOTS.items():
        with charts.house_style():
            try:
                drawing = draw(rows, policy)
            except EvaluationDataError:
                continue  # these rows have no data for this plot
            written += charts.write_drawing(drawing, name.replace("_", "-"), directory)
    return written


def _risk_coverage(rows: Rows, _policy: Policy | None) -> charts.Drawing:
    return charts.risk_coverage_drawing(*_scores(rows))


def _precision_recall(rows: Rows, _policy: Policy | None) -> charts.Drawing:
    scores, wrong = _scores(rows)
    figure, (axes,) = charts.panels(width=9.0)  # with room for the legend
    curves = {}
    for name, values in scores.items():
        curve, area = precision_recall(values, wrong), auroc(values, wrong)
        if curve is None or area is None:
            raise EvaluationDataError(
                "These answers are all right or all wrong, so there is no curve; use "
                "labelled answers of both kinds."
            )
        precision, recall = curve
        curves[name] = recall, precision, area
    areas = charts.draw_scores(axes, curves)
    share = 1 - sum(wrong) / len(wrong)
    axes.axhline(share, color=charts.INK, linestyle=":", label="chance (0.500)")
    axes.set_xlabel("recall: share of the right that is shown")
    axes.set_ylabel("precision: share of the shown that is right")
    charts.share_axes(axes, top=1.0)
    charts.draw_legend(axes, "signal (AUROC)")
    text = (
        f"Of {len(wrong):,} questions, {share:.1%} may be shown. How well each signal "
        "separates them from the others (AUROC; higher is better, 0.5 is chance): "
        f"{areas}."
    )
    return figure, charts.Description("Precision against recall", text)


def _reliability(rows: Rows, _policy: Policy | None) -> charts.Drawing:
    held = {name: probabilities_of(rows, name) for name in PROBABILITIES}
    held = {name: pair for name, pair in held.items() if pair[0]}
    if not held:
        raise EvaluationDataError(
            "None of these answers has a probability; the language model's server may "
            "not report any."
        )
    figure, (curve, counts) = charts.panels(rows=2, height=5.4)
    said = []
    for (name, (values, right)), style in zip(
        held.items(), charts.styles(), strict=False
    ):
        bins = reliability(values, right)
        error = expected_calibration_error(bins) or 0.0
        means = [one.probability for one in bins]
        label = f"{charts.words(name)} (ECE {error:.3f})"
        curve.plot(means, [one.accuracy for one in bins], label=label, **style)
        counts.bar(
            [(one.low + one.high) / 2 for one in bins],
            [one.count for one in bins],
            width=0.06,
            color=style["color"],
            alpha=0.8,
        )
        said.append(f"{charts.words(name)}: ECE {error:.3f}, " + _describe_bins(bins))
    curve.plot([0, 1], [0, 1], color=charts.INK, linestyle=":", label="as it says")
    curve.set_ylabel("share that is right")
    _counts(counts.yaxis)
    counts.set_ylabel("answers")
    counts.set_xlabel("probability that the answer may be shown")
    counts.set_xlim(-0.02, 1.02)
    curve.set_ylim(-0.02, 1.02)
    charts.percent_axis(curve.yaxis)
    charts.percent_axis(counts.xaxis)
    curve.legend(loc="upper left")
    return figure, charts.Description("Reliability", " ".join(said))


def _refusals(rows: Rows, policy: Policy | None) -> charts.Drawing:
    swept = alpha_sweep(rows, policy)
    if not swept or policy is None:
        raise EvaluationDataError(
            "No gate can be replayed on these answers: they have no signals, or no "
            "policy decided them."
        )
    figure, (refused, accuracy) = charts.panels(rows=2, height=5.4)
    alphas = [part["alpha"] for part in swept]
    said = []
    names = ("hard refusal alone", "all gates")
    for name, style in zip(names, charts.styles(), strict=False):
        refused.plot(alphas, [p[name]["refused"] for p in swept], label=name, **style)
        shares = [p[name]["accuracy"] for p in swept]
        values = [np.nan if share is None else share for share in shares]
        accuracy.plot(alphas, values, label=name, **style)
        own = next(p[name] for p in swept if p["is_own"])
        said.append(
            f"with {name} {own['refused']:,} of {len(rows):,} are refused, and "
            + _describe_accuracy(own["accuracy"])
        )
    for axes in (refused, accuracy):
        axes.axvline(policy.alpha, color=charts.INK, linestyle=":", label="this policy")
    _counts(refused.yaxis)
    refused.set_ylabel("questions refused")
    refused.set_ylim(0, len(rows) * 1.03)
    accuracy.set_ylabel("share of answers right")
    accuracy.set_xlabel("alpha: bound of distance / confidence")
    accuracy.set_ylim(-0.02, 1.02)
    charts.percent_axis(accuracy.yaxis)
    refused.legend(loc="best")
    text = f"At this policy's alpha, {policy.alpha:g}: {'; '.join(said)}."
    return figure, charts.Description("Refusals and accuracy against alpha", text)


def _scores(rows: Rows) -> tuple[dict[str, list[float | None]], list[bool]]:
    scores = scores_of(rows)
    if not scores:
        raise EvaluationDataError("None of these answers has a signal to rank by.")
    return scores, [row.is_wrong_if_shown for row in rows]


def _counts(axis: "Axis") -> None:
    from matplotlib.ticker import StrMethodFormatter  # noqa: PLC0415

    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _describe_bins(bins: Sequence[Bin]) -> str:
    parts = (f"at {b.probability:.2f} {b.accuracy:.0%} of {b.count:,}" for b in bins)
    return f"right {', '.join(parts)}."


def _describe_accuracy(accuracy: float | None) -> str:
    if accuracy is None:
        return "how many answers are right is unknown"
    return f"{accuracy:.1%} of the answers are right"


PLOTS: Final[Mapping[str, Callable[[Rows, Policy | None], charts.Drawing]]] = {
    "risk_coverage": _risk_coverage,
    "precision_recall": _precision_recall,
    "reliability": _reliability,
    "refusals_against_alpha": _refusals,
}
