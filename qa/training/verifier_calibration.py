"""A verifier's probabilities, fitted on knowledge that its nets never saw.

The questions are asked as in use, of the entries that are retrieved for them. What counts
is the likeliest entry of each: it answers, or it would be shown wrongly.
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
from qa.pipeline.choice import (
    READ_CLOSELY,
    Passage,
    is_worth_reading,
    likeliest_sentence,
    log_odds_of_right,
    sentences_of,
    weighed_together,
)

from .knowledge_sets import KnowledgeSet
from .verifier_candidates import retrieve

_ENTRIES: Final = 8  # beside a question
_READINGS: Final = 3
_NONE: Final = -1e4
_SPARE: Final = 2  # read together beside those that are as the logits alone say
# Not fitted: near misses of an invented organisation are near on purpose, so that a free
# fit counts nearness against a fact, which harms where questions are people's own.
_NEARNESS: Final = 1.0
_LIKELY: Final = 2.5  # about what nearness and paraphrase count, and none with them
# Kinds of knowledge: support desks, questions of people that all have an answer, and
# documents, most of whose entries have no question of their own.
_DESKS, _PEOPLE, _DOCUMENTS = range(3)
_RIDGE: Final = 1e-4  # keeps weights that hardly matter from running away


@dataclass(frozen=True, eq=False)
class Asked:
    """Questions with the entries that were retrieved for them.

    Attributes:
        whole: Readings of each entry's windows: (questions, entries, windows, 3); what
            pads has a logit of `_NONE`.
        parts: The same of its sentences, each by itself.
        joint: Of entries read together with the question, and of the likeliest sentence of
            those without their own: (questions, entries, 2, 3), with a logit of `_NONE` of
            what is not read so; (questions, entries, 2, 0) without a cross-encoder.
        right: Whether it answers: (questions, entries).
        kind: (questions,): the same number for questions that count together; each kind
            counts as much as another.
    """

    whole: NDArray[np.float64]
    parts: NDArray[np.float64]
    joint: NDArray[np.float64]
    right: NDArray[np.bool_]
    kind: NDArray[np.intp]

    @property
    def answerable(self) -> NDArray[np.bool_]:
        return np.asarray(self.right.any(1))

    def is_right(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell of each question whether the entry with the highest score answers."""
        best = scores.argmax(1)[:, None]
        return np.asarray(np.take_along_axis(self.right, best, 1)[:, 0])

    def log_odds(self, by: Calibration) -> NDArray[np.float64]:
        """Return them as in use: (questions, entries)."""
        whole, parts = (
            np.where(each[..., 0] == _NONE, _NONE, by.log_odds(each)).max(2)
            for each in (self.whole, self.parts)
        )
        least = -np.sort(-whole, axis=1)[:, min(READ_CLOSELY, whole.shape[1]) - 1]
        is_close = whole >= least[:, None]
        found: NDArray[np.float64] = np.where(is_close, np.maximum(whole, parts), whole)
        if self.joint.shape[3]:
            is_there = self.joint[..., 0] != _NONE
            joint = np.where(is_there, by.log_odds(self.joint, is_joint=True), np.nan)
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
    """Return what was fitted on these organisations, and how good it is there."""
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
    """Return the weights that best choose right entries and tell how likely they are right.

    The loss is the cross-entropy of the choice among the entries and none, and that of
    whether the likeliest entry is right: the second alone is least where a poor choice is
    easy to see through.
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

    # Which entries are read closely changes with the weights, so that the loss has steps
    # on which a search may end: it begins from two places.
    plain = np.array([getattr(start, name) for name in _FITTED])
    starts = (plain, np.where(plain == 0.0, _LIKELY, plain))
    found = [minimize(loss, first, method="L-BFGS-B") for first in starts]
    return by(min(found, key=lambda each: float(each.fun)).x)


def chosen(
    log_odds: NDArray[np.float64], right: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the probability of each question's likeliest entry, and whether it is right.

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
    """Ask every question of each set; what holds the words of the answer answers too.

    Where every question has an answer, every second is asked without what answers it.
    """
    whole: list[list[NDArray[np.float64]]] = []
    parts: list[list[NDArray[np.float64]]] = []
    joint: list[NDArray[np.float64]] = []
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
    return Asked(_padded(whole), _padded(parts), together, flags, np.array(kind))


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
    """Return readings of passages and sentences with the question: (passages, 2, 3).

    Of those alone that are among the likeliest whichever way the logits are weighed.
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
