"""Texts of the calibration pages: effects of thresholds, and self-calibrations."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qa.calibration.models import SelfCalibration
from qa.calibration.threshold_effects import (
    CERTAINTY,
    PERIOD,
    Labelled,
    LabelledEffect,
    Log,
    LoggedEffect,
    ThresholdRow,
)
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
from qa.pipeline.gates import CONFIDENCES
from qa.pipeline.policy import DECLARED
from qa.pipeline.policy import Policy as PolicyValue

# (policy field, label on the pages), in the order in which versions are compared.
FIELDS = tuple((name, declared.label) for name, declared in DECLARED.items())
_SPACE = "\u00a0"  # keeps a number and its % sign on one line


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    cells: tuple[str, ...]
    differs: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class ThresholdCells:
    threshold: str
    is_own: bool
    cells: tuple[str, ...]


THRESHOLD_HEADS = (
    "answered", "of these wrong", "precision", "recall", "share refused",
    "right ones refused",
)  # fmt: skip


def threshold_cells(rows: Iterable[ThresholdRow]) -> tuple[ThresholdCells, ...]:
    return tuple(
        ThresholdCells(
            threshold=f"{row.threshold:g}",
            is_own=row.is_own,
            cells=(
                f"{row.shown:,}",
                f"{row.wrong:,}",
                share(row.precision),
                share(row.recall),
                share(row.masked),
                f"{row.right_masked:,}",
            ),
        )
        for row in rows
    )


def confidence_tables(
    labelled: Labelled, policy: PolicyValue
) -> tuple[tuple[str, tuple[ThresholdCells, ...]], ...]:
    names = dict(FIELDS)
    tables = (
        (names[field], threshold_cells(labelled.by_confidence(policy, signal)))
        for signal, field in CONFIDENCES.items()
    )
    return tuple((name, lines) for name, lines in tables if lines)


def labelled_rows(effects: Sequence[LabelledEffect]) -> tuple[Row, ...]:
    rows = (
        ("answered", "", [part(e.shown, e.questions) for e in effects]),
        (
            "wrong among the answered",
            "incorrect, or should have been refused",
            [part(e.wrong, e.shown) for e in effects],
        ),
        (
            "wrong among the answered, at most",
            f"exact bound, {CERTAINTY:.0%} certain for thresholds fixed beforehand",
            [share(e.risk_bound) if e.shown else "nothing is shown" for e in effects],
        ),
        (
            "false answers",
            "of the questions to be refused",
            [part(e.undue_shown, e.undue) for e in effects],
        ),
        (
            "false refusals",
            "of the questions to be answered",
            [part(e.due_refused, e.due) for e in effects],
        ),
        (
            "unknown",
            "an enforced gate refused them first",
            [f"{e.unknown:,}" for e in effects],
        ),
    )
    return tuple(
        Row(name, tuple(cells), len(set(cells)) > 1, note)
        for name, note, cells in rows
        if name != "unknown" or any(e.unknown for e in effects)
    )


def labelled_sentence(effect: LabelledEffect) -> str:
    return (
        f"Of {effect.questions:,} labelled questions {effect.shown:,} are answered, "
        f"{effect.wrong:,} of them wrongly; {effect.undue_shown:,} false answers, "
        f"{effect.due_refused:,} false refusals."
    )


def logged_rows(effects: Sequence[LoggedEffect]) -> tuple[Row, ...]:
    rows = (
        (
            "more refused",
            [_thumbs(e.more_refused, e.more_refused_down) for e in effects],
        ),
        (
            "more answered",
            [_thumbs(e.more_answered, e.more_answered_down) for e in effects],
        ),
        ("unknown", [f"{e.unknown:,}" for e in effects]),
        ("as it was", [f"{e.same:,}" for e in effects]),
    )
    return tuple(Row(name, tuple(cells), len(set(cells)) > 1) for name, cells in rows)


def logged_sentences(effect: LoggedEffect) -> tuple[str, ...]:
    kept = "because an enforced gate kept them from the model"
    return (
        f"{_thumbs(effect.more_refused, effect.more_refused_down, 'more refused')}",
        f"{_thumbs(effect.more_answered, effect.more_answered_down, 'more answered')}",
        f"{effect.unknown:,} are unknown, {kept}" if effect.unknown else "",
        f"{effect.same:,} would stay as they are",
    )


def log_notes(log: Log) -> tuple[str, ...]:
    notes = [
        f"{len(log):,} questions of the last {PERIOD.days} days, evaluations left out."
    ]
    if log.is_sample:
        read = len(log) + log.other_models + log.refused_stale
        notes.append(f"Only the newest {read:,} of {log.asked:,} were read.")
    if log.other_models:
        notes.append(
            f"{log.other_models:,} more were measured by other models and left out: "
            "their numbers are on another scale."
        )
    if log.refused_stale:
        notes.append(
            f"{log.refused_stale:,} more were refused because the policy was stale; "
            "thresholds do not change that."
        )
    return tuple(notes)


def share(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.1f}{_SPACE}%"


def part(count: int, total: int) -> str:
    if not total:
        return f"{count:,}"
    return f"{count:,} of {total:,} ({share(count / total)})"


def _thumbs(count: int, down: int, what: str = "") -> str:
    said = f"{count:,} {what}".strip()
    return f"{said}, {down:,} of them had thumbs down" if count else said


CURVE = "own-questions"
SYNTHETIC = (
    "This threshold was chosen by a rule, without a certificate, on questions made "
    "from the knowledge base itself. Labelled answers to people's questions calibrate "
    "better."
)
LABELLED = (
    "This threshold was chosen by a rule, without a certificate, on questions that "
    "people asked and that were judged, as far as there are any; the others are made "
    "from the knowledge base itself."
)
_MIN_TOP = 0.1


@dataclass(frozen=True, slots=True)
class SelfWords:
    """The sentences about a self-calibration, and its curve as table cells."""

    promise: str
    shares: tuple[str, ...]
    upper_end: str
    counts: str
    curve: tuple[tuple[str, str, str], ...]
    alternative: str
    origin: str

    @property
    def lines(self) -> tuple[str, ...]:
        worth = (self.upper_end,) if self.upper_end else ()
        return (self.promise, *self.shares, *worth, self.counts, self.origin)


def words_of(kept: SelfCalibration) -> SelfWords:
    of = f"At most {_share(kept.target)} of the shown answers wrong"
    earned = f"{of}: an entry answers by itself from {kept.min_entry_answer:g} on."
    none = f"{of}: no threshold meets this target, and no entry answers by itself."
    safest = (
        f"{of}: no threshold meets this target. An entry answers by itself from "
        f"{kept.min_entry_answer:g} on, the safest threshold that still answers."
    )
    interval = (kept.wrong_low, kept.wrong_high)
    wrong = "Nothing is shown."
    if kept.wrong_share is not None:
        wrong = f"Wrong among the shown: {_share(kept.wrong_share)}{_span(*interval)}."
    answered = _share(kept.answered_share) + _span(
        kept.answered_low, kept.answered_high
    )
    return SelfWords(
        promise=earned if kept.is_earned else safest if kept.answers else none,
        shares=(wrong, f"Own questions answered by an entry: {answered}."),
        upper_end=_upper_end(kept),
        counts=(
            f"{_sources(kept)}{kept.own:,} own questions about {kept.entries:,} "
            f"entries, each asked with its entry and without it, and {kept.foreign:,} "
            f"foreign ones; {kept.shown:,} shown, {kept.wrong:,} of them wrong. The "
            "shares above are weighted on the assumption that "
            f"{_share(kept.unanswerable)} of all questions have no answer."
        ),
        origin=LABELLED if kept.labelled else SYNTHETIC,
        curve=tuple(
            (f"{at:.4f}", _share(answered), _share(wrong))
            for at, answered, wrong in kept.curve
        ),
        alternative=(
            "The share of own questions answered, and the share of wrong ones among "
            "the shown, as the threshold falls. The numbers are in the table below."
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
        share_axes(axes, top=max(_MIN_TOP, 1.2 * max(up, default=0.0)))
        axes.legend(loc="upper left")
        said = words_of(kept)
        text = " ".join((said.promise, *said.shares))
        return saved(figure, SVG, Description("Own questions", text))


def _sources(kept: SelfCalibration) -> str:
    """Describe where the questions come from, human-written ones first."""
    said = [
        (kept.reviewed, "judged by experts in reviews, weighted by strata"),
        (kept.evaluated, "labelled in the newest evaluation"),
    ]
    lines = "".join(f"{count:,} questions {what}. " for count, what in said if count)
    voted = f"Voters named {kept.named:,} of the own ones. " if kept.named else ""
    return lines + voted


def _upper_end(kept: SelfCalibration) -> str:
    """Qualify the share of answered questions; "" if people asked all of them."""
    if not kept.own:
        return ""
    some = f"{kept.own:,} of these" if kept.labelled else "These"
    return (
        f"{some} questions are made from the entries themselves, so this is an upper "
        "limit: people ask in other words and are answered less often. Questions that "
        "people asked and experts reviewed give the true figure."
    )


def _share(value: float) -> str:
    return f"{value:.1%}"


def _span(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return " (no interval)"
    return f" (95 % interval {low:.1%} to {high:.1%})"
