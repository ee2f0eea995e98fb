"""Figures of each way of answering the same questions: tables, notes and claims."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qa.evaluation.metrics.intervals import (
    Interval,
    bootstrap,
    clusters_of,
    share,
)
from qa.evaluation.metrics.text import contains_gold
from qa.evaluation.report.tables import TextTable, percent
from studies.cbdr.timing.asking import NOTHING, Cost, Row
from studies.figures import percent_with_interval, points, share_difference, table
from studies.study import Claim

from .asking import (
    CTRLA,
    GATED,
    GIVEN,
    GIVEN_TO_WRITER,
    NEVER,
    NEVER_BY_WRITER,
    ONCE,
    ONCE_BY_WRITER,
    TOP_K,
)
from .questions import TwoHop

LOG_PROBABILITY: Final = "log-probability"
LOG_PROBABILITY_BY_WRITER: Final = "log-probability, CtrlA's writer"
CTRLA_FULL: Final = "CtrlA, every new word in doubt"
# In display order; the last two are the best that the models can do.
WAYS: Final = (
    NEVER, ONCE, GATED, LOG_PROBABILITY, NEVER_BY_WRITER, ONCE_BY_WRITER,
    LOG_PROBABILITY_BY_WRITER, CTRLA, CTRLA_FULL, GIVEN, GIVEN_TO_WRITER,
)  # fmt: skip
_RIGHT, _FOUND, _READ = "right answers", "both entries found", "both entries read"
# Each claim: the figure, the way of answering, and the way it is compared with.
_CLAIMED: Final = (
    (_RIGHT, CTRLA, NEVER),
    (_RIGHT, CTRLA, NEVER_BY_WRITER),
    (_RIGHT, CTRLA, ONCE),
    (_RIGHT, CTRLA, ONCE_BY_WRITER),
    (_RIGHT, CTRLA, LOG_PROBABILITY),
    (_RIGHT, CTRLA, LOG_PROBABILITY_BY_WRITER),
    (_RIGHT, CTRLA_FULL, ONCE_BY_WRITER),
    (_FOUND, CTRLA_FULL, ONCE),
    (_READ, CTRLA_FULL, ONCE),
)
_PAPER: Final = "Table 3"

Flags = NDArray[np.bool_]
Rows = Mapping[str, Row]


def is_right(one: TwoHop, row: Row) -> bool:
    return contains_gold(row["answer"], one.references) == 1.0


@dataclass(frozen=True, slots=True)
class Way:
    """One way of answering all questions; arrays have one element per question.

    Attributes:
        shown: Whether the product shows the answer; None where that was not decided.
        searches: Number of queries searched for.
        sentences: Number of sentences written one by one; 0 where the answer was not.
        found: Whether a search found each entry, of shape (questions, 2).
        read: Whether the answer was written from each entry, of the same shape.
        cost: Mean per question.
    """

    name: str
    right: Flags
    shown: Flags | None
    searches: NDArray[np.float64]
    sentences: NDArray[np.float64]
    found: Flags
    read: Flags
    cost: Cost

    @property
    def both(self) -> Flags:
        return self.found[:, 0] & self.found[:, 1]

    @property
    def both_read(self) -> Flags:
        return self.read[:, 0] & self.read[:, 1]

    def of(self, figure: str) -> Flags:
        return {_RIGHT: self.right, _FOUND: self.both, _READ: self.both_read}[figure]


def way_of(name: str, questions: Sequence[TwoHop], rows: Rows) -> Way:
    own = [rows[one.id] for one in questions]
    is_shown = [row.get("shown") for row in own]
    total = NOTHING
    for row in own:
        total = total.plus(Cost(**row["cost"]), 1 / len(own))
    return Way(
        name,
        np.array([is_right(*pair) for pair in zip(questions, own, strict=True)]),
        None if None in is_shown else np.array(is_shown, np.bool_),
        np.array([row["searches"] for row in own], np.float64),
        np.array([row["segments"] for row in own], np.float64),
        np.array([row["found"] for row in own], np.bool_),
        np.array([row["read"] for row in own], np.bool_),
        total,
    )


def sent_to(alone: Rows, evidence: Rows, sent: Mapping[str, bool]) -> dict[str, Row]:
    """Return the rows of a decider that sends these questions to retrieval.

    It has written its own draft by then, so a question that is sent costs that too.
    """
    found: dict[str, Row] = {}
    for name, goes in sent.items():
        if goes:
            own, other = Cost(**alone[name]["cost"]), Cost(**evidence[name]["cost"])
            found[name] = {**evidence[name], "cost": asdict(own.plus(other))}
        else:
            found[name] = dict(alone[name])
    return found


@dataclass(frozen=True, slots=True)
class Compared:
    """All ways of answering the same questions.

    Attributes:
        clusters: The cluster of each question; those with the same answer share one.
            The bootstrap resamples clusters.
    """

    questions: Sequence[TwoHop]
    ways: Mapping[str, Way]
    clusters: NDArray[np.intp]

    def interval(self, counted: Flags) -> Interval | None:
        (found,) = bootstrap(
            [share(counted, np.ones(len(counted), np.bool_))], self.clusters
        )
        return found


def compared(questions: Sequence[TwoHop], rows: Mapping[str, Rows]) -> Compared:
    clusters = clusters_of([(one.id, one.answer) for one in questions])
    ways = {name: way_of(name, questions, rows[name]) for name in WAYS}
    return Compared(questions, ways, clusters)


def claims_of(found: Compared) -> Iterator[Claim]:
    ways = found.ways
    full, once = ways[CTRLA_FULL], ways[ONCE]
    why = (
        f"Searching at every new word finds both entries for {_share(full.both)} of the "
        f"questions, one search for {_share(once.both)}; the loop's answers are written "
        f"by both for {_share(full.both_read)}, of which {_share(full.right[full.both_read])} "
        f"are right. With both given the same writer is right on "
        f"{_share(ways[GIVEN_TO_WRITER].right)}. An answer of the loop has "
        f"{full.sentences.mean():.2f} sentences on average."
    )
    for figure, name, other in _CLAIMED:
        difference = share_difference(
            ways[other].of(figure), ways[name].of(figure), found.clusters
        )
        retrieved = _share(ways[name].searches > 0)
        yield Claim(
            f"{name}: {figure} of two-hop questions, against {other} (retrieves {retrieved})",
            _PAPER,
            difference.value,
            difference.interval,
            len(found.questions),
            why,
        )


def tables(found: Compared) -> Iterator[TextTable]:
    ways = list(found.ways.values())
    yield table(
        "Two-hop questions",
        ways,
        {
            "way": lambda way: way.name,
            "right (95 %)": lambda way: _with_interval(found, way.right),
            "retrieves": lambda way: _share(way.searches > 0),
            "searches": lambda way: f"{way.searches.mean():.2f}",
            "first entry found": lambda way: _share(way.found[:, 0]),
            "second": lambda way: _share(way.found[:, 1]),
            "both (95 %)": lambda way: _with_interval(found, way.both),
            "both read": lambda way: _share(way.both_read),
            "right of those": lambda way: _share(way.right[way.both_read]),
        },
    )
    yield table(
        "Answers that the product shows",
        [way for way in ways if way.name in (GATED, CTRLA, CTRLA_FULL)],
        {
            "way": lambda way: way.name,
            "shown": lambda way: _share(_shown(way)),
            "of those right": lambda way: _share(way.right[_shown(way)]),
        },
    )
    yield _by_family(found)
    yield table(
        "Cost per question",
        ways,
        {
            "way": lambda way: way.name,
            "model calls": lambda way: f"{way.cost.prompt_passes:.2f}",
            "tokens read": lambda way: f"{way.cost.prompt_tokens:.0f}",
            "tokens written": lambda way: f"{way.cost.steps:.1f}",
            "ms": lambda way: f"{way.cost.milliseconds:.0f}",
        },
    )
    yield table(
        "Differences on the same questions",
        list(claims_of(found)),
        {
            "claim": lambda claim: claim.name,
            "verdict": lambda claim: claim.verdict,
            "points (95 %)": lambda claim: points(claim.value, claim.interval),
        },
        words=2,
    )


def _by_family(found: Compared) -> TextTable:
    families = np.array([one.family for one in found.questions])
    names = sorted(set(families.tolist()))
    rows = [
        (
            f"{name} ({np.count_nonzero(families == name)})",
            *(_share(way.right[families == name]) for way in found.ways.values()),
        )
        for name in names
    ]
    return TextTable("Right by kind of question", ("kind", *found.ways), tuple(rows))


def figures_of(
    found: Compared, thresholds: Mapping[str, float | None]
) -> dict[str, Any]:
    """Return all figures, ready for JSON."""
    return {
        "questions": len(found.questions),
        "thresholds": {
            name: value if value is None or np.isfinite(value) else str(value)
            for name, value in thresholds.items()
        },
        "ways": [
            {
                "way": way.name,
                "right": float(way.right.mean()),
                "right_95": found.interval(way.right),
                "shown": None if way.shown is None else float(way.shown.mean()),
                "retrieves": float((way.searches > 0).mean()),
                "searches": float(way.searches.mean()),
                "sentences": float(way.sentences.mean()),
                "found": way.found.mean(axis=0).tolist(),
                "both_found": float(way.both.mean()),
                "both_found_95": found.interval(way.both),
                "both_read": float(way.both_read.mean()),
                "cost": asdict(way.cost),
            }
            for way in found.ways.values()
        ],
    }


def notes(calibration: int, within: float) -> list[str]:
    return [
        "A question takes two entries: one links what the question names to a bridge, the "
        "other states the answer about the bridge. Both are in the knowledge base, with all "
        "other facts of the data.",
        f"Thresholds were chosen on {calibration:,} other questions, to retrieve as little as "
        f"keeps accuracy within {100 * within:g} percentage points of its best there. CtrlA is "
        "the product's monitored answering: sentence by sentence, steered, searching and "
        "rewriting where words are in doubt. Every new word in doubt: no confidence is "
        "enough, so everything that is not in the evidence is searched for.",
        f"At most {TOP_K} entries are read at once. As in the papers, nothing is refused, "
        f"except in {GATED!r}, which shows what the knowledge base's own policy shows.",
        "Right: the text contains the answer or another name of it, whether it is shown or "
        "not. Longer answers are more likely to contain it.",
        f"{GIVEN!r}: one search that finds both entries, an upper bound of what retrieval can "
        "gain. Unless CtrlA's writer is named, the evidence is read as in the product, by the "
        "model with its adapter, which copies; CtrlA's writer is the model without the "
        "adapter.",
        "Model calls are passes over a prompt. Times are of this run.",
        "Intervals are 95 %, from a bootstrap that resamples answers, each with all questions "
        "that have it.",
    ]


def _with_interval(found: Compared, counted: Flags) -> str:
    return percent_with_interval(float(counted.mean()), found.interval(counted))


def _shown(way: Way) -> Flags:
    return np.zeros_like(way.right) if way.shown is None else way.shown


def _share(counted: Flags) -> str:
    return percent(float(counted.mean()) if len(counted) else None)
