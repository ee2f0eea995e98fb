"""The input and output of a judgement, and a judging model's opinion on it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Protocol

from kb.text.words import Span

LIKELY: Final = 0.8
"""Least probability of a duplicate or a contradiction that is shown to anyone.

Most neighbours of an entry are neither, far more than among the labelled pairs, and a
contradiction holds back answers.
"""
_OPINION: Final = "opinion"  # the name of its reason


class Kind(StrEnum):
    DUPLICATE = "duplicate"
    CONTRADICTION = "contradiction"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Statement:
    """The content of an entry: its text, and the question it answers, "" for none.

    `document` is the id of the document it belongs to.
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
    """A model's opinion on two statements it read: probabilities that sum to 1.

    `fingerprint` is 64 hex digits that identify the model and how it is asked.
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
    """How two statements relate."""

    kind: Kind
    score: float  # probability of `kind` in [0, 1]
    same_matter: float  # probability in [0, 1] that both are about the same subject
    clashes: tuple[Clash, ...]  # strongest first, whatever the kind
    signals: Mapping[str, float]
    probabilities: Mapping[Kind, float]  # of each kind in [0, 1]; they sum to 1
    opinion: Opinion | None = None


def likely_kind(probabilities: Mapping[Kind, float]) -> Kind:
    """Return the likeliest kind, or different if no other is likely enough."""
    kind = max(probabilities, key=lambda each: probabilities[each])
    return kind if probabilities[kind] >= LIKELY else Kind.DIFFERENT


@dataclass(frozen=True, slots=True)
class Unsure:
    """The range of a conflict's probability, ends included, in which a judge is asked.

    A language model only adds conflicts, so it is never asked about those that the
    signals are sure of.
    """

    least: float = 0.3  # reached by all 20 misses of the first development half
    most: float = LIKELY - 1e-9

    def holds(self, judgement: Judgement) -> bool:
        likelier = max(
            judgement.probabilities.get(kind, 0.0)
            for kind in (Kind.DUPLICATE, Kind.CONTRADICTION)
        )
        return judgement.opinion is None and self.least <= likelier <= self.most


class Judge(Protocol):
    """A model that reads two statements together and judges how they relate."""

    @property
    def name(self) -> str:
        """The model's display name."""

    @property
    def fingerprint(self) -> str:
        """64 hex digits that identify the model and how it is asked."""

    @property
    def asked_about(self) -> Unsure:
        """The pairs that it is asked about."""

    def weigh(
        self, pairs: Sequence[tuple[Statement, Statement]]
    ) -> Sequence[Opinion | None]:
        """Return its opinion on each pair, None for an unreadable reply.

        Raises:
            UnavailableError: The model is not available now.
        """


@dataclass(frozen=True, slots=True)
class Opinions:
    """The opinions of one judge, by the digest of the pair's texts."""

    fingerprint: str = ""
    by_digest: Mapping[str, Opinion | None] = field(default_factory=dict)
    asked_about: Unsure = Unsure()


# The signals and the cross-encoder's head were each fitted on the same pairs. So the
# signals count only half, and what they consider impossible is only unlikely.
_SHARE: Final = 0.5
_UNLIKELY: Final = 0.05


def with_opinion(judgement: Judgement, opinion: Opinion) -> Judgement:
    """Combine both judgements: the product of their probabilities, normalized to 1."""
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
    """Return a judgement's reasons as JSON: the clashes, and a model's opinion."""
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
