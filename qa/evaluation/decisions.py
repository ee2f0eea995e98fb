"""Vectorised decisions of a policy on labelled answers, by the steps of `replay`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from qa.evaluation.cases import LabelledAnswer
from qa.pipeline.gates import (
    CONFIDENCES,
    NEAREST_OBSTACLE,
    QUESTION_RATIO,
    SIGNALS,
    Gate,
    switches,
)
from qa.pipeline.policy import Policy, Scope
from qa.pipeline.replay import (
    EVIDENCE,
    RATIO,
    RATIOS,
    Played,
    is_measured,
    passes_hard_gate,
    steps,
    steps_behind_hard_gate,
)

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
Alike = tuple[Sequence[str], slice | Sequence[int], Sequence[Sequence[float | None]]]
"""Signal names, the rows of the questions that have exactly these, and their values."""

# All signals that a policy compares, and those that tell otherwise equal cases apart.
_HELD = dict.fromkeys(
    (
        *EVIDENCE,
        *(name for name, row in SIGNALS.items() if row.comparison),
        NEAREST_OBSTACLE,
        QUESTION_RATIO,
    )
)
# For these it matters whether they were requested, even if they have no value.
_ASKED = (
    *CONFIDENCES, *EVIDENCE, NEAREST_OBSTACLE,
    *(name for name, row in SIGNALS.items() if row.gate is Gate.BOUNDARY),
)  # fmt: skip
# The policy fields that decide at the hard gate, and those that decide behind it.
_HARD = ("hard_refusal", "alpha", "alpha_unverified")
_BOUNDS = {row.threshold for row in SIGNALS.values() if row.comparison}
_hard_gate = attrgetter(*_HARD)
_behind_the_hard_gate = attrgetter(
    "answer_without_probe", *sorted((_BOUNDS | switches()) - {"", *_HARD})
)


@dataclass(frozen=True, slots=True)
class Decided:
    answered: BoolArray
    unknown: BoolArray


@dataclass(frozen=True, slots=True)
class Columns:
    """Signals of many questions; row i is the i-th question.

    Values are NaN where not measured. `unasked` marks signals that were not requested
    at all, such as a confidence without a probe.
    """

    values: Mapping[str, FloatArray]
    unasked: Mapping[str, BoolArray]

    def __len__(self) -> int:
        return len(self.values[RATIO])

    def value(self, name: str) -> FloatArray:
        return self.values[name]

    def is_asked(self, name: str) -> BoolArray:
        return ~self.unasked[name]

    def decide(self, policy: Policy) -> Decided:
        found = {outcome: np.zeros(len(self), np.bool_) for outcome in Played}
        rest = np.ones(len(self), np.bool_)
        for step in steps(self, policy):
            found[step.outcome] |= rest & step.ends
            rest &= np.logical_not(step.ends)
        return Decided(found[Played.ANSWERED] | rest, found[Played.UNKNOWN])


@dataclass(frozen=True, slots=True)
class Table(Columns):
    """Signals of labelled answers; groups are numbered from 0 without gaps."""

    wrong: BoolArray
    groups: IntArray

    def at(self, rows: IntArray | BoolArray) -> "Table":
        return Table(
            values={name: column[rows] for name, column in self.values.items()},
            unasked={name: column[rows] for name, column in self.unasked.items()},
            wrong=self.wrong[rows],
            groups=np.unique(self.groups[rows], return_inverse=True)[1],
        )

    def outcomes(self, policy: Policy) -> tuple[BoolArray, BoolArray]:
        """Return for each row whether it is shown, and whether it is shown and wrong.

        Unknown rows count as both, so that no promise relies on them.
        """
        decided = self.decide(policy)
        wrong = decided.unknown | (decided.answered & self.wrong)
        return decided.answered | decided.unknown, wrong

    def count(
        self, policies: Sequence[Policy], errors: FloatArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Return for each policy how many rows `outcomes` shows, and how many wrong.

        `errors` is each row's weight as an error, in [0, 1]; its label by default. A
        grid repeats the same few bounds at each gate, so each is computed once:
        policies that differ only at the hard gate are counted in one matrix product.
        """
        weights = self.wrong if errors is None else errors
        if self._asks_itself(policies):
            return self._count_each(policies, weights)
        outer = {_hard_gate(policy): policy for policy in policies}
        place = {key: number for number, key in enumerate(outer)}
        passed = np.array([passes_hard_gate(self, policy) for policy in outer.values()])
        alike: dict[tuple[object, ...], list[int]] = {}
        unread = ~is_measured(self, "readable")
        ratio = self.values[QUESTION_RATIO]
        distances = np.where(np.isnan(ratio), self.values["question_distance"], ratio)[
            unread
        ]
        distances.sort()
        for number, policy in enumerate(policies):
            # Word-for-word answers also depend on alpha, if it is that small.
            covered = int(np.searchsorted(distances, policy.alpha))
            key = (covered, *_behind_the_hard_gate(policy))
            alike.setdefault(key, []).append(number)
        shown = np.zeros(len(policies), np.int64)
        wrong = np.zeros(len(policies), np.float64)
        for numbers in alike.values():
            behind = self._behind_it(policies[numbers[0]])
            shows = behind.answered | behind.unknown
            fails = (behind.unknown + behind.answered * weights)[shows]
            rows = [place[_hard_gate(policies[number])] for number in numbers]
            reached = passed[rows][:, shows]
            shown[numbers] = reached.sum(axis=1)
            wrong[numbers] = reached.astype(np.float64) @ fails
        return shown, wrong

    def _asks_itself(self, policies: Sequence[Policy]) -> bool:
        """Return whether more than evidence decides; gates then can't be counted apart.

        That is so with the adaptive scope and with signals of the boundary gate.
        """
        return any(policy.scope == Scope.ADAPTIVE for policy in policies) or any(
            row.gate is Gate.BOUNDARY and not self.unasked[name].all()
            for name, row in SIGNALS.items()
        )

    def _count_each(
        self, policies: Sequence[Policy], weights: FloatArray | BoolArray
    ) -> tuple[IntArray, FloatArray]:
        decided = [self.decide(policy) for policy in policies]
        shown = [int((each.answered | each.unknown).sum()) for each in decided]
        wrong = [
            float((each.unknown + each.answered * weights).sum()) for each in decided
        ]
        return np.array(shown, np.int64), np.array(wrong, np.float64)

    def _behind_it(self, policy: Policy) -> Decided:
        answered = np.ones(len(self), np.bool_)
        unknown = np.zeros(len(self), np.bool_)
        for gate, stops in steps_behind_hard_gate(self, policy):
            if gate is None:
                unknown |= answered & stops
            answered &= np.logical_not(stops)
        return Decided(answered, unknown)


def columns_of(size: int, alike: Iterable[Alike]) -> Columns:
    """Return the signals of `size` questions as columns, from groups of equal names."""
    values = {name: np.full(size, np.nan) for name in _HELD}
    unasked = {name: np.ones(size, np.bool_) for name in (*_HELD, *_ASKED)}
    for names, places, rows in alike:
        measured = np.array(rows, np.float64)
        for column, name in enumerate(names):
            if name in values:
                values[name][places] = measured[:, column]
            if name in unasked:
                unasked[name][places] = False
    # Results stored before there were two ratios: the single one counts as verified.
    old = np.logical_and.reduce([unasked[name] for name in RATIOS])
    values["verified_ratio"][old] = values[RATIO][old]
    return Columns(values, {name: unasked[name] for name in _ASKED})


def table_of(labelled: Sequence[LabelledAnswer]) -> Table:
    """Return the answers as columns; one without a group is a group of its own."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for number, answer in enumerate(labelled):
        alike.setdefault(tuple(answer.signals), []).append(number)
    signals = columns_of(
        len(labelled),
        (
            (names, numbers, [tuple(labelled[at].signals.values()) for at in numbers])
            for names, numbers in alike.items()
        ),
    )
    keys = [(answer.group or "", answer.group or answer.id) for answer in labelled]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return Table(
        values=signals.values,
        unasked=signals.unasked,
        wrong=np.array([answer.is_wrong_if_shown for answer in labelled], np.bool_),
        groups=np.array([numbers[key] for key in keys], np.int64),
    )


def was_measured(answer: LabelledAnswer) -> bool:
    return any(name in answer.signals for name in EVIDENCE)
