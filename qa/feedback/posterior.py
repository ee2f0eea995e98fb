"""How far thumbs move the confidence of what a language model proposed: bounded, trimmed.

A Beta posterior whose prior is the confidence that the entry had without votes. Three
things keep it from being steered:

- a rater counts once for an entry, however often and on however many answers he votes;
- the raters who push hardest are left out, on either side as many (a trimmed mean's way):
  so many alone, whatever they do, move nothing, and against all the others they undo
  nothing;
- what is left moves it by `span` at most, within `floor` and `ceiling`.

Votes fade: half of one is left after `half_life`.

References:
    Jøsang and Ismail, "The Beta reputation system", Bled eCommerce Conference 2002:
    the posterior and its forgetting factor.
    Yin et al., "Byzantine-robust distributed learning: towards optimal statistical
    rates", ICML 2018: what trimming either end promises against a coalition.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final


@dataclass(frozen=True, slots=True)
class Rating:
    """One thumb on an answer that rests on the entry."""

    rater: int
    is_up: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Rule:
    """How votes are weighed.

    Attributes:
        strength: So many votes the prior is worth; above 0.
        trimmed: So many raters are left out on either side: the largest ring that can
            do nothing.
        half_life: After so long a vote counts half.
        span: The most that votes move a confidence, in (0, 1).
        floor: What they never bring it below, in (0, 1); one that was there stays.
        ceiling: What they never bring it above, in (0, 1).
    """

    strength: float = 10.0
    trimmed: int = 5
    half_life: timedelta = timedelta(days=90)
    span: float = 0.2
    floor: float = 0.05
    ceiling: float = 0.95


RULE: Final = Rule()


@dataclass(frozen=True, slots=True)
class Weighed:
    """What votes come to.

    Attributes:
        confidence: In (0, 1).
        up: Weight of the raters for it that counted, after trimming and fading.
        down: Weight of those against it.
        raters: How many voted at all.
    """

    confidence: float
    up: float
    down: float
    raters: int


def weigh(
    prior: float, ratings: Iterable[Rating], *, at: datetime, rule: Rule = RULE
) -> Weighed:
    """Return the confidence that votes give an entry.

    Args:
        prior: Its confidence without votes, in (0, 1).
        ratings: In any order.
        at: Now; a vote of later counts whole.
        rule: How they are weighed.

    Raises:
        ValueError: `prior` is not in (0, 1).
    """
    if not 0 < prior < 1:
        msg = f"The prior {prior} is not in (0, 1)."
        raise ValueError(msg)
    weights = _weight_by_rater(ratings, at, rule)
    up = _trimmed([weight for weight in weights if weight > 0], rule.trimmed)
    down = _trimmed([-weight for weight in weights if weight < 0], rule.trimmed)
    # The posterior's mean, as a step from the prior: without votes it is exactly that.
    step = (up * (1 - prior) - down * prior) / (rule.strength + up + down)
    return Weighed(_bounded(prior + step, prior, rule), up, down, len(weights))


def _weight_by_rater(
    ratings: Iterable[Rating], at: datetime, rule: Rule
) -> list[float]:
    """Return what each rater says on the whole, in [-1, 1]: his fading votes, capped."""
    sums: dict[int, float] = {}
    # In an order of their own: sums of fractions depend on it.
    for rating in sorted(ratings, key=lambda r: (r.rater, r.at, r.is_up)):
        age = max(at - rating.at, timedelta())
        fading = 0.5 ** (age / rule.half_life)
        said = fading if rating.is_up else -fading
        sums[rating.rater] = sums.get(rating.rater, 0.0) + said
    return [min(1.0, max(-1.0, total)) for total in sums.values()]


def _trimmed(weights: list[float], count: int) -> float:
    """Return the sum without the `count` largest."""
    return sum(sorted(weights, reverse=True)[count:])


def _bounded(mean: float, prior: float, rule: Rule) -> float:
    low = min(prior, max(rule.floor, prior - rule.span))
    high = max(prior, min(rule.ceiling, prior + rule.span))
    return min(high, max(low, mean))
