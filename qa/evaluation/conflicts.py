"""The quality of detecting duplicates and contradictions, on labelled pairs.

The signals' model is fitted on the development part only; an ablation leaves signals
out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from kb.conflicts.judgement import (
    MODEL,
    SAME_MATTER,
    SAYS_OTHERWISE,
    Logistic,
    Model,
    judge,
    measure_signals,
)
from kb.conflicts.values import (
    Judge,
    Judgement,
    Kind,
    Statement,
    with_opinion,
)
from kb.embedding.embedder import Embedder
from probes.fitting import fit_logistic
from probes.verifier.readings import Readings
from qa.evaluation.cases import read_lines
from qa.evaluation.metrics.intervals import Rate
from qa.evaluation.report.tables import TextTable
from qa.inference.cross_encoder_judge import Head, states_of

STRENGTH: Final = 1.0  # penalty, chosen by cross-validation on the development part
HEAD_PENALTY: Final = (
    300.0  # penalty on the head's 2,304 weights per kind, chosen in the same way
)
PARTS: Final = ("development", "held_out", "further", "unseen")
"""The signals' weights are fitted on the first part, the head also on the third. The
authors of the rules wrote the first two, two other writers the third, and a writer who
did not know the rules the fourth."""
ABLATIONS: Final[Mapping[str, frozenset[str]]] = {
    "all signals": frozenset(),
    "without numbers and dates": frozenset(
        {"value", "count", "agreeing", "shared_dimension", "lone_dimension"}
    ),
    "without negation and opposites": frozenset(
        {"negation", "axis", "axis_agreeing", "antonym", "lead"}
    ),
    "without subject and condition": frozenset(
        {"slots", "names", "subjects", "fronts", "scopes", "kinds"}
    ),
    "without the distance": frozenset({"distance"}),
    "the distance alone": frozenset((*SAME_MATTER, *SAYS_OTHERWISE)) - {"distance"},
}


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two statements, their labelled relation, and their distance, in [0, 2]."""

    part: str
    kind: Kind
    type: str
    first: Statement
    second: Statement
    distance: float


@dataclass(frozen=True, slots=True)
class Quality:
    precision: Rate
    recall: Rate


def read_pairs(path: Path, embedder: Embedder) -> tuple[LabelledPair, ...]:
    rows = [row for _, row in read_lines(path, _read_pair)]
    ours = embedder.encode([row[3].question or row[3].text for row in rows])
    theirs = embedder.encode([row[4].question or row[4].text for row in rows])
    distances = np.linalg.norm(ours - theirs, axis=1).tolist()
    return tuple(
        LabelledPair(*row, distance=distance)
        for row, distance in zip(rows, distances, strict=True)
    )


def _read_pair(row: Mapping[str, Any]) -> tuple[str, Kind, str, Statement, Statement]:
    sides = Statement(**row["first"]), Statement(**row["second"])
    return str(row["part"]), Kind(row["kind"]), str(row["type"]), *sides


def fit_model(
    pairs: Sequence[LabelledPair], *, version: str, without: Iterable[str] = ()
) -> Model:
    left_out = frozenset(without)
    numbers = [_numbers(pair, left_out) for pair in pairs]
    same = [pair.kind is not Kind.DIFFERENT for pair in pairs]
    known = [number for number, is_same in zip(numbers, same, strict=True) if is_same]
    otherwise = [
        pair.kind is Kind.CONTRADICTION
        for pair in pairs
        if pair.kind is not Kind.DIFFERENT
    ]
    return Model(
        version,
        _fitted(numbers, same, [n for n in SAME_MATTER if n not in left_out]),
        _fitted(known, otherwise, [n for n in SAYS_OTHERWISE if n not in left_out]),
        left_out,
    )


def fit_head(pairs: Sequence[LabelledPair], verifier: Readings) -> Head:
    """Fit a classifier of pair kinds on the states of both statements read together."""
    states = states_of(verifier, [(pair.first, pair.second) for pair in pairs])
    # Otherwise a feature that hardly varies would be scaled up without limit.
    mean, scale = states.mean(0), np.maximum(states.std(0), 1e-3)
    fitted = LogisticRegression(C=1 / HEAD_PENALTY, max_iter=3_000).fit(
        (states - mean) / scale, [list(Kind).index(pair.kind) for pair in pairs]
    )
    weight = fitted.coef_ / scale
    return Head(
        weight.astype(np.float32),
        (fitted.intercept_ - weight @ mean).astype(np.float32),
        verifier.card.cross_fingerprint,
    )


def qualities(pairs: Sequence[LabelledPair], model: Model) -> dict[Kind, Quality]:
    return qualities_of(pairs, [_judge(pair, model).kind for pair in pairs])


def qualities_of(
    pairs: Sequence[LabelledPair], judged: Sequence[Kind]
) -> dict[Kind, Quality]:
    both = list(zip((pair.kind for pair in pairs), judged, strict=True))
    found = {}
    for kind in (Kind.DUPLICATE, Kind.CONTRADICTION):
        right = sum(label is kind and said is kind for label, said in both)
        found[kind] = Quality(
            precision=Rate(right, sum(said is kind for _, said in both)),
            recall=Rate(right, sum(label is kind for label, _ in both)),
        )
    return found


def tables_of(pairs: Sequence[LabelledPair]) -> tuple[TextTable, ...]:
    parts = {part: [p for p in pairs if p.part == part] for part in PARTS}
    return (
        TextTable(
            "Precision and recall, Wilson 95 % intervals",
            ("part", "kind", "pairs", "precision", "recall"),
            tuple(
                (
                    part.replace("_", " "),
                    kind.value,
                    str(found.recall.total),
                    rate_text(found.precision),
                    rate_text(found.recall),
                )
                for part in PARTS
                for kind, found in qualities(parts[part], MODEL).items()
            ),
            words=2,
        ),
        TextTable(
            "Ablation: fitted again on development",
            ("signals", "part", "duplicates P", "R", "contradictions P", "R"),
            tuple(_ablation_rows(parts)),
            words=2,
        ),
        TextTable(
            "By how the pair was made: judged right",
            ("kind", "type", "development", "held out"),
            tuple(_type_rows(parts)),
            words=2,
        ),
    )


def _judge(pair: LabelledPair, model: Model = MODEL) -> Judgement:
    return judge(pair.first, pair.second, distance=pair.distance, model=model)


def _numbers(pair: LabelledPair, left_out: frozenset[str]) -> Mapping[str, float]:
    """Return the signals of the pair's first sentences; each statement has just one."""
    measured = measure_signals(
        pair.first, pair.second, distance=pair.distance, ignored_signals=left_out
    )
    return measured[0].numbers


def _fitted(
    numbers: Sequence[Mapping[str, float]], labels: Sequence[bool], names: list[str]
) -> Logistic:
    features: NDArray[np.float64] = np.array(
        [[each.get(name, 0.0) for name in names] for each in numbers]
    ).reshape(len(numbers), len(names))
    intercept, weights = fit_logistic(
        features, np.array(labels, dtype=np.float64), STRENGTH
    )
    rounded = {
        name: round(float(weight), 3)
        for name, weight in zip(names, weights, strict=True)
    }
    return Logistic(round(intercept, 3), rounded)


def _ablation_rows(
    parts: Mapping[str, Sequence[LabelledPair]],
) -> Iterable[tuple[str, ...]]:
    for name, without in ABLATIONS.items():
        model = fit_model(parts["development"], version=name, without=without)
        for part in PARTS:
            found = qualities(parts[part], model)
            rates = (
                rate
                for kind in (Kind.DUPLICATE, Kind.CONTRADICTION)
                for rate in (found[kind].precision, found[kind].recall)
            )
            yield name, part.replace("_", " "), *(_share(rate) for rate in rates)


def _type_rows(
    parts: Mapping[str, Sequence[LabelledPair]],
) -> Iterable[tuple[str, ...]]:
    ours = PARTS[:2]  # the other parts have too many types
    pairs = [pair for part in ours for pair in parts[part]]
    for kind, name in sorted({(pair.kind.value, pair.type) for pair in pairs}):
        cells = []
        for part in ours:
            own = [p for p in parts[part] if (p.kind.value, p.type) == (kind, name)]
            right = sum(_judge(p).kind is p.kind for p in own)
            cells.append(f"{right} of {len(own)}")
        yield kind, name.replace("_", " "), *cells


def rate_text(rate: Rate) -> str:
    if rate.interval is None:
        return "-"
    low, high = rate.interval
    return f"{_share(rate)} [{low:.2f}, {high:.2f}]"


def _share(rate: Rate) -> str:
    return "-" if rate.value is None else f"{rate.value:.2f}"


def judge_tables_of(
    pairs: Sequence[LabelledPair], asked: Judge
) -> tuple[TextTable, ...]:
    rows, counted = [], []
    for part in PARTS:
        own = [pair for pair in pairs if pair.part == part]
        alone = [_judge(pair) for pair in own]
        unsure = [at for at, each in enumerate(alone) if asked.asked_about.holds(each)]
        opinions = asked.weigh([(own[a].first, own[a].second) for a in unsure])
        both: list[Judgement] = list(alone)
        for at, opinion in zip(unsure, opinions, strict=True):
            if opinion is not None:
                both[at] = with_opinion(alone[at], opinion)
        name = part.replace("_", " ")
        for how, judged in (("signals", alone), ("and the judge", both)):
            kinds = [each.kind for each in judged]
            for kind, quality in qualities_of(own, kinds).items():
                rates = rate_text(quality.precision), rate_text(quality.recall)
                rows.append((name, kind.value, how, *rates))
        likeliest = [max(Kind, key=o.of) if o else None for o in opinions]
        right = sum(
            said is own[at].kind for at, said in zip(unsure, likeliest, strict=True)
        )
        most = max(sum(own[at].kind is kind for at in unsure) for kind in Kind)
        unread = sum(opinion is None for opinion in opinions)
        counts = (len(unsure), unread, right, most)
        counted.append((name, *map(str, counts)))
    return (
        TextTable(
            f"With {asked.name} as judge of the unsure pairs",
            ("part", "kind", "by", "precision", "recall"),
            tuple(rows),
            words=3,
        ),
        TextTable(
            "Its judgements of the unsure pairs",
            ("part", "asked", "unreadable", "right", "of the commonest kind"),
            tuple(counted),
            words=1,
        ),
    )
