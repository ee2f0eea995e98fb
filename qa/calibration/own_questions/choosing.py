"""The threshold at which a knowledge base's own questions are seldom answered wrongly.

Angelopoulos et al., "Conformal Risk Control" (arXiv 2208.02814): the risk on n
calibration points, with one more wrong one added, is compared with the target. Here
that is (wrong + 1) / (shown + 1); counts known from other knowledge bases can replace
the added one. Unanswerable questions are made by leaving an entry out: each question is
asked once against everything and once against everything but its own entry.

What holds: on these questions, in the assumed mixture, at most the target share of the
shown answers is wrong, with one to spare. It is not a certificate. The paper's
guarantee requires calibration points drawn like future questions, and a risk that never
falls as more is shown. These questions are made by rule, easier than people's, several
of them about one entry, and the wrong share of the shown may fall. So the threshold is
a sensible default until labelled answers calibrate a version.
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

LEAST: Final = 0.5  # below it, an entry more likely does not answer
NONE: Final = 1.01  # no entry answers by itself
# A threshold that shows fewer has too noisy a wrong share to rule out lower thresholds.
ENOUGH: Final = 40
# The prior: (threshold, answers shown from it on, how many of them wrong), counted with
# the verifier's sixth fit on the questions of 25 support desks, on which only an offset, the numbers of entries
# weighed and read and the penalty for less likeness were chosen
# (docs/reference/measured.md). It counts as much as `KNOWN_COUNTS` of the knowledge
# base's own answers, which matches how much desks differ: before the verifier's last
# fits, 30 of 639 answers shown at 0.75 by thirteen other desks were wrong, and 33 of
# 433 by nine desks with more near misses; a beta prior worth about 100 answers spreads
# its shares as far.
KNOWN: Final = (
    (0.75, 1200, 69),
    (0.8, 1151, 58),
    (0.85, 1091, 51),
    (0.9, 1012, 43),
    (0.95, 839, 22),
    (0.98, 621, 14),
)
KNOWN_COUNTS: Final = 100
# A threshold counts as nearly as safe up to this factor of the safest one's wrong
# share.
_NEARLY: Final = 1.1
_PLACES: Final = 10_000  # thresholds have four decimal places
_CURVE_POINTS: Final = 60

Floats = NDArray[np.float64]


class Kind(StrEnum):
    """The kind of a calibration question, which determines what should answer it.

    OWN: the entry that it was made from. LEFT_OUT: nothing, since that entry and its
    equivalents are removed. FOREIGN: nothing, since it is about another trade. REVIEWED
    and EVALUATED: people asked it, and an expert's review or an evaluation determined
    what answers it, if anything does.
    """

    OWN = "own"
    LEFT_OUT = "left_out"
    FOREIGN = "foreign"
    REVIEWED = "reviewed"
    EVALUATED = "evaluated"


MADE: Final = (Kind.OWN, Kind.LEFT_OUT, Kind.FOREIGN)


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of asking one question once.

    Attributes:
        group: Its entry's document, or its trade; questions of one group are dependent.
        probability: The verifier's probability that the verified entry that would be
            shown answers; 0 if none would be.
        is_right: Whether that entry is the question's own or an equivalent.
        weight: How many questions a labelled one stands for.
        is_answerable: Whether an entry answers a labelled question.
        is_doubtful: Whether the label rests on one expert alone and contradicts the
            verifier.
        entry: The entry of a made question; the questions of an entry count as one.
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
    """A share in [0, 1] with its 95 % interval over resampled groups, if defined."""

    value: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Point:
    """A threshold's share of own questions answered, and share of shown ones wrong."""

    threshold: float
    answered: float
    wrong: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen threshold, or `NONE` if no threshold is safe enough, and its effect.

    Attributes:
        is_earned: Whether it meets the target; if not, it is the safest one or `NONE`.
        could_be_earned: Whether enough questions are shown at the lowest threshold to
            meet the target if none of them were wrong; if not, there are too few to
            tell.
        shown, wrong: Unweighted counts.
        wrong_share: Weighted share of the shown answers; None if nothing is shown.
        answered_share: Weighted share of the answerable questions, answered rightly.
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
    """Choose the lowest threshold from `least` on whose wrong share meets `target`.

    There, (wrong + 1) / (shown + 1) is at most `target`; at every higher threshold that
    shows `ENOUGH`, wrong / shown is. The added one stands for the next question;
    applied to higher thresholds too, it would rule out all that show next to nothing.
    With a prior in `known` (threshold, answers shown from it on, wrong ones among
    them), `KNOWN_COUNTS` such answers are added at each threshold instead, provided
    that there are enough questions to tell at all.

    Counts are weighted so that the share `unanswerable` of all made questions has no
    answer, half of them left out and half foreign, and so that each entry counts once.
    Labelled questions have their own weights; nothing is assumed about them.

    If no threshold meets the target but the safest has a wrong share of at most
    `bearable`, choose the lowest one that is nearly as safe: to stop answering because
    1 in 15 rather than 1 in 20 is wrong helps nobody.

    Raises:
        CalibrationError: There is no answerable question, or a share is out of range.
    """
    if not 0 < target < 1 or not 0 <= unanswerable < 1:
        raise CalibrationError(
            f"The target {target:g} and the share of unanswerable questions "
            f"{unanswerable:g} must be between 0 and 1."
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
    # From the highest down: whether no threshold so far exceeds the target.
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
    """Return the prior's shown and wrong counts at thresholds, of `KNOWN_COUNTS`."""
    at, shown, wrong = np.array(known, np.float64).T
    return (
        KNOWN_COUNTS * np.interp(thresholds, at, shown) / shown[0],
        KNOWN_COUNTS * np.interp(thresholds, at, wrong) / shown[0],
    )


def _safest(thresholds: Floats, shown: Floats, wrong: Floats, bearable: float) -> float:
    """Return the lowest threshold that is nearly as safe as the safest, or `NONE`."""
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
        """Return the distinct thresholds, each of which shows different answers."""
        rounded = np.ceil(self.probability * _PLACES) / _PLACES
        return np.unique(np.append(rounded[rounded >= LEAST], LEAST))

    def counts(self, thresholds: Floats) -> tuple[Floats, Floats]:
        """Return the weighted counts of shown and wrong answers at each threshold."""
        shown = (self.probability >= thresholds[:, None]) * self.weight
        return shown.sum(axis=1), (shown * self.is_wrong).sum(axis=1)

    def shares(self, threshold: float) -> tuple[Share | None, Share]:
        """Return the wrong share of the shown and the answered share of the own."""
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
        """Return a share with its interval.

        Shares of 0 and 1, which resampling cannot change, get Wilson's interval over
        groups.
        """
        value = float(part.sum() / whole.sum()) if whole.any() else 0.0
        groups = len(np.unique(self.clusters[whole > 0]))
        if found is None and groups > 1 and not part[whole > 0].any():
            found = wilson_interval(0, groups)
        elif found is None and groups > 1 and np.array_equal(part, whole):
            found = wilson_interval(groups, groups)
        return Share(value, found)

    def curve(self, thresholds: Floats) -> list[Point]:
        """Return points spread over all thresholds, from the highest down."""
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
    """Return the weight of each made question.

    If there are no left-out or no foreign ones, the other kind takes the whole share.
    """
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
    """Return the number of entries per own question, so that each entry counts once."""
    own = [each.entry for each in measured if each.kind is Kind.OWN]
    return len({*own}) / len(own) if own and all(own) else 1.0


def _ratio(part: Floats, whole: Floats) -> Statistic:
    def of(draws: Numbers) -> Numbers:
        among = draws @ whole
        return np.where(among > 0, (draws @ part) / np.maximum(among, 1e-12), np.nan)

    return of
