"""What is judged and what the judgement says, and what a model that reads both adds to it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Protocol

from kb.text.words import Span

LIKELY: Final = 0.8
"""Least probability of a duplicate or a contradiction that anybody is shown.

Among an entry's neighbours most are neither, far more than among the labelled pairs, and
a contradiction keeps answers back.
"""
_OPINION: Final = "opinion"  # names its reason


class Kind(StrEnum):
    DUPLICATE = "duplicate"
    CONTRADICTION = "contradiction"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Statement:
    """What an entry says: its text, and the question that it answers, "" for none.

    `document` is the id of the one that it stands in.
    """

    text: str
    question: str = ""
    language: str = "en"
    document: int | None = None


@dataclass(frozen=True, slots=True)
class Clash:
    """Why two statements cannot both be right."""

    signal: str  # value, negation, axis, direction or answer
    first: Span | None  # None where it is missing there
    second: Span | None
    why: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a model that read two statements holds of them: probabilities that sum to 1.

    `fingerprint` is 64 hex digits of the model and how it is asked.
    """

    duplicate: float
    contradiction: float
    different: float
    name: str
    fingerprint: str

    def of(self, kind: Kind) -> float:
        return float(getattr(self, kind.value))


@dataclass(frozen=True, slots=True)
class Judgement:
    """What two statements are to each other."""

    kind: Kind
    score: float  # probability of `kind` in [0, 1]
    same_matter: float  # probability in [0, 1] that both speak of the same matter
    clashes: tuple[Clash, ...]  # strongest first, whatever the kind
    signals: Mapping[str, float]
    probabilities: Mapping[Kind, float]  # of each kind in [0, 1]; they sum to 1
    opinion: Opinion | None = None


def likely_kind(probabilities: Mapping[Kind, float]) -> Kind:
    """Return the likeliest kind, different where another is not likely enough."""
    kind = max(probabilities, key=lambda each: probabilities[each])
    return kind if probabilities[kind] >= LIKELY else Kind.DIFFERENT


@dataclass(frozen=True, slots=True)
class Unsure:
    """Between which probabilities of the likelier conflict, both included, a judge is asked.

    By a language model conflicts are added only, so none that the signals are sure of is for it.
    """

    least: float = 0.3  # 20 of 20 missed ones of the first development half have it
    most: float = LIKELY - 1e-9

    def holds(self, judgement: Judgement) -> bool:
        likelier = max(
            judgement.probabilities.get(kind, 0.0)
            for kind in (Kind.DUPLICATE, Kind.CONTRADICTION)
        )
        return judgement.opinion is None and self.least <= likelier <= self.most


class Judge(Protocol):
    """A model that reads two statements together and tells what they are to each other."""

    @property
    def name(self) -> str:
        """As people know the model."""

    @property
    def fingerprint(self) -> str:
        """64 hex digits that tell it from every other model and way of asking."""

    @property
    def asked_about(self) -> Unsure:
        """Which pairs it is asked about."""

    def weigh(
        self, pairs: Sequence[tuple[Statement, Statement]]
    ) -> Sequence[Opinion | None]:
        """Return what it holds of each pair, None for an unreadable reply.

        Raises:
            UnavailableError: The model is not available now.
        """


@dataclass(frozen=True, slots=True)
class Opinions:
    """What one judge said of pairs, by the digest of their texts."""

    fingerprint: str = ""
    by_digest: Mapping[str, Opinion | None] = field(default_factory=dict)
    asked_about: Unsure = Unsure()


# Fitted are the signals and the cross-encoder's head, each by itself, on the same pairs: so
# the signals count by half, and what they hold impossible is only unlikely.
_SHARE: Final = 0.5
_UNLIKELY: Final = 0.05


def with_opinion(judgement: Judgement, opinion: Opinion) -> Judgement:
    """Return the judgement by both: the product of their probabilities, summing to 1."""
    products = {
        kind: max(chance, _UNLIKELY) ** _SHARE * opinion.of(kind)
        for kind, chance in judgement.probabilities.items()
    }
    total = sum(products.values())
    if total <= 0:
        return replace(judgement, opinion=opinion)
    probabilities = {kind: product / total for kind, product in products.items()}
    kind = likely_kind(probabilities)
    return replace(
        judgement,
        kind=kind,
        score=probabilities[kind],
        probabilities=probabilities,
        opinion=opinion,
    )


def reasons_as_json(judgement: Judgement) -> list[dict[str, Any]]:
    """Return a judgement's reasons as JSON: what clashes, and what a model said."""
    reasons: list[dict[str, Any]] = [asdict(clash) for clash in judgement.clashes]
    opinion = judgement.opinion
    if opinion is not None:
        why = (
            f"Read together by {opinion.name}, a {judgement.kind.value} is "
            f"{opinion.of(judgement.kind):.0%} likely."
        )
        said = Clash(_OPINION, None, None, why)
        reasons.append({**asdict(said), "opinion": asdict(opinion)})
    return reasons


def opinion_in(reasons: Sequence[Mapping[str, Any]]) -> Opinion | None:
    said = (reason["opinion"] for reason in reasons if reason.get("opinion"))
    return next((Opinion(**opinion) for opinion in said), None)
