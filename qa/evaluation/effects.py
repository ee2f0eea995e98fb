"""What thresholds do to answers that were measured before: labelled ones and logged ones.

Nothing is asked again. What a gate in force kept from the language model can not be told,
and is counted as that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qa.pipeline.policy import Policy
from qa.pipeline.replay import Played, Signals, Thresholds, replay
from qa.pipeline.scores import CONFIDENCES

from .calibration.bounds import upper_bound
from .calibration.decisions import BoolArray, Table, table_of
from .labelled import LabelledAnswer

CERTAINTY = 0.95
# On the scale of distance / confidence; from 1.4 on (the root of 2) nothing is related.
_RATIOS = tuple(step / 10 for step in range(15))
_SHARES = tuple(step / 10 for step in range(10))


@dataclass(frozen=True, slots=True)
class LabelledEffect:
    """What thresholds make of labelled questions.

    Attributes:
        questions: All of them.
        unknown: Those whose outcome can't be told; in none of the other counts.
        shown: Answered.
        wrong: Of the shown, wrong.
        due_shown: To be answered, and answered.
        due_refused: To be answered, and refused: false refusals.
        undue_shown: To be refused, and answered: false answers.
        undue_refused: To be refused, and refused.
    """

    questions: int
    unknown: int
    shown: int
    wrong: int
    due_shown: int
    due_refused: int
    undue_shown: int
    undue_refused: int

    @property
    def due(self) -> int:
        """Questions to be answered whose outcome is known."""
        return self.due_shown + self.due_refused

    @property
    def undue(self) -> int:
        """Questions to be refused whose outcome is known."""
        return self.undue_shown + self.undue_refused

    @property
    def risk_bound(self) -> float:
        """The exact 95 % upper bound on the wrong share of the shown; 1 if none is."""
        return upper_bound(self.wrong, self.shown, 1 - CERTAINTY)


@dataclass(frozen=True, slots=True)
class ThresholdRow:
    """What one value of one threshold does to labelled questions, the rest as it is.

    Attributes:
        threshold: The value.
        is_own: Whether it is the policy's own.
        shown: Questions that are answered.
        wrong: Of these, wrong.
        right_masked: Right drafts that are not shown.
        questions: Those whose outcome is known.
    """

    threshold: float
    is_own: bool
    shown: int
    wrong: int
    right_masked: int
    questions: int

    @property
    def precision(self) -> float | None:
        """Right among the shown; None if none is."""
        return (self.shown - self.wrong) / self.shown if self.shown else None

    @property
    def recall(self) -> float | None:
        """Shown among the right; None if nothing is right."""
        right = self.shown - self.wrong + self.right_masked
        return (self.shown - self.wrong) / right if right else None

    @property
    def masked(self) -> float | None:
        """Share that is not shown; None without a question."""
        return 1 - self.shown / self.questions if self.questions else None


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """One question as it was decided, with what its asker thought of that."""

    signals: Signals
    was_answered: bool
    has_thumb_down: bool


@dataclass(frozen=True, slots=True)
class LoggedEffect:
    """What thresholds would have made of logged questions, held against what happened.

    Attributes:
        questions: All that were played again.
        more_refused: Were answered and would be refused.
        more_refused_down: Of these, with a thumb down.
        more_answered: Were refused and would be answered.
        more_answered_down: Of these, with a thumb down: their askers wanted an answer.
        unknown: Can't be told: a gate in force kept them from the model.
    """

    questions: int
    more_refused: int
    more_refused_down: int
    more_answered: int
    more_answered_down: int
    unknown: int

    @property
    def same(self) -> int:
        """Questions that would come out as they did."""
        changed = self.more_refused + self.more_answered
        return self.questions - changed - self.unknown


class Labelled:
    """Labelled answers as columns, so that many thresholds are tried in milliseconds."""

    def __init__(self, answers: Sequence[LabelledAnswer]) -> None:
        self._table: Table = table_of(answers)
        self._due = np.array([a.is_answerable is True for a in answers], np.bool_)
        self._undue = np.array([a.is_answerable is False for a in answers], np.bool_)

    def __len__(self) -> int:
        return len(self._table)

    def effect(self, policy: Thresholds) -> LabelledEffect:
        """Return what these thresholds do."""
        decided = self._table.decide(policy)
        shown, refused = decided.answered, ~decided.answered & ~decided.unknown
        return LabelledEffect(
            questions=len(self),
            unknown=_count(decided.unknown),
            shown=_count(shown),
            wrong=_count(shown & self._table.wrong),
            due_shown=_count(shown & self._due),
            due_refused=_count(refused & self._due),
            undue_shown=_count(shown & self._undue),
            undue_refused=_count(refused & self._undue),
        )

    def by_alpha(self, policy: Policy) -> tuple[ThresholdRow, ...]:
        """Return a row for each alpha in steps of 0.1 and for the policy's own."""
        return tuple(
            self._row(replace(policy, alpha=alpha), alpha, alpha == policy.alpha)
            for alpha in sorted({*_RATIOS, policy.alpha})
        )

    def by_min_verdict(self, policy: Policy) -> tuple[ThresholdRow, ...]:
        """Return a row for each least verdict from 0.0 to 0.9 and for the policy's own."""
        return self._by_least(policy, "min_verdict")

    def by_confidence(self, policy: Policy, name: str) -> tuple[ThresholdRow, ...]:
        """Return such a row for each least value of one confidence, abstention enforced.

        Empty where no answer has that confidence: there is nothing to try.

        Args:
            name: Of `qa.pipeline.scores.CONFIDENCES`.

        References:
            Huang et al. (2025), "Confidence-Based Response Abstinence", table 2.
        """
        if np.isnan(self._table.values[name]).all():
            return ()
        return self._by_least(replace(policy, abstention=True), CONFIDENCES[name])

    def _by_least(self, policy: Policy, field: str) -> tuple[ThresholdRow, ...]:
        own = getattr(policy, field)
        changes: list[tuple[float, dict[str, Any]]] = [
            (least, {field: least}) for least in sorted({*_SHARES, own})
        ]
        return tuple(
            self._row(replace(policy, **change), least, least == own)
            for least, change in changes
        )

    def _row(self, policy: Policy, threshold: float, is_own: bool) -> ThresholdRow:
        decided = self._table.decide(policy)
        right, shown = ~self._table.wrong, decided.answered
        return ThresholdRow(
            threshold=threshold,
            is_own=is_own,
            shown=_count(shown),
            wrong=_count(shown & ~right),
            right_masked=_count(right & ~shown & ~decided.unknown),
            questions=_count(~decided.unknown),
        )


def logged_effect(answers: Iterable[LoggedAnswer], policy: Thresholds) -> LoggedEffect:
    """Play logged questions again and count what would come out otherwise."""
    counts = dict.fromkeys(LoggedEffect.__slots__, 0)
    for answer in answers:
        counts["questions"] += 1
        played = replay(answer.signals, policy).outcome
        if played is Played.UNKNOWN:
            counts["unknown"] += 1
        elif answer.was_answered and played is Played.REFUSED:
            counts["more_refused"] += 1
            counts["more_refused_down"] += answer.has_thumb_down
        elif not answer.was_answered and played is Played.ANSWERED:
            counts["more_answered"] += 1
            counts["more_answered_down"] += answer.has_thumb_down
    return LoggedEffect(**counts)


def _count(rows: BoolArray) -> int:
    return int(rows.sum())
