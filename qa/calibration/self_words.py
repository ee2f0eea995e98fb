"""What a self-calibration says, on pages and the command line, and its curve."""

from dataclasses import dataclass

from qa.calibration.models import SelfCalibration
from qa.evaluation.report.svg_charts import (
    INK,
    SVG,
    Description,
    house_style,
    panels,
    saved,
    share_axes,
    styles,
)

CURVE = "own-questions"
SYNTHETIC = (
    "Questions made from the knowledge base itself chose this, with a rule and no "
    "certificate: people ask otherwise. Labelled answers of their questions calibrate "
    "better."
)
LABELLED = (
    "Questions that people asked and that were judged chose this, as far as there are "
    "any, with a rule and no certificate; the others are made from the knowledge base "
    "itself."
)
_LEAST_TOP = 0.1


@dataclass(frozen=True, slots=True)
class SelfWords:
    """Sentences, and the numbers of the curve as cells of a table."""

    promise: str
    shares: tuple[str, ...]
    counts: str
    curve: tuple[tuple[str, str, str], ...]
    alternative: str
    origin: str

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.promise, *self.shares, self.counts, self.origin)


def words_of(kept: SelfCalibration) -> SelfWords:
    of = f"At most {_share(kept.target)} of the shown answers wrong"
    earned = f"{of}: an entry answers by itself from {kept.min_entry_answer:g} on."
    none = f"{of}: no threshold earns it, and no entry answers by itself."
    interval = (kept.wrong_low, kept.wrong_high)
    wrong = "Nothing is shown."
    if kept.wrong_share is not None:
        wrong = f"Wrong among the shown: {_share(kept.wrong_share)}{_span(*interval)}."
    answered = _share(kept.answered_share) + _span(
        kept.answered_low, kept.answered_high
    )
    return SelfWords(
        promise=earned if kept.is_earned else none,
        shares=(wrong, f"Own questions answered by an entry: {answered}."),
        counts=(
            f"{_sources(kept)}{kept.own:,} own questions of {kept.entries:,} entries, each asked with its "
            f"entry and without it, and {kept.foreign:,} foreign ones; "
            f"{kept.shown:,} shown, {kept.wrong:,} of them wrong. Of all questions "
            f"{_share(kept.unanswerable)} are assumed to have no answer."
        ),
        origin=LABELLED if kept.labelled else SYNTHETIC,
        curve=tuple(
            (f"{at:.4f}", _share(answered), _share(wrong))
            for at, answered, wrong in kept.curve
        ),
        alternative=(
            "The share of own questions that is answered, and the share of wrong ones "
            "among the shown, as the threshold falls. The numbers are in the table below."
        ),
    )


def curve_svg(kept: SelfCalibration) -> bytes:
    across = [answered for _, answered, _ in kept.curve]
    up = [wrong for _, _, wrong in kept.curve]
    with house_style():
        figure, (axes,) = panels()
        axes.plot(across, up, label="every threshold", **next(styles()))
        axes.axhline(kept.target, color=INK, linestyle=":", label="target")
        if kept.wrong_share is not None:
            chosen = f"chosen, {kept.min_entry_answer:g}"
            axes.plot(
                [kept.answered_share], [kept.wrong_share], marker="*", markersize=14,
                color=INK, linestyle="none", label=chosen,
            )  # fmt: skip
        axes.set_xlabel("share of own questions answered")
        axes.set_ylabel("share of the shown that is wrong")
        share_axes(axes, top=max(_LEAST_TOP, 1.2 * max(up, default=0.0)))
        axes.legend(loc="upper left")
        said = words_of(kept)
        text = " ".join((said.promise, *said.shares))
        return saved(figure, SVG, Description("Own questions", text))


def _sources(kept: SelfCalibration) -> str:
    """Say how many questions come from people, before those that are made."""
    said = [
        (kept.reviewed, "judged by experts in reviews, weighted by strata"),
        (kept.evaluated, "labelled in the newest evaluation"),
    ]
    lines = "".join(f"{count:,} questions {what}. " for count, what in said if count)
    voted = f"Of the own ones voters pointed out {kept.named:,}. " if kept.named else ""
    return lines + voted


def _share(value: float) -> str:
    return f"{value:.1%}"


def _span(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return " (no interval)"
    return f" (95 % interval {low:.1%} to {high:.1%})"
