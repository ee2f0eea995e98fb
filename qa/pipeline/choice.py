"""Which of the entries found answers: each is weighed against the others and against none.

An entry that fits is worth less beside another that fits as well and says something else:
one of them is a near miss. An entry of several facts counts by its best sentence too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Protocol

from scipy.special import softmax

from kb.text.terms import Terms, terms
from kb.text.words import sentences

MAX_SENTENCES: Final = 32  # of one entry, which the embedder reads at once
# Entries that are read by their sentences too: the likeliest. What is behind them is not
# lifted above them by one sentence in a hundred questions, and reading takes time.
READ_CLOSELY: Final = 3
# Entries that are shown as one answer; a further one is at least this likely, as a share
# of the likeliest.
MOST, _BESIDE = 2, 1 / 6


@dataclass(frozen=True, slots=True)
class Passage:
    """An entry as a verifier reads it; any part but the text may be empty."""

    title: str
    section: str
    question: str
    text: str


class Verifier(Protocol):
    """Tells whether an entry answers a question."""

    @property
    def fingerprint(self) -> str:
        """What tells two verifiers apart."""

    def score(self, question: str, passages: Sequence[Passage]) -> Sequence[float]:
        """Return for each passage the probability in [0, 1] that it answers, alone."""

    def log_odds(self, question: str, passages: Sequence[Passage]) -> Sequence[float]:
        """Return for each passage the log-odds that it answers against that none does."""


def log_odds(
    question: str, passages: Sequence[Passage], verifier: Verifier
) -> list[float]:
    """Return the log-odds of each passage against none; by them they are ordered."""
    found = list(verifier.log_odds(question, passages))
    likeliest = sorted(range(len(found)), key=lambda at: -found[at])[:READ_CLOSELY]
    parts = {at: sentences_of(passages[at]) for at in likeliest}
    read = iter(verifier.log_odds(question, [p for ps in parts.values() for p in ps]))
    for at, own in parts.items():
        found[at] = max([found[at], *(next(read) for _ in own)])
    return found


def shares_of(found: Sequence[float], passages: Sequence[Passage]) -> list[float]:
    """Return the probability of each passage that it answers, and not another or none.

    Passages that say the same in the same words count together.
    """
    shares = softmax([*found, 0.0])[:-1]
    said = [_said(passage.text) for passage in passages]
    return [float(shares[[other == own for other in said]].sum()) for own in said]


def side_by_side(
    shares: Sequence[float], texts: Sequence[str], *, most: int = MOST
) -> list[int]:
    """Return which of at least one passage are one answer, the likeliest first.

    A further one is nearly as likely as that and says something else.
    """
    first, *others = sorted(range(len(shares)), key=lambda at: -shares[at])
    beside = [
        at
        for at in others
        if shares[at] >= _BESIDE * shares[first]
        and _said(texts[at]) != _said(texts[first])
    ]
    return [first, *beside][:most]


def share_of_any(found: Sequence[float]) -> float:
    """Return the probability that any passage answers."""
    return 1 - float(softmax([*found, 0.0])[-1])


def sentences_of(passage: Passage) -> list[Passage]:
    """Return each sentence of a passage, without its question; none of a long one.

    Beside its question every sentence seems to answer.
    """
    said = sentences(passage.text)
    if len(said) > MAX_SENTENCES or (len(said) == 1 and not passage.question):
        return []
    return [replace(passage, question="", text=text) for text in said]


@lru_cache(maxsize=4096)
def _said(text: str) -> tuple[Terms, frozenset[str]]:
    """Return what is equal of texts that say the same in the same words, in any order."""
    found = terms(text)
    return replace(found, words=()), frozenset(found.words)
