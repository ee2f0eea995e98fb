"""Calibrating a verifier's probabilities on knowledge that its nets never saw.

Questions are asked as in service, of the entries retrieved for them. What counts is
each question's likeliest entry: either it answers, or it would be shown wrongly.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from sklearn.metrics import roc_auc_score

from probes.verifier.card import NO_QUESTION, Calibration
from probes.verifier.fitting import fit_scale
from probes.verifier.scoring import Verifier
from qa.pipeline.choice import log_odds_of_right
from qa.pipeline.weighing import (
    READ_CLOSELY,
    Passage,
    is_worth_reading,
    less_similar,
    likeliest_sentence,
    sentences_of,
    weighed_together,
)

from .knowledge_sets import KnowledgeSet
from .verifier_candidates import retrieve

_ENTRIES: Final = 8  # per question
_READINGS: Final = 3
_NONE: Final = -1e4
_SPARE: Final = 2  # entries read jointly beyond those chosen by the logits alone
# Fixed, not fitted: near misses of an invented organisation are near on purpose, so a
# fit would treat nearness as evidence against an answer, which harms on people's own
# questions.
_NEARNESS: Final = 1.0
_LIKELY: Final = 2.5  # about the weight of each paired input and of paraphrase
# Kinds of knowledge: support desks; people's questions, all of which have an answer;
# and documents, most of whose entries have no question of their own.
_DESKS, _PEOPLE, _DOCUMENTS = range(3)
_RIDGE: Final = 1e-4  # keeps weights with little effect from diverging


@dataclass(frozen=True, eq=False)
class Asked:
    """Questions with the entries that were retrieved for them.

    Attributes:
        whole: Readings of each entry's windows: (questions, entries, windows, 3);
            padding has a logit of `_NONE`.
        parts: The same for its sentences, each on its own.
        joint: Joint readings with the question, of entries and of the likeliest
            sentence of entries without their own question: (questions, entries, 2, 3),
            with a logit of `_NONE` where not read; (questions, entries, 2, 0) without a
            cross-encoder.
        alike: Likeness by tokens: (questions, entries), -1 where there is no entry.
        right: Whether each entry answers: (questions, entries).
        kind: (questions,): the kind of knowledge; each kind has the same weight.
    """

    whole: NDArray[np.float64]
    parts: NDArray[np.float64]
    joint: NDArray[np.float64]
    alike: NDArray[np.float64]
    right: NDArray[np.bool_]
    kind: NDArray[np.intp]

    @property
    def answerable(self) -> NDArray[np.bool_]:
        return np.asarray(self.right.any(1))

    def is_right(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return for each question whether the highest-scoring entry answers."""
        best = scores.argmax(1)[:, None]
        return np.asarray(np.take_along_axis(self.right, best, 1)[:, 0])

    def log_odds(self, by: Calibration) -> NDArray[np.float64]:
        """Return the log-odds as in service: (questions, entries)."""
        less = less_similar(self.alike)
        whole, parts = (
            np.where(each[..., 0] == _NONE, _NONE, by.log_odds(each)).max(2) - less
            for each in (self.whole, self.parts)
        )
        least = -np.sort(-whole, axis=1)[:, min(READ_CLOSELY, whole.shape[1]) - 1]
        is_close = whole >= least[:, None]
        found: NDArray[np.float64] = np.where(is_close, np.maximum(whole, parts), whole)
        if self.joint.shape[3]:
            is_there = self.joint[..., 0] != _NONE
            joint = by.log_odds(self.joint, is_joint=True) - less[..., None]
            joint = np.where(is_there, joint, np.nan)
            has_question = (self.whole[..., 2] != NO_QUESTION).any(2)
            is_read = is_worth_reading(found, is_close, has_question)
            found = weighed_together(found, np.where(is_read[..., None], joint, np.nan))
        return found


def calibrate_verifier(
    verifier: Verifier,
    held_out: Sequence[KnowledgeSet],
    *,
    on_progress: Callable[[str, int, int], None],
) -> tuple[Calibration, dict[str, float]]:
    """Return the calibration fitted on these organisations, and its metrics there."""
    asked = ask(verifier, held_out, on_progress=on_progress)
    alone = asked.whole[..., 0].max(2)
    scale, offset = fit_scale(alone.max(1).tolist(), asked.is_right(alone).tolist())
    by = replace(fit_choice(asked), scale=scale, offset=offset)
    odds = asked.log_odds(by)
    chance, is_right = chosen(odds, asked.right)
    metrics = {
        "questions": float(len(chance)),
        "precision_at_1": float(is_right[asked.answerable].mean()),
        "auroc_right": float(roc_auc_score(is_right, chance)),
        "auroc_answerable": float(
            roc_auc_score(asked.answerable, logsumexp(odds, axis=1))
        ),
    }
    return by, metrics


_FITTED: Final = (
    "logit", "joint", "none", "paired_nearness", "paraphrase", "paired_none",
)  # fmt: skip


def fit_choice(asked: Asked) -> Calibration:
    """Return the weights that best choose right entries and predict their rightness.

    The loss is the sum of two cross-entropies: of the choice among the entries and
    none, and of whether the likeliest entry is right. The second alone is lowest where
    a poor choice is easy to recognise.
    """
    start = replace(Calibration(), nearness=_NEARNESS)

    def by(at: NDArray[np.float64]) -> Calibration:
        return replace(start, **dict(zip(_FITTED, map(float, at), strict=True)))

    def loss(at: NDArray[np.float64]) -> float:
        odds = asked.log_odds(by(at))
        every = logsumexp(np.pad(odds, ((0, 0), (0, 1))), axis=1)
        right = logsumexp(np.where(asked.right, odds, _NONE), axis=1)
        chance, is_right = chosen(odds, asked.right)
        likelihood = np.clip(np.where(is_right, chance, 1 - chance), 1e-4, None)
        each = every - np.where(asked.answerable, right, 0.0) - np.log(likelihood)
        means = [each[asked.kind == kind].mean() for kind in np.unique(asked.kind)]
        return float(np.mean(means) + _RIDGE * at @ at)

    # Which entries are read closely changes with the weights, so the loss has steps at
    # which a search may get stuck: search from two starting points.
    plain = np.array([getattr(start, name) for name in _FITTED])
    starts = (plain, np.where(plain == 0.0, _LIKELY, plain))
    found = [minimize(loss, first, method="L-BFGS-B") for first in starts]
    return by(min(found, key=lambda each: float(each.fun)).x)


def chosen(
    log_odds: NDArray[np.float64], right: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the probability of each question's likeliest entry, and if it is right.

    Args:
        log_odds: As `Asked.log_odds` returns them: (questions, entries).
        right: Whether each entry answers: the same shape.
    """
    rows, best = np.arange(len(log_odds)), log_odds.argmax(1)
    likeliest, others = log_odds[rows, best], log_odds.copy()
    others[rows, best] = -np.inf
    return expit(log_odds_of_right(likeliest, others)), right[rows, best]


def ask(
    verifier: Verifier,
    sets: Sequence[KnowledgeSet],
    *,
    on_progress: Callable[[str, int, int], None],
) -> Asked:
    """Ask every question of each set; entries with the answer's words count as right.

    Where every question has an answer, every second one is asked without the entries
    that answer it.
    """
    whole: list[list[NDArray[np.float64]]] = []
    parts: list[list[NDArray[np.float64]]] = []
    joint: list[NDArray[np.float64]] = []
    alike: list[NDArray[np.float64]] = []
    right: list[list[bool]] = []
    kind: list[int] = []
    for number, known in enumerate(sets):
        on_progress(f"Asking {known.name}", number, len(sets))
        passages = [entry.passage for entry in known.entries]
        found = retrieve(known, [row.text for row in known.questions])
        its_kind = _kind(known)
        for number, row in enumerate(known.questions):
            is_left_out = its_kind == _PEOPLE and number % 2
            shown = [
                at
                for at in found[number]
                if not (is_left_out and known.answers(row, at))
            ][:_ENTRIES]
            apart = verifier.measure(row.text, [passages[at] for at in shown])
            whole.append(apart)
            alike.append(verifier.likeness(row.text, [passages[at] for at in shown]))
            said = [sentences_of(passages[at]) for at in shown]
            every = verifier.measure(row.text, [each for own in said for each in own])
            ends = np.cumsum([len(own) for own in said])
            parts.append(
                [
                    np.concatenate(
                        [*every[end - len(own) : end], np.empty((0, _READINGS))]
                    )
                    for own, end in zip(said, ends, strict=True)
                ]
            )
            likeliest = [
                likeliest_sentence(passages[at], own, read[:, 0].tolist())
                for at, own, read in zip(shown, said, parts[-1], strict=True)
            ]
            joint.append(
                _read_together(
                    verifier, row.text, [passages[a] for a in shown], likeliest, apart
                )
            )
            right.append([known.answers(row, at) for at in shown])
            kind.append(its_kind)
    flags = np.zeros((len(right), max(map(len, right))), bool)
    for at, each in enumerate(right):
        flags[at, : len(each)] = each
    together = np.zeros((*flags.shape, 2, _READINGS if verifier.reads_jointly else 0))
    together[..., :1] = _NONE
    for at, readings in enumerate(joint if verifier.reads_jointly else []):
        together[at, : len(readings)] = readings
    likeness = np.full(flags.shape, -1.0)
    for at, own_alike in enumerate(alike):
        likeness[at, : len(own_alike)] = own_alike
    return Asked(
        _padded(whole), _padded(parts), together, likeness, flags, np.array(kind)
    )


def _kind(known: KnowledgeSet) -> int:
    if all(row.answered_by for row in known.questions):
        return _PEOPLE
    texts = sum(not entry.question for entry in known.entries)
    return _DOCUMENTS if 2 * texts > len(known.entries) else _DESKS


def _read_together(
    verifier: Verifier,
    question: str,
    passages: Sequence[Passage],
    likeliest: Sequence[Passage | None],
    apart: Sequence[NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Return joint readings of passages and likeliest sentences: (passages, 2, 3).

    Only for passages that may be among the likeliest, however the logits are weighted.
    """
    found = np.zeros((len(passages), 2, _READINGS))
    found[..., 0] = _NONE
    order = sorted(range(len(passages)), key=lambda at: -apart[at][:, 0].max())
    if verifier.reads_jointly and order:
        read = order[: READ_CLOSELY + _SPARE]
        found[read, 0] = verifier.measure_jointly(question, [passages[a] for a in read])
        said = {at: part for at in read if (part := likeliest[at])}
        found[[*said], 1] = verifier.measure_jointly(question, [*said.values()])
    return found


def _padded(rows: Sequence[Sequence[NDArray[np.float64]]]) -> NDArray[np.float64]:
    longest = max((len(each) for row in rows for each in row), default=0)
    found = np.zeros((len(rows), max(map(len, rows)), max(longest, 1), _READINGS))
    found[..., 0] = _NONE
    for at, row in enumerate(rows):
        for place, each in enumerate(row):
            found[at, place, : len(each)] = each
    return found
