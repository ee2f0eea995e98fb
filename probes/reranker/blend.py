"""A reranker of three weights: for the verifier's two scores and the retrieval order.

A cross-encoder with a new output learns its task from the preferences alone, and a few
hundred of them made it worse than the retrieval order. This one starts from that order
and from the verifier, which was fitted on what answers a question: without preferences
it changes nothing.

References:
    CBDR, section 3.3, for the preferences; McFadden, "Conditional logit analysis of
    qualitative choice behavior" (1973), for the fit.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from scipy.optimize import minimize
from scipy.special import logsumexp

from probes import cards
from probes.exceptions import TooFewLabelsError

MIN_QUESTIONS: Final = 20
_STRENGTH: Final = 0.01  # of the pull towards the retrieval order, per question
# The retrieval order alone: the first note is twice as likely as the second.
_PRIOR: Final = (0.0, 0.0, 1.0)
Rows = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Blend:
    """Weights of the verifier's logit, its cosine, and minus the log of the rank."""

    logit: float
    nearness: float
    order: float

    def scores(self, measured: Rows) -> Rows:
        """Return a score per note; `measured` is (notes, 2), in retrieval order."""
        weights = np.array([self.logit, self.nearness, self.order])
        scores: Rows = features(measured) @ weights
        return scores


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A question's notes in retrieval order: measured (notes, 2), and which help."""

    measured: Rows
    helps: NDArray[np.bool_]
    group: str


_WEIGHTS: Final = TypeAdapter(Blend)


def features(measured: Rows) -> Rows:
    places = -np.log(np.arange(1, len(measured) + 1))
    return np.column_stack([measured, places])


def fit_blend(questions: Sequence[Ranked]) -> Blend:
    """Fit on questions with both helpful and unhelpful notes; the fit is convex."""
    rows = [one for one in questions if one.helps.any() and not one.helps.all()]
    if len(rows) < MIN_QUESTIONS:
        raise TooFewLabelsError(
            f"{len(rows)} questions have both helpful and unhelpful notes, but "
            f"at least {MIN_QUESTIONS} are needed. Mark evidence in more reviews, or "
            "give more labelled questions."
        )
    read = [(features(one.measured), one.helps) for one in rows]
    prior = np.array(_PRIOR)

    def loss(weights: Rows) -> float:
        apart = weights - prior
        missed = sum(
            float(logsumexp(seen @ weights) - logsumexp((seen @ weights)[helps]))
            for seen, helps in read
        )
        return missed / len(read) + _STRENGTH * float(apart @ apart)

    found = minimize(loss, prior, method="L-BFGS-B")
    return Blend(*map(float, found.x))


def recall_at(blend: Blend | None, questions: Sequence[Ranked], k: int) -> Rows:
    """Return, for each question with a helpful note, whether one is among the first k.

    A `blend` of None leaves the retrieval order.
    """
    found = []
    for one in questions:
        if one.helps.any():
            order = np.arange(len(one.helps))
            if blend is not None:
                order = np.argsort(-blend.scores(one.measured), kind="stable")
            found.append(float(one.helps[order[:k]].any()))
    return np.array(found)


def blend_files(blend: Blend, card: cards.ProbeCard) -> cards.ProbeFiles:
    weights = cards.json_bytes(asdict(blend))
    filled = replace(card, kind=cards.ProbeKind.RERANKER)
    return cards.ProbeFiles("reranker", cards.card_bytes(filled, weights), weights)


def blend_from(files: cards.ProbeFiles, *, language_model: str) -> Blend:
    card = files.checked(language_model=language_model)
    if card.kind is not cards.ProbeKind.RERANKER:
        raise files.damaged(f"a {card.kind.value} probe orders no notes")
    return files.read_weights(_WEIGHTS)
