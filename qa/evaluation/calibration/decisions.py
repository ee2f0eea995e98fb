"""What a policy does with many labelled answers at once: `replay` as columns of numbers.

It decides exactly as `qa.pipeline.replay.replay` does (a property test holds the two
together), some thousand times faster.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qa.evaluation.labelled import LabelledAnswer
from qa.pipeline.replay import Thresholds
from qa.pipeline.scores import SCORES, Score, Trust
from qa.pipeline.types import Gate

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_EVIDENCE = ("verified_ratio", "unverified_ratio", "distance_over_confidence")
_VERDICT = "verdict_probability"
_PLAIN = (
    "readable", "answer_characters", "verdict", "not_a_refusal_in_prose",
    "citations_verified", "unsupported_facts", "question_distance", "same_words",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of each answer; both are False where it is refused.

    Attributes:
        answered: Shown.
        unknown: Not refused by what was measured, and what was not might refuse it.
    """

    answered: BoolArray
    unknown: BoolArray


@dataclass(frozen=True, slots=True)
class Table:
    """Labelled answers as columns; row i is the i-th answer.

    Attributes:
        values: Signals by name; NaN where not measured.
        wrong: Whether showing it would show something wrong.
        groups: Number of its group, from 0 without gaps.
        scores: The signals that have thresholds, by name.
    """

    values: Mapping[str, FloatArray]
    wrong: BoolArray
    groups: IntArray
    scores: Mapping[str, Score]

    def __len__(self) -> int:
        return len(self.wrong)

    def at(self, rows: IntArray | BoolArray) -> "Table":
        """Return some of the rows."""
        return Table(
            values={name: column[rows] for name, column in self.values.items()},
            wrong=self.wrong[rows],
            groups=np.unique(self.groups[rows], return_inverse=True)[1],
            scores=self.scores,
        )

    def decide(self, policy: Thresholds) -> Decided:
        """Decide every row by this policy's thresholds."""
        passed, behind = self._passes_hard_gate(policy), self._behind_it(policy)
        return Decided(passed & behind.answered, passed & behind.unknown)

    def outcomes(self, policy: Thresholds) -> tuple[BoolArray, BoolArray]:
        """Return for each row whether it is shown, and whether it is shown and wrong.

        What is unknown counts as shown and wrong: a promise may not rest on it.
        """
        decided = self.decide(policy)
        wrong = decided.unknown | (decided.answered & self.wrong)
        return decided.answered | decided.unknown, wrong

    def count(
        self, policies: Sequence[Thresholds], errors: FloatArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Return for each policy how many rows `outcomes` shows, and how many wrong.

        A grid repeats the same few bounds at each gate, so each is held once, and all
        pairs are counted as a product of matrices.

        Args:
            policies: Thresholds of a grid.
            errors: How wrong each row counts, in [0, 1]; by its label if None.
        """
        weights = self.wrong if errors is None else errors
        outer = {self._outer_key(policy): policy for policy in policies}
        inner = {self._inner_key(policy): policy for policy in policies}
        passed = np.array(
            [self._passes_hard_gate(policy) for policy in outer.values()], np.float64
        )
        behind = [self._behind_it(policy) for policy in inner.values()]
        shows = np.array([b.answered | b.unknown for b in behind], np.float64)
        fails = np.array([b.unknown + b.answered * weights for b in behind], np.float64)
        row = {key: number for number, key in enumerate(outer)}
        column = {key: number for number, key in enumerate(inner)}
        cells = (
            [row[self._outer_key(policy)] for policy in policies],
            [column[self._inner_key(policy)] for policy in policies],
        )
        shown: FloatArray = (passed @ shows.T)[cells]
        wrong: FloatArray = (passed @ fails.T)[cells]
        return shown.round().astype(np.int64), wrong

    def _outer_key(self, policy: Thresholds) -> tuple[object, ...]:
        return (policy.hard_refusal, policy.alpha, *self._bounds(policy, hard=True))

    def _inner_key(self, policy: Thresholds) -> tuple[object, ...]:
        switches = (policy.soft_refusal, policy.support_check)
        bounds = self._bounds(policy, hard=False)
        return (*switches, policy.verbatim_distance, policy.min_verdict, *bounds)

    def _bounds(self, policy: Thresholds, *, hard: bool) -> Iterator[float]:
        for score in self.scores.values():
            if (score.gate is Gate.HARD_REFUSAL) is hard:
                yield getattr(policy, score.threshold)

    def _passes_hard_gate(self, policy: Thresholds) -> BoolArray:
        passed = self._has_evidence()
        return passed & self._is_covered(policy) if policy.hard_refusal else passed

    def _behind_it(self, policy: Thresholds) -> Decided:
        """Decide every row as if it had passed the hard gate."""
        unread = np.isnan(self.values["readable"])
        verbatim = self._is_verbatim(policy)
        later, unmeasured = self._passes_later(policy)
        generated = ~unread & self._is_fit(policy) & later
        return Decided(
            answered=(unread & verbatim) | (generated & ~unmeasured),
            unknown=(unread & ~verbatim) | (generated & unmeasured),
        )

    def _has_evidence(self) -> BoolArray:
        found = np.zeros(len(self), np.bool_)
        for name in _EVIDENCE:
            found |= ~np.isnan(self.values[name])
        return found

    def _is_covered(self, policy: Thresholds) -> BoolArray:
        covered = np.zeros(len(self), np.bool_)
        for name, score in self.scores.items():
            if score.gate is Gate.HARD_REFUSAL:
                bound = min(policy.alpha, getattr(policy, score.threshold))
                covered |= self.values[name] < bound
        return covered

    def _is_verbatim(self, policy: Thresholds) -> BoolArray:
        distance = self.values["question_distance"]
        near: BoolArray = distance <= policy.verbatim_distance
        near &= self.values["same_words"] == 1.0
        return near if policy.verbatim_distance > 0 else np.zeros(len(self), np.bool_)

    def _is_fit(self, policy: Thresholds) -> BoolArray:
        """Tell what neither the soft gate nor the support check would refuse."""
        fit: BoolArray = (self.values["readable"] != 0) & (
            self.values["answer_characters"] != 0
        )
        if policy.soft_refusal:
            likely = self.values[_VERDICT]
            word = self.values["verdict"] == 1.0
            fit &= np.where(np.isnan(likely), word, likely >= policy.min_verdict)
            fit &= self.values["not_a_refusal_in_prose"] != 0
        if policy.support_check:
            held, extra = (
                np.nan_to_num(self.values[name])
                for name in ("citations_verified", "unsupported_facts")
            )
            fit &= (held != 0) & (extra == 0)
        return fit

    def _passes_later(self, policy: Thresholds) -> tuple[BoolArray, BoolArray]:
        """Hold the signals of later gates (probes): (passed or not measured, the latter)."""
        passed = np.ones(len(self), np.bool_)
        unmeasured = np.zeros(len(self), np.bool_)
        for name, score in self.scores.items():
            if score.gate is Gate.HARD_REFUSAL or name == _VERDICT:
                continue
            column, bound = self.values[name], getattr(policy, score.threshold)
            missing = np.isnan(column)
            passed &= missing | _holds(score, column, bound)
            unmeasured |= missing
        return passed, unmeasured


def table_of(
    labelled: Sequence[LabelledAnswer], scores: Mapping[str, Score] = SCORES
) -> Table:
    """Return the answers as columns; an answer without a group is a group of its own."""
    thresholded = {name: score for name, score in scores.items() if score.threshold}
    names = dict.fromkeys((*_EVIDENCE, *_PLAIN, *thresholded))
    values = {name: _column(labelled, name) for name in names}
    # Stored before the two ratios were told apart: the one counts as verified.
    old = np.array(
        [not answer.signals.keys() & set(_EVIDENCE[:2]) for answer in labelled],
        np.bool_,
    )
    ratio = values["distance_over_confidence"]
    values["verified_ratio"] = np.where(old, ratio, values["verified_ratio"])
    keys = [(answer.group or "", answer.group or answer.id) for answer in labelled]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return Table(
        values=values,
        wrong=np.array([answer.is_wrong_if_shown for answer in labelled], np.bool_),
        groups=np.array([numbers[key] for key in keys], np.int64),
        scores=thresholded,
    )


def was_measured(answer: LabelledAnswer) -> bool:
    """Tell whether it was looked for at all; without evidence the values are None."""
    return any(name in answer.signals for name in _EVIDENCE)


def _holds(score: Score, column: FloatArray, bound: float) -> BoolArray:
    held: BoolArray = column < bound if score.trust is Trust.LOW else column >= bound
    return held


def _column(labelled: Sequence[LabelledAnswer], name: str) -> FloatArray:
    found = (answer.signals.get(name) for answer in labelled)
    return np.array([np.nan if v is None else v for v in found], np.float64)
