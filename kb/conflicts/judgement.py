"""The judgement: two small logistic models over the signals, whose weights can be read.

The first says how likely two entries speak of the same matter, the second how likely
they then say different things of it. A contradiction is both, a duplicate the first
alone. The weights were fitted on the development half of the labelled pairs
(`manage.py evaluate_conflicts --fit`) and are kept in `weights.json`.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from .pair import measure_pair
from .signals import Measured
from .values import Judgement, Kind, Statement

SAME_MATTER: Final = (
    "distance", "overlap", "containment", "slots", "names", "subjects", "fronts",
    "scopes", "kinds", "shared_dimension", "lone_dimension", "length", "agreeing",
)  # fmt: skip
SAYS_OTHERWISE: Final = (
    "value", "count", "agreeing", "negation", "axis", "axis_agreeing", "antonym",
    "answer", "lead", "clashing",
)  # fmt: skip
LIKELY: Final = 0.8
"""Least probability of a duplicate or a contradiction that anybody is shown.

Among an entry's neighbours most are neither, far more than among the labelled pairs, and
a contradiction keeps answers back.
"""
_SHIPPED: Final = Path(__file__).with_name("weights.json")


@dataclass(frozen=True, slots=True)
class Logistic:
    """Log-odds as an intercept and a weight for each signal by name."""

    intercept: float
    weights: Mapping[str, float]

    def probability(self, numbers: Mapping[str, float]) -> float:
        """Return the probability in [0, 1]; a signal that is missing counts as 0."""
        odds = self.intercept + sum(
            weight * numbers.get(name, 0.0) for name, weight in self.weights.items()
        )
        return 1 / (1 + math.exp(-max(-40.0, min(40.0, odds))))


@dataclass(frozen=True, slots=True)
class Model:
    """Both logistic models.

    Attributes:
        version: Stored with what they judged.
        deaf_to: Signals whose clashes count for nothing, in an ablation.
    """

    version: str
    same_matter: Logistic
    says_otherwise: Logistic
    deaf_to: frozenset[str] = frozenset()


def load_model(path: Path = _SHIPPED) -> Model:
    """Read a model from its JSON file."""
    written = json.loads(path.read_text(encoding="utf-8"))
    return Model(
        written["version"],
        Logistic(**written["same_matter"]),
        Logistic(**written["says_otherwise"]),
    )


MODEL: Final = load_model()


def signals_of(
    first: Statement,
    second: Statement,
    *,
    distance: float,
    deaf_to: frozenset[str] = frozenset(),
) -> tuple[Measured, ...]:
    """Return what is measured of each pair of sentences, the distance among it."""
    found = []
    for each in measure_pair(first, second):
        heard = tuple(clash for clash in each.clashes if clash.signal not in deaf_to)
        also = {"distance": distance, "clashing": float(bool(heard))}
        found.append(Measured({**each.numbers, **also}, heard))
    return tuple(found)


def judge(
    first: Statement,
    second: Statement,
    *,
    distance: float,
    model: Model = MODEL,
) -> Judgement:
    """Judge what two entries are to each other; the same whichever comes first.

    Of several sentences the pair that contradicts most decides on a contradiction; all
    of them have to agree for a duplicate.

    Args:
        distance: Euclidean, of the entries' unit vectors, in [0, 2].
    """
    if (second.text, second.question) < (first.text, first.question):
        found = judge(second, first, distance=distance, model=model)
        clashes = (replace(c, first=c.second, second=c.first) for c in found.clashes)
        return replace(found, clashes=tuple(clashes))
    measured = signals_of(first, second, distance=distance, deaf_to=model.deaf_to)
    if not measured:
        certain = {Kind.DIFFERENT: 1.0}
        return Judgement(Kind.DIFFERENT, 1.0, 0.0, (), {"distance": distance}, certain)
    chances = [_chances(each, model) for each in measured]
    decisive = max(range(len(measured)), key=lambda at: chances[at][1])
    same_matter, contradiction = chances[decisive]
    coverage = measured[0].numbers["coverage"]
    duplicate = coverage * min(same - against for same, against in chances)
    probabilities = {
        Kind.DUPLICATE: max(0.0, min(duplicate, 1 - contradiction)),
        Kind.CONTRADICTION: contradiction,
    }
    probabilities[Kind.DIFFERENT] = 1 - sum(probabilities.values())
    kind = likely_kind(probabilities)
    return Judgement(
        kind,
        probabilities[kind],
        same_matter,
        measured[decisive].clashes,
        measured[decisive].numbers,
        probabilities,
    )


def likely_kind(probabilities: Mapping[Kind, float]) -> Kind:
    """Return the likeliest kind, different where another is not likely enough."""
    kind = max(probabilities, key=lambda each: probabilities[each])
    return kind if probabilities[kind] >= LIKELY else Kind.DIFFERENT


def _chances(measured: Measured, model: Model) -> tuple[float, float]:
    """Return how likely it is the same matter, and said otherwise too."""
    same_matter = model.same_matter.probability(measured.numbers)
    if not measured.clashes:  # nothing could be shown to a curator
        return same_matter, 0.0
    return same_matter, same_matter * model.says_otherwise.probability(measured.numbers)
