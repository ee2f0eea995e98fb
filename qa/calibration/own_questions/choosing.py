"""The threshold at which a knowledge base's own questions are seldom answered wrongly.

Angelopoulos et al., "Conformal Risk Control" (arXiv 2208.02814): the risk on n calibration
points, with one more wrong one added, is compared with the target. Here that is
(wrong + 1) / (shown + 1) among the shown, or what is known of other knowledge bases in place
of the one. What is unanswerable is made by leaving out: each
question is asked once of everything and once of everything but its own entry.

What is promised: on these questions, mixed as assumed, at most the target of the shown
answers is wrong, with one to spare. What is not: a certificate. The paper's guarantee is for
calibration points drawn like the questions that follow, and for a risk that cannot fall
while more is shown. These questions are made by rule, easier than people's and several of
one entry, and a share of the shown may fall; so it is a sensible default until labelled
answers calibrate a version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from qa.evaluation.metrics.intervals import (
    Interval,
    Numbers,
    Statistic,
    bootstrap,
    clusters_of,
    wilson_interval,
)
from qa.exceptions import CalibrationError

LEAST: Final = 0.5  # no entry answers that more likely doesn't
NONE: Final = 1.01  # no entry answers by itself
# Of thresholds that show fewer, wrong shares jump about and break no lower threshold.
ENOUGH: Final = 40
# What is known before a knowledge base is asked: how many answers were shown, and how many
# of them wrong, from a threshold on, to the questions of 12 support desks, on which nothing
# but an offset and how many entries are read was chosen (docs/reference/measured.md). It
# counts as much as `KNOWN_COUNTS` of its own answers. By as much as desks differ: before the
# verifier's last fits 30 of 639 answers shown at 0.75 by thirteen others were wrong, and 33
# of 433 by nine with more near misses, shares that lie apart like those of a beta
# distribution that counts about 100.
KNOWN: Final = (
    (0.75, 525, 28),
    (0.8, 506, 23),
    (0.85, 473, 19),
    (0.9, 435, 17),
    (0.95, 354, 8),
    (0.98, 245, 5),
)
KNOWN_COUNTS: Final = 100
# How much more often than the safest threshold one may show wrong that shows more.
_NEARLY: Final = 1.1
_PLACES: Final = 10_000  # thresholds have four decimal places
_CURVE_POINTS: Final = 60

Floats = NDArray[np.float64]


class Kind(StrEnum):
    """What is known of a question when it is asked.

    OWN: an entry answers it. LEFT_OUT: that entry, and what says the same, is not there.
    FOREIGN: it is of another trade. REVIEWED and EVALUATED: people asked it, and an expert's
    review or an evaluation's golden set says what answers it, if anything does.
    """

    OWN = "own"
    LEFT_OUT = "left_out"
    FOREIGN = "foreign"
    REVIEWED = "reviewed"
    EVALUATED = "evaluated"


MADE: Final = (Kind.OWN, Kind.LEFT_OUT, Kind.FOREIGN)


@dataclass(frozen=True, slots=True)
class Measured:
    """One question, asked once.

    Attributes:
        group: What it depends on others by: its entry's document, or its trade.
        probability: The verifier's, of the verified entry that would be shown; 0 for none.
        is_right: Whether that entry is the question's own or says the same.
        weight: How many questions a labelled one stands for.
        is_answerable: Whether an entry answers a labelled one.
        is_doubtful: Whether one expert alone says so of a labelled one, against the
            verifier.
        entry: What a made one was made of: several of one entry count as one.
    """

    kind: Kind
    group: str
    probability: float
    is_right: bool
    weight: float = 1.0
    is_answerable: bool = True
    is_doubtful: bool = False
    entry: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """A share in [0, 1] with its 95 % interval over resampled groups, if there is one."""

    value: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Point:
    """What a threshold does: the share of own questions answered, and of the shown wrong."""

    threshold: float
    answered: float
    wrong: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The threshold chosen, `NONE` where the counts earn none, and what it does.

    Attributes:
        is_earned: Whether it keeps the target; if not, it is the safest or `NONE`.
        could_be_earned: Whether so many are shown at `LEAST` that none wrong among them
            would have been enough; if not, there are too few questions to tell.
        shown, wrong: Counts, not weighted.
        wrong_share: Of the shown, weighted; None where nothing is shown.
        answered_share: Of the answerable ones, rightly.
    """

    target: float
    unanswerable: float
    threshold: float
    is_earned: bool
    could_be_earned: bool
    shown: int
    wrong: int
    wrong_share: Share | None
    answered_share: Share
    curve: tuple[Point, ...]


def choose(
    measured: Sequence[Measured],
    *,
    target: float,
    unanswerable: float = 0.5,
    least: float = LEAST,
    bearable: float = 0.0,
    known: Sequence[tuple[float, int, int]] = (),
) -> Choice:
    """Return the least threshold, of `least` or more, that keeps the share of wrong ones.

    At it (wrong + 1) / (shown + 1) is at most `target`, and at each higher one that shows
    `ENOUGH`, wrong / shown. The one that is added stands for the next question; held
    against higher thresholds too, it would break each of those that show next to nothing.
    With what is `known` from elsewhere (thresholds, answers shown from there on, and wrong ones
    among them), `KNOWN_COUNTS` such answers are added instead, at each threshold, where
    questions are enough to tell at all.
    Counts are weighted so that the share `unanswerable` of all made questions has no answer,
    half of them left out and half foreign, and each entry that was asked for counts once.
    Labelled ones have their own weights: of those nothing is assumed.

    Where none keeps the target and the safest threshold is wrong in at most the share
    `bearable`, it is the least one nearly as safe as that: to say nothing any more because
    1 in 15 and not 1 in 20 is wrong helps nobody.

    Raises:
        CalibrationError: There is no answerable question, or the shares are none.
    """
    if not 0 < target < 1 or not 0 <= unanswerable < 1:
        raise CalibrationError(
            f"The target {target:g} and the share of unanswerable questions "
            f"{unanswerable:g} must lie between 0 and 1."
        )
    table = _Table.of(measured, unanswerable)
    thresholds = np.union1d(table.thresholds(), [least])
    shown, wrong = table.counts(thresholds)
    could_be_earned = bool(1 / (shown[0] + 1) <= target)
    holds = wrong + 1 <= target * (shown + 1)
    breaks = (shown >= ENOUGH) & (wrong > target * shown)
    if known and could_be_earned:
        more_shown, more_wrong = _known_at(thresholds, known)
        holds = wrong + more_wrong <= target * (shown + more_shown)
        breaks = (shown >= ENOUGH) & ~holds
    # From the highest down: whether none so far is broken by its counts.
    unbroken = np.logical_and.accumulate(~breaks[::-1])[::-1]
    found = thresholds[holds & unbroken & (thresholds >= least)]
    if len(found):
        threshold = float(found[0])
    else:
        threshold = max(_safest(thresholds, shown, wrong, bearable), least)
    wrong_share, answered_share = table.shares(threshold)
    return Choice(
        target=target,
        unanswerable=unanswerable,
        threshold=threshold,
        is_earned=len(found) > 0,
        could_be_earned=could_be_earned,
        shown=int((table.probability >= threshold).sum()),
        wrong=int((table.is_wrong & (table.probability >= threshold)).sum()),
        wrong_share=wrong_share,
        answered_share=answered_share,
        curve=tuple(table.curve(thresholds)),
    )


def _known_at(
    thresholds: Floats, known: Sequence[tuple[float, int, int]]
) -> tuple[Floats, Floats]:
    """Return how many of `KNOWN_COUNTS` answers each threshold shows, and of them wrong."""
    at, shown, wrong = np.array(known, np.float64).T
    return (
        KNOWN_COUNTS * np.interp(thresholds, at, shown) / shown[0],
        KNOWN_COUNTS * np.interp(thresholds, at, wrong) / shown[0],
    )


def _safest(thresholds: Floats, shown: Floats, wrong: Floats, bearable: float) -> float:
    """Return the least of the thresholds that are nearly as safe as the safest, or `NONE`."""
    share = np.where(shown >= ENOUGH, (wrong + 1) / (shown + 1), np.inf)
    if share.min() > bearable:
        return NONE
    return float(thresholds[share <= _NEARLY * share.min()][0])


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    probability: Floats
    is_wrong: NDArray[np.bool_]
    is_own: NDArray[np.bool_]
    weight: Floats
    clusters: NDArray[np.intp]

    @classmethod
    def of(cls, measured: Sequence[Measured], unanswerable: float) -> "_Table":
        kinds = np.array([each.kind.value for each in measured])
        is_made = np.isin(kinds, [kind.value for kind in MADE])
        is_answerable = np.array([each.is_answerable for each in measured], np.bool_)
        is_own = np.where(is_made, kinds == Kind.OWN.value, is_answerable)
        if not is_own.any():
            raise CalibrationError(
                "No question can be made from this knowledge base; verify some entries "
                "first."
            )
        rows = [(str(place), each.group) for place, each in enumerate(measured)]
        return cls(
            probability=np.array([each.probability for each in measured]),
            is_wrong=np.array([not each.is_right for each in measured]),
            is_own=is_own,
            weight=np.where(
                is_made,
                _weights(kinds, unanswerable) * _share_of_entries(measured),
                np.array([each.weight for each in measured]),
            ),
            clusters=clusters_of(rows),
        )

    def thresholds(self) -> Floats:
        """Return every threshold that shows something else than the one before it."""
        rounded = np.ceil(self.probability * _PLACES) / _PLACES
        return np.unique(np.append(rounded[rounded >= LEAST], LEAST))

    def counts(self, thresholds: Floats) -> tuple[Floats, Floats]:
        """Return for each threshold how many are shown, and how many of them wrong."""
        shown = (self.probability >= thresholds[:, None]) * self.weight
        return shown.sum(axis=1), (shown * self.is_wrong).sum(axis=1)

    def shares(self, threshold: float) -> tuple[Share | None, Share]:
        """Return the share of wrong ones among the shown, and of own ones answered."""
        shown = self.weight * (self.probability >= threshold)
        own = self.weight * self.is_own
        pairs = (
            (shown * self.is_wrong, shown),
            (shown * self.is_own * ~self.is_wrong, own),
        )
        intervals = bootstrap([_ratio(*pair) for pair in pairs], self.clusters)
        wrong, answered = (
            self._share(*pair, found)
            for pair, found in zip(pairs, intervals, strict=True)
        )
        return wrong if shown.any() else None, answered

    def _share(self, part: Floats, whole: Floats, found: Interval | None) -> Share:
        """Return a share; none or all, which no draw changes, has Wilson's of groups."""
        value = float(part.sum() / whole.sum()) if whole.any() else 0.0
        groups = len(np.unique(self.clusters[whole > 0]))
        if found is None and groups > 1 and not part[whole > 0].any():
            found = wilson_interval(0, groups)
        elif found is None and groups > 1 and np.array_equal(part, whole):
            found = wilson_interval(groups, groups)
        return Share(value, found)

    def curve(self, thresholds: Floats) -> list[Point]:
        """Return points from the highest threshold down, spread over all of them."""
        spread = np.linspace(0, len(thresholds) - 1, _CURVE_POINTS).round()
        chosen = thresholds[np.unique(spread.astype(int))][::-1]
        shown, wrong = self.counts(chosen)
        right = self.weight * self.is_own * ~self.is_wrong
        answered = ((self.probability >= chosen[:, None]) * right).sum(axis=1)
        whole = (self.weight * self.is_own).sum()
        return [
            Point(float(at), float(some / whole), float(bad / of))
            for at, some, bad, of in zip(chosen, answered, wrong, shown, strict=True)
            if of > 0
        ]


def _weights(kinds: NDArray[np.str_], unanswerable: float) -> Floats:
    """Return what each made question counts; where a sort is missing the other has its share."""
    counts = {kind: int((kinds == kind.value).sum()) for kind in MADE}
    without = [kind for kind in (Kind.LEFT_OUT, Kind.FOREIGN) if counts[kind]]
    asked = counts[Kind.OWN] + counts[Kind.FOREIGN]
    shares = {kind: unanswerable / len(without) for kind in without}
    shares[Kind.OWN] = 1 - sum(shares.values())
    weight = np.zeros(len(kinds))
    for kind, share in shares.items():
        weight[kinds == kind.value] = share * asked / max(counts[kind], 1)
    return weight


def _share_of_entries(measured: Sequence[Measured]) -> float:
    """Return how many entries there are for each question made of one."""
    own = [each.entry for each in measured if each.kind is Kind.OWN]
    return len({*own}) / len(own) if own and all(own) else 1.0


def _ratio(part: Floats, whole: Floats) -> Statistic:
    def of(draws: Numbers) -> Numbers:
        among = draws @ whole
        return np.where(among > 0, (draws @ part) / np.maximum(among, 1e-12), np.nan)

    return of
