"""What a policy does with many labelled answers at once: `replay` as columns of numbers.

It decides exactly as `qa.pipeline.replay.replay` does (a property test holds the two
together), some thousand times faster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qa.evaluation.cases import LabelledAnswer
from qa.pipeline.agree import DISAGREEING
from qa.pipeline.gates import CONFIDENCES, EARLY, THRESHOLDED
from qa.pipeline.replay import Thresholds

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_EVIDENCE = ("verified_ratio", "unverified_ratio", "distance_over_confidence")
_PLAIN = (
    "readable", "answer_characters", "verdict", "verdict_probability",
    "not_a_refusal_in_prose", "citations_verified", "unsupported_facts",
    "question_distance", "same_words", DISAGREEING,
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
        unasked: By the name of a confidence, whether no probe was asked for it, which
            is not the same as that none could tell.
        wrong: Whether showing it would show something wrong.
        groups: Number of its group, from 0 without gaps.
    """

    values: Mapping[str, FloatArray]
    unasked: Mapping[str, BoolArray]
    wrong: BoolArray
    groups: IntArray

    def __len__(self) -> int:
        return len(self.wrong)

    def at(self, rows: IntArray | BoolArray) -> "Table":
        return Table(
            values={name: column[rows] for name, column in self.values.items()},
            unasked={name: column[rows] for name, column in self.unasked.items()},
            wrong=self.wrong[rows],
            groups=np.unique(self.groups[rows], return_inverse=True)[1],
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

        Combinations repeat the same few bounds at each gate, so each is held once: all
        that differ at the hard gate alone are counted as one product.

        Args:
            policies: Thresholds of a grid.
            errors: How wrong each row counts, in [0, 1]; by its label if None.
        """
        weights = self.wrong if errors is None else errors
        outer = {self._outer_key(policy): policy for policy in policies}
        place = {key: number for number, key in enumerate(outer)}
        passed = np.array([self._passes_hard_gate(policy) for policy in outer.values()])
        alike: dict[tuple[object, ...], list[int]] = {}
        distances = np.sort(self.values["question_distance"][self._is_unread()])
        for number, policy in enumerate(policies):
            # A word-for-word answer heeds alpha too, if only where it is that small.
            covered = int(np.searchsorted(distances, policy.alpha))
            key = (covered, *self._inner_key(policy))
            alike.setdefault(key, []).append(number)
        shown = np.zeros(len(policies), np.int64)
        wrong = np.zeros(len(policies), np.float64)
        for numbers in alike.values():
            behind = self._behind_it(policies[numbers[0]])
            shows = behind.answered | behind.unknown
            fails = (behind.unknown + behind.answered * weights)[shows]
            rows = [place[self._outer_key(policies[number])] for number in numbers]
            reached = passed[rows][:, shows]
            shown[numbers] = reached.sum(axis=1)
            wrong[numbers] = reached.astype(np.float64) @ fails
        return shown, wrong

    def _outer_key(self, policy: Thresholds) -> tuple[object, ...]:
        return (policy.hard_refusal, policy.alpha, policy.alpha_unverified)

    def _inner_key(self, policy: Thresholds) -> tuple[object, ...]:
        switches = (policy.soft_refusal, policy.support_check, policy.abstention)
        least = (getattr(policy, field) for field in CONFIDENCES.values())
        bounds = (policy.verbatim_distance, policy.min_verdict, *least)
        free = (policy.answer_without_probe, policy.sources_must_agree)
        return (*switches, *bounds, *free)

    def _passes_hard_gate(self, policy: Thresholds) -> BoolArray:
        passed = self._has_evidence()
        return passed & self._is_covered(policy) if policy.hard_refusal else passed

    def _behind_it(self, policy: Thresholds) -> Decided:
        """Decide every row as if it had passed the hard gate."""
        unread = self._is_unread()
        verbatim = self._is_verbatim(policy)
        goes_on = ~self._ends_early(policy)
        trusted, unasked = self._is_trusted(policy)
        generated = ~unread & goes_on & self._is_fit(policy) & trusted
        return Decided(
            answered=((unread & verbatim) | (generated & ~unasked))
            & self._is_agreed(policy),
            unknown=(unread & ~verbatim & goes_on) | (generated & unasked),
        )

    def _is_unread(self) -> BoolArray:
        """Tell which rows no language model wrote a draft for."""
        return np.isnan(self.values["readable"])

    def _has_evidence(self) -> BoolArray:
        found = np.zeros(len(self), np.bool_)
        for name in _EVIDENCE:
            found |= ~np.isnan(self.values[name])
        return found

    def _is_covered(self, policy: Thresholds) -> BoolArray:
        covered: BoolArray = self.values["verified_ratio"] < policy.alpha
        least = min(policy.alpha, policy.alpha_unverified)
        return covered | (self.values["unverified_ratio"] < least)

    def _is_verbatim(self, policy: Thresholds) -> BoolArray:
        distance = self.values["question_distance"]
        near: BoolArray = distance <= policy.verbatim_distance
        near &= (distance < policy.alpha) & (self.values["same_words"] == 1.0)
        return near if policy.verbatim_distance > 0 else np.zeros(len(self), np.bool_)

    def _is_fit(self, policy: Thresholds) -> BoolArray:
        """Tell what neither the soft gate nor the support check would refuse."""
        fit: BoolArray = (self.values["readable"] != 0) & (
            self.values["answer_characters"] != 0
        )
        if policy.soft_refusal:
            likely = self.values["verdict_probability"]
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

    def _is_agreed(self, policy: Thresholds) -> BoolArray:
        """Tell which rows no other evidence is known to contradict."""
        agreed: BoolArray = ~(np.nan_to_num(self.values[DISAGREEING]) > 0)
        return agreed if policy.sources_must_agree else np.ones(len(self), np.bool_)

    def _ends_early(self, policy: Thresholds) -> BoolArray:
        low: BoolArray = self.values[EARLY] < policy.min_early_confidence
        return low if policy.abstention else np.zeros(len(self), np.bool_)

    def _is_trusted(self, policy: Thresholds) -> tuple[BoolArray, BoolArray]:
        """Hold what the probes said: (not refused by it, some were not asked)."""
        trusted = np.ones(len(self), np.bool_)
        unasked = np.zeros(len(self), np.bool_)
        for name, field in CONFIDENCES.items():
            least = getattr(policy, field)
            if not policy.abstention or least <= 0:
                continue
            missing = np.isnan(self.values[name])
            free = self.unasked[name] | policy.answer_without_probe
            trusted &= np.where(missing, free, self.values[name] >= least)
            unasked |= self.unasked[name]
        return trusted, unasked


def table_of(labelled: Sequence[LabelledAnswer]) -> Table:
    """Return the answers as columns; an answer without a group is a group of its own."""
    names = dict.fromkeys((*_EVIDENCE, *_PLAIN, *THRESHOLDED))
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
        unasked={
            name: np.array(
                [name not in answer.signals for answer in labelled], np.bool_
            )
            for name in CONFIDENCES
        },
        wrong=np.array([answer.is_wrong_if_shown for answer in labelled], np.bool_),
        groups=np.array([numbers[key] for key in keys], np.int64),
    )


def was_measured(answer: LabelledAnswer) -> bool:
    """Tell whether it was looked for at all; without evidence the values are None."""
    return any(name in answer.signals for name in _EVIDENCE)


def _column(labelled: Sequence[LabelledAnswer], name: str) -> FloatArray:
    found = (answer.signals.get(name) for answer in labelled)
    return np.array([np.nan if v is None else v for v in found], np.float64)
