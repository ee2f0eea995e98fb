"""The effect of thresholds as rows and sentences of the calibration pages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qa.evaluation.effects import (
    CERTAINTY,
    LabelledEffect,
    LoggedEffect,
    ThresholdRow,
)
from qa.models import Certificate, Policy
from qa.pipeline.types import Calibration
from qa.services.running import Running, calibration_state
from qa.services.threshold_effects import PERIOD, Log

# Field of a policy, and what the pages call it; in the order of comparing.
FIELDS = (
    ("alpha", "alpha"),
    ("alpha_unverified", "alpha for unverified evidence"),
    ("horizon", "horizon"),
    ("top_k", "pieces of evidence"),
    ("unverified_floor", "least confidence of unverified evidence"),
    ("verbatim_distance", "largest distance of a word-for-word answer"),
    ("min_verdict", "least verdict"),
    ("hard_refusal", "hard refusal"),
    ("soft_refusal", "soft refusal"),
    ("support_check", "support check"),
    ("reveal_not_entitled", "tells of knowledge that the asker may not see"),
    ("refuse_when_stale", "refuses while stale"),
    ("calibrated_embedder", "set for the embedding model"),
    ("calibrated_language_model", "set for the language model"),
    ("calibrated_retrieval", "set for the way of searching"),
)
_GATES = ("hard_refusal", "soft_refusal", "support_check")
_FINGERPRINT = 12
_SPACE = "\u00a0"  # keeps a number and its sign on one line


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: a name, a cell for each thing compared."""

    name: str
    cells: tuple[str, ...]
    differs: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class ThresholdCells:
    """One line of a threshold table in words."""

    threshold: str
    is_own: bool
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Badge:
    """A short word about a version; tone is "good", "warn", "bad" or "plain"."""

    text: str
    tone: str = "plain"


@dataclass(frozen=True, slots=True)
class Version:
    """A version as a line of a list."""

    policy: Policy
    badges: tuple[Badge, ...]
    alpha: str
    alpha_unverified: str
    min_verdict: str


THRESHOLD_HEADS = (
    "answered", "of these wrong", "precision", "recall", "share refused",
    "right ones refused",
)  # fmt: skip


def threshold_cells(rows: Iterable[ThresholdRow]) -> tuple[ThresholdCells, ...]:
    """Return the lines of a threshold table."""
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


def labelled_rows(effects: Sequence[LabelledEffect]) -> tuple[Row, ...]:
    """Return the figures of several effects side by side."""
    rows = (
        ("answered", "", [_part(e.shown, e.questions) for e in effects]),
        (
            "wrong among the answered",
            "not right, or not to be answered at all",
            [_part(e.wrong, e.shown) for e in effects],
        ),
        (
            "wrong among the answered, at most",
            f"exact bound, {CERTAINTY:.0%} certain for thresholds fixed beforehand",
            [share(e.risk_bound) if e.shown else "nothing is shown" for e in effects],
        ),
        (
            "false answers",
            "of the questions to be refused",
            [_part(e.undue_shown, e.undue) for e in effects],
        ),
        (
            "false refusals",
            "of the questions to be answered",
            [_part(e.due_refused, e.due) for e in effects],
        ),
        ("can't be told", "a gate was in force", [f"{e.unknown:,}" for e in effects]),
    )
    return tuple(
        Row(name, tuple(cells), len(set(cells)) > 1, note)
        for name, note, cells in rows
        if name != "can't be told" or any(e.unknown for e in effects)
    )


def labelled_sentence(effect: LabelledEffect) -> str:
    """Say the effect in one sentence, for who hears it."""
    return (
        f"Of {effect.questions:,} labelled questions {effect.shown:,} are answered, "
        f"{effect.wrong:,} of them wrongly; {effect.undue_shown:,} false answers, "
        f"{effect.due_refused:,} false refusals."
    )


def logged_rows(effects: Sequence[LoggedEffect]) -> tuple[Row, ...]:
    """Return what several versions would have changed, side by side."""
    rows = (
        (
            "more refused",
            [_thumbs(e.more_refused, e.more_refused_down) for e in effects],
        ),
        (
            "more answered",
            [_thumbs(e.more_answered, e.more_answered_down) for e in effects],
        ),
        ("can't be told", [f"{e.unknown:,}" for e in effects]),
        ("as it was", [f"{e.same:,}" for e in effects]),
    )
    return tuple(Row(name, tuple(cells), len(set(cells)) > 1) for name, cells in rows)


def logged_sentences(effect: LoggedEffect) -> tuple[str, ...]:
    """Say what thresholds would have changed, one sentence each."""
    kept = "because the gate in force kept them from the model"
    return (
        f"{_thumbs(effect.more_refused, effect.more_refused_down, 'more refused')}",
        f"{_thumbs(effect.more_answered, effect.more_answered_down, 'more answered')}",
        f"{effect.unknown:,} can't be told, {kept}" if effect.unknown else "",
        f"{effect.same:,} would come out as they did",
    )


def log_notes(log: Log) -> tuple[str, ...]:
    """Say what of the traffic was read, and what was left out."""
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


def policy_rows(policies: Sequence[Policy]) -> tuple[Row, ...]:
    """Return the values of versions side by side."""
    rows = []
    for field, name in FIELDS:
        values = [getattr(policy, field) for policy in policies]
        cells = tuple(_value(field, value) for value in values)
        rows.append(Row(name, cells, len(set(values)) > 1))
    return tuple(rows)


def certificate_rows(certificates: Sequence[Certificate | None]) -> tuple[Row, ...]:
    """Return what each version promises, side by side; nothing where none does."""
    if not any(certificates):
        return ()
    fields = (
        ("promise", str),
        ("tested on", lambda c: f"{c.labelled:,} labelled answers"),
        ("shown", lambda c: _part(c.shown, c.labelled)),
        ("wrong among the shown", lambda c: _part(c.wrong, c.shown)),
        ("bound", lambda c: share(c.bound)),
        ("method", lambda c: c.method.replace("_", " ")),
        ("labels from", lambda c: c.labels_source),
        ("made", lambda c: f"{c.created_at:%Y-%m-%d %H:%M}"),
    )
    return tuple(
        Row(name, tuple(words(c) if c else "none" for c in certificates))
        for name, words in fields
    )


def version(policy: Policy, running: Running) -> Version:
    """Return a version as a line of a list."""
    return Version(
        policy=policy,
        badges=(
            standing(policy, running),
            *(
                [Badge("drifted", "bad")]
                if getattr(policy, "has_drifted", None)
                else []
            ),
            *shadow_badges(policy),
        ),
        alpha=f"{policy.alpha:g}",
        alpha_unverified=f"{policy.alpha_unverified:g}",
        min_verdict=f"{policy.min_verdict:g}",
    )


def standing(policy: Policy, running: Running) -> Badge:
    """Say where the thresholds come from, and whether they hold for what runs."""
    if calibration_state(policy, running) is Calibration.STALE:
        return Badge("stale", "bad")
    if hasattr(policy, "certificate"):
        return Badge("certified", "good")
    return Badge("calibrated" if policy.is_calibrated else "hand-set")


def shadow_badges(policy: Policy) -> tuple[Badge, ...]:
    """Say which gates are in shadow."""
    return tuple(Badge(f"{gate} in shadow", "warn") for gate in shadow_gates(policy))


def shadow_gates(policy: Policy) -> tuple[str, ...]:
    """Return the names of the gates that are in shadow."""
    words = dict(FIELDS)
    return tuple(words[gate] for gate in _GATES if not getattr(policy, gate))


def share(value: float | None) -> str:
    """Return a share as a percentage."""
    return "none" if value is None else f"{100 * value:.1f}{_SPACE}%"


def _part(count: int, total: int) -> str:
    if not total:
        return f"{count:,}"
    return f"{count:,} of {total:,} ({share(count / total)})"


def _thumbs(count: int, down: int, what: str = "") -> str:
    said = f"{count:,} {what}".strip()
    return f"{said}, {down:,} of them had thumbs down" if count else said


def _value(field: str, value: object) -> str:
    match value:
        case bool() if field in _GATES:
            return "enforced" if value else "in shadow"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case str():
            return (
                " ".join(each[:_FINGERPRINT] for each in value.split())
                if field != "calibrated_retrieval"
                else value
            ) or "any"
        case _:
            return str(value)
