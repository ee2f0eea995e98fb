"""Choice of the entries that answer, each weighed against the others and none.

An entry that fits counts for less next to another that fits as well and says something
else: one of them is a near miss.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from kb.text.terms import Terms, terms

# The most entries shown as one answer, and the share of the likeliest one's odds that a
# further entry needs.
MOST, _BESIDE = 2, 1 / 6
# How much other entries count against an entry. At 1, probabilities are shares of one
# choice, as if exactly one entry could answer: right where near misses are written to
# compete, too low where entries on one subject answer in parts. At 0 nothing competes.
COMPETITION: Final = 0.5
# Bonus for standing out: per unit of lead over the next entry beyond the usual lead,
# and the same penalty per unit short of it. An entry on a subject that nothing else
# covers is right more often than its odds suggest.
_STANDING_OUT, _USUAL_LEAD, _MAX_LEAD = 0.2, 2.5, 4.0  # leads in log-odds


def choose(
    found: Sequence[float],
    texts: Sequence[str],
    able: Sequence[int],
    *,
    most: int = MOST,
) -> tuple[list[int], float]:
    """Choose the passages to show and return the probability that they answer.

    A further passage is shown if it is nearly as likely as the first and says something
    else. If more qualify than may be shown, only one of them is meant and it is unknown
    which: they then compete in full.

    Args:
        found: Log-odds of each passage versus none.
        able: Indices of the passages that may be shown, at least one.

    Returns:
        The indices of the passages to show, the likeliest first, and the probability.
    """
    near = nearly_as_likely(found, texts, able)
    competition = COMPETITION if len(near) <= most else 1.0
    shown = near[:most]
    return shown, chance_of(found, texts, shown, competition=competition)


def nearly_as_likely(
    found: Sequence[float], texts: Sequence[str], able: Sequence[int]
) -> list[int]:
    """Return the likeliest passage, followed by those that may be meant as well.

    These are nearly as likely and say something else. For the arguments see `choose`.
    """
    first, *others = sorted(able, key=lambda at: -found[at])
    return [first] + [
        at
        for at in others
        if found[at] >= found[first] + math.log(_BESIDE)
        and _said(texts[at]) != _said(texts[first])
    ]


def chance_of(
    found: Sequence[float],
    texts: Sequence[str],
    shown: Sequence[int],
    *,
    competition: float = COMPETITION,
) -> float:
    """Return the probability in [0, 1] that one of the passages shown answers.

    Passages that say the same in the same words count with them, all others against.
    """
    together = {_said(texts[at]) for at in shown}
    ours = [_said(text) in together for text in texts]
    own = [odds for odds, is_ours in zip(found, ours, strict=True) if is_ours]
    others = [odds for odds, is_ours in zip(found, ours, strict=True) if not is_ours]
    is_right = log_odds_of_right(
        float(logsumexp(own)), np.array(others), competition=competition
    )
    return float(expit(is_right))


def log_odds_of_right(
    own: NDArray[np.float64] | float,
    others: NDArray[np.float64],
    *,
    competition: float = COMPETITION,
) -> NDArray[np.float64]:
    """Return the log-odds that what is shown answers, given what is not shown.

    Args:
        own: Log-odds of what is shown, versus none: (...).
        others: Log-odds of each other passage, versus none: (..., passages), -inf where
            there is none.
    """
    every = np.concatenate([others, np.zeros((*others.shape[:-1], 1))], axis=-1)
    lead = own - others.max(axis=-1, initial=-np.inf)
    gained = _STANDING_OUT * (np.clip(lead, 0.0, _MAX_LEAD) - _USUAL_LEAD)
    found: NDArray[np.float64] = own - competition * logsumexp(every, axis=-1) + gained
    return found


def chance_of_any(found: Sequence[float]) -> float:
    """Return the probability in [0, 1] that any of the passages answers."""
    return float(expit(logsumexp(found)))


@lru_cache(maxsize=4096)
def _said(text: str) -> tuple[Terms, frozenset[str]]:
    """Return a key that is equal for texts with the same words in any order."""
    found = terms(text)
    return replace(found, words=()), frozenset(found.words)
