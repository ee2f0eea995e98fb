"""The effect of thresholds as rows and sentences of the calibration pages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qa.calibration.threshold_effects import (
    CERTAINTY,
    PERIOD,
    Labelled,
    LabelledEffect,
    Log,
    LoggedEffect,
    ThresholdRow,
)
from qa.pipeline.gates import CONFIDENCES
from qa.pipeline.policy import DECLARED
from qa.pipeline.policy import Policy as PolicyValue

# Field of a policy, and what the pages call it; in the order of comparing.
FIELDS = tuple((name, declared.label) for name, declared in DECLARED.items())
_SPACE = "\u00a0"  # keeps a number and its sign on one line


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
            "not right, or not to be answered at all",
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
        f"{effect.same:,} would come out as they did",
    )


def log_notes(log: Log) -> tuple[str, ...]:
    notes = [
        f"{len(log.answers):,} questions of the last {PERIOD.days} days, evaluations "
        "left out."
    ]
    if log.is_sample:
        read = len(log.answers) + log.other_models + log.refused_stale
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
