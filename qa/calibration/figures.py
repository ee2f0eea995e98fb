"""The curves of a run's signals, each as a plot and as a table of its numbers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.metrics.calibration_error import reliability
from qa.evaluation.metrics.selective import aurc, auroc, precision_recall, risk_coverage
from qa.evaluation.report.plots import plot_svg
from qa.evaluation.report.signals import (
    PROBABILITIES,
    alpha_sweep,
    probabilities_of,
    scores_of,
)
from qa.pipeline.gates import find_row
from qa.pipeline.policy import Policy

from .wording import share

Answers = Sequence[LabelledAnswer]
Cells = tuple[str, ...]
_SHARES = tuple(step / 10 for step in range(1, 11))
_SWEPT = ("hard refusal alone", "all gates")


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    title: str
    alternative: str
    heads: Cells
    rows: tuple[Cells, ...]


@dataclass(frozen=True, slots=True)
class _Curve:
    title: str
    alternative: str
    draw: Callable[[Answers, Policy], bytes]
    heads: Cells
    tabulate: Callable[[Answers, Policy], Iterable[Cells]]


def figures(answers: Answers, policy: Policy) -> tuple[Figure, ...]:
    found = []
    for name, curve in _CURVES.items():
        rows = tuple(curve.tabulate(answers, policy)) if answers else ()
        if rows:
            text = f"{curve.alternative} The numbers are in the table below."
            found.append(Figure(name, curve.title, text, curve.heads, rows))
    return tuple(found)


def draw(name: str, answers: Answers, policy: Policy) -> bytes | None:
    curve = _CURVES.get(name)
    return curve.draw(answers, policy) if curve else None


def _refusals(answers: Answers, policy: Policy) -> Iterable[Cells]:
    for part in alpha_sweep(answers, policy):
        own = " (own)" if part["is_own"] else ""
        cells = [f"{part['alpha']:g}{own}"]
        for gates in _SWEPT:
            cells += [f"{part[gates]['refused']:,}", share(part[gates]["accuracy"])]
        yield tuple(cells)


def _precision(answers: Answers, _policy: Policy) -> Iterable[Cells]:
    wrong = [answer.is_wrong_if_shown for answer in answers]
    for name, values in scores_of(answers).items():
        curve, area = precision_recall(values, wrong), auroc(values, wrong)
        if curve is None or area is None:
            return  # all answers are right or all are wrong: there is no curve
        precision, recall = curve
        steps = list(zip(recall, precision, strict=True))
        reached = (next(p for r, p in steps if r >= least - 1e-12) for least in _SHARES)
        yield _words(name), f"{area:.3f}", *(share(precision) for precision in reached)


def _risk(answers: Answers, _policy: Policy) -> Iterable[Cells]:
    wrong = [answer.is_wrong_if_shown for answer in answers]
    for name, values in scores_of(answers).items():
        curve = risk_coverage(values, wrong)
        risks = (share(curve.risk_at(shown)) for shown in _SHARES)
        yield _words(name), f"{aurc(values, wrong):.3f}", *risks


def _reliable(answers: Answers, _policy: Policy) -> Iterable[Cells]:
    for name in PROBABILITIES:
        values, right = probabilities_of(answers, name)
        for one in reliability(values, right) if values else ():
            yield (
                _words(name),
                f"{one.low:.2f} to {one.high:.2f}",
                f"{one.count:,}",
                f"{one.probability:.2f}",
                share(one.accuracy),
            )


def _words(name: str) -> str:
    return find_row(name).label


def _tenths(of: str) -> Cells:
    return tuple(f"{of} {at:.0%}" for at in _SHARES)


_CURVES: Mapping[str, _Curve] = {
    "refusals": _Curve(
        "Refusals and accuracy against alpha",
        "Two curves over alpha: how many questions are refused, and the share of "
        "answers that are right.",
        partial(plot_svg, "refusals_against_alpha"),
        (
            "alpha", "refused, hard refusal alone", "right, hard refusal alone",
            "refused, all gates", "right, all gates",
        ),
        _refusals,
    ),
    "risk-coverage": _Curve(
        "Risk against coverage, every signal",
        "For each signal, the share of wrong answers as more answers are shown, the "
        "most trusted first.",
        partial(plot_svg, "risk_coverage"),
        ("signal", "AURC", *_tenths("risk at")),
        _risk,
    ),
    "precision-recall": _Curve(
        "Precision against recall, every signal",
        "For each signal, the share of shown answers that are right as more of the "
        "right ones are shown.",
        partial(plot_svg, "precision_recall"),
        ("signal", "AUROC", *_tenths("precision at recall")),
        _precision,
    ),
    "reliability": _Curve(
        "Reliability of the probabilities",
        "The share of right answers among those to which a verdict or a probe gives a "
        "certain probability.",
        partial(plot_svg, "reliability"),
        ("signal", "probability", "answers", "mean", "right"),
        _reliable,
    ),
}  # fmt: skip
