"""A verifier's probabilities, fitted on organisations that its nets never saw.

The questions are asked as in use, of the entries that are retrieved for them. What counts
is the likeliest entry of each: it answers, or it would be shown wrongly.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from sklearn.metrics import roc_auc_score

from probes.verifier.fitting import fit_scale
from probes.verifier.scoring import Calibration, Verifier
from qa.pipeline.choice import BEHIND, COMPETITION, READ_CLOSELY, sentences_of

from .verifier_candidates import retrieve
from .verifier_sources import KnowledgeSet

_ENTRIES: Final = 8  # beside a question
_NONE: Final = -1e4
# Not fitted: near misses of an invented organisation are near on purpose, so that a free
# fit counts nearness against an entry, which harms where people rephrase what is stored.
_NEARNESS: Final = 1.0


@dataclass(frozen=True, eq=False)
class Asked:
    """Questions with the entries that were retrieved for them.

    Attributes:
        whole: Logit and nearness of each entry's windows: (questions, entries, windows, 2);
            what pads has a logit of `_NONE`.
        parts: The same of its sentences, each by itself.
        joint: Logit of each entry read together with the question, and its nearness:
            (questions, entries, 2); (questions, entries, 0) without a cross-encoder.
        right: Whether it answers: (questions, entries).
    """

    whole: NDArray[np.float64]
    parts: NDArray[np.float64]
    joint: NDArray[np.float64]
    right: NDArray[np.bool_]

    @property
    def answerable(self) -> NDArray[np.bool_]:
        return np.asarray(self.right.any(1))

    def is_right(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell of each question whether the entry with the highest score answers."""
        best = scores.argmax(1)[:, None]
        return np.asarray(np.take_along_axis(self.right, best, 1)[:, 0])

    def log_odds(self, by: Sequence[float]) -> NDArray[np.float64]:
        """Return them as in use, (questions, entries), by logit, nearness and none."""
        whole, parts = (
            (each @ np.array(by[:2])).max(2) - by[2]
            for each in (self.whole, self.parts)
        )
        least = -np.sort(-whole, axis=1)[:, min(READ_CLOSELY, whole.shape[1]) - 1]
        is_close = whole >= least[:, None]
        found: NDArray[np.float64] = np.where(is_close, np.maximum(whole, parts), whole)
        if self.joint.shape[2]:
            jointly = self.joint @ np.array(by[:2]) - by[2]
            found = np.where(is_close, (found + jointly) / 2, found - BEHIND)
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
    by = fit_choice(asked)
    chance, is_right = chosen(asked, by)
    odds = logsumexp(asked.log_odds(by), axis=1)
    metrics = {
        "questions": float(len(chance)),
        "precision_at_1": float(is_right[asked.answerable].mean()),
        "auroc_right": float(roc_auc_score(is_right, chance)),
        "auroc_answerable": float(roc_auc_score(asked.answerable, odds)),
    }
    return Calibration(scale, offset, *by), metrics


def fit_choice(asked: Asked) -> tuple[float, float, float]:
    """Return logit, nearness and none that best separate right entries from wrong ones.

    Of a question the likelihood is that its likeliest entry is right, or is not.
    """

    def loss(at: NDArray[np.float64]) -> float:
        chance, is_right = chosen(asked, (at[0], _NEARNESS, at[1]))
        likelihood = np.where(is_right, chance, 1 - chance)
        return float(-np.log(np.clip(likelihood, 1e-6, None)).mean())

    logit, none = minimize(loss, (1.0, 0.0), method="Nelder-Mead").x
    return float(logit), _NEARNESS, float(none)


def chosen(
    asked: Asked, by: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the probability of each question's likeliest entry, and whether it is right."""
    odds = np.pad(asked.log_odds(by), ((0, 0), (0, 1)))  # the last is none's
    best = odds[:, :-1].argmax(1)
    rows = np.arange(len(odds))
    likeliest = odds[rows, best].copy()
    odds[rows, best] = -np.inf
    chance = expit(likeliest - COMPETITION * logsumexp(odds, axis=1))
    return chance, asked.right[rows, best]


def ask(
    verifier: Verifier,
    sets: Sequence[KnowledgeSet],
    *,
    on_progress: Callable[[str, int, int], None],
) -> Asked:
    """Ask every question of each set; what holds the words of the answer answers too."""
    whole: list[list[NDArray[np.float64]]] = []
    parts: list[list[NDArray[np.float64]]] = []
    joint: list[list[tuple[float, float]]] = []
    right: list[list[bool]] = []
    for number, known in enumerate(sets):
        on_progress(f"Asking {known.name}", number, len(sets))
        passages = [entry.passage for entry in known.entries]
        found = retrieve(known, [row.text for row in known.questions])
        for row, places in zip(known.questions, found, strict=True):
            shown = places[:_ENTRIES]
            whole.append(verifier.measure(row.text, [passages[at] for at in shown]))
            joint.append(
                verifier.measure_jointly(row.text, [passages[at] for at in shown])
            )
            said = [sentences_of(passages[at]) for at in shown]
            every = verifier.measure(row.text, [each for own in said for each in own])
            ends = np.cumsum([len(own) for own in said])
            parts.append(
                [
                    np.concatenate([*every[end - len(own) : end], np.empty((0, 2))])
                    for own, end in zip(said, ends, strict=True)
                ]
            )
            right.append([known.answers(row, at) for at in shown])
    flags = np.zeros((len(right), max(map(len, right))), bool)
    for at, each in enumerate(right):
        flags[at, : len(each)] = each
    together = np.zeros((*flags.shape, 2 if any(joint) else 0))
    together[..., :1] = _NONE
    for at, pairs in enumerate(joint):
        if pairs:
            together[at, : len(pairs)] = pairs
    return Asked(_padded(whole), _padded(parts), together, flags)


def _padded(rows: Sequence[Sequence[NDArray[np.float64]]]) -> NDArray[np.float64]:
    longest = max((len(each) for row in rows for each in row), default=0)
    found = np.zeros((len(rows), max(map(len, rows)), max(longest, 1), 2))
    found[..., 0] = _NONE
    for at, row in enumerate(rows):
        for place, each in enumerate(row):
            found[at, place, : len(each)] = each
    return found
