"""Which of the entries found answers: each is weighed against the others and against none.

An entry that fits is worth less beside another that fits as well and says something else:
one of them is a near miss. An entry of several facts counts by its best sentence too, and
the likeliest are read together with the question, as one text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Protocol

from scipy.special import expit, logsumexp

from kb.text.layout import parts_of, written_out
from kb.text.slips import respelt
from kb.text.terms import Terms, terms

MAX_SENTENCES: Final = 32  # of one entry, which the embedder reads at once
# Entries that are read closely, by their sentences: the likeliest. What is behind them is
# hardly ever lifted above them, and reading takes time.
READ_CLOSELY: Final = 3
# Of these, how many are read together with the question, which takes longest. What seems
# less likely than `LEAST_READ`, or far less likely than the likeliest, is not: it is hardly
# ever lifted to an answer.
READ_TOGETHER: Final = 2
LEAST_READ, FAR_BEHIND = -1.5, 3.0  # of log-odds
# How much less likely than it seems an entry is that others kept from being read so.
BEHIND: Final = 1.0  # of log-odds
# Entries that are shown as one answer; a further one is at least this likely, as a share
# of the likeliest.
MOST, _BESIDE = 2, 1 / 6
# How much others count against an entry. At 1 probabilities would be shares of one choice,
# as if exactly one entry could answer: right where near misses are written to compete, and
# too little where entries of one subject answer in parts. At 0 nothing competes.
COMPETITION: Final = 0.5


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

    @property
    def reads_jointly(self) -> bool:
        """Whether it can read a passage together with the question."""

    def is_word(self, word: str) -> bool:
        """Tell whether it knows this word, in small letters, as a whole."""

    def score(self, question: str, passages: Sequence[Passage]) -> Sequence[float]:
        """Return for each passage the probability in [0, 1] that it answers, alone."""

    def log_odds(self, question: str, passages: Sequence[Passage]) -> Sequence[float]:
        """Return for each passage the log-odds that it answers against that none does."""

    def joint_log_odds(
        self, question: str, passages: Sequence[Passage]
    ) -> Sequence[float]:
        """Return the same of each passage read together with the question."""


# How a question is read, by which thresholds are held to be current. A change that moves
# odds gets a new number, and knowledge bases calibrate themselves again.
READING: Final = "5"
_MOST_READ: Final = (
    3  # times a text, by its parts; a table of short cells is twice as long
)
_SHORT: Final = 1_000  # characters of a text whose parts may be as long as those of one
_ENDS: Final = " .!?\u2026"


def log_odds(
    question: str, passages: Sequence[Passage], verifier: Verifier
) -> list[float]:
    """Return the log-odds of each passage against none; by them they are ordered.

    Slips of the pen are read as the words of the passages that they are near, and every
    question with its mark: it was fitted on those, and is too sure of what has none.
    """
    texts = (
        f"{each.title} {each.section} {each.question} {each.text}" for each in passages
    )
    question = respelt(question, texts, is_word=verifier.is_word)
    question = f"{question.rstrip(_ENDS)}?"
    wholes = [as_read(each) for each in passages]
    found = list(verifier.log_odds(question, wholes))
    likeliest = sorted(range(len(found)), key=lambda at: -found[at])[:READ_CLOSELY]
    parts = {at: sentences_of(passages[at]) for at in likeliest}
    read = iter(verifier.log_odds(question, [p for ps in parts.values() for p in ps]))
    for at, own in parts.items():
        found[at] = max([found[at], *(next(read) for _ in own)])
    if not verifier.reads_jointly:
        return found
    least = max(LEAST_READ, max(found, default=0.0) - FAR_BEHIND)
    closest = sorted(likeliest, key=lambda at: -found[at])[:READ_TOGETHER]
    worth = [at for at in closest if found[at] >= least]
    together = verifier.joint_log_odds(question, [wholes[at] for at in worth])
    jointly = dict(zip(worth, together, strict=True))
    return [
        (each + jointly[at]) / 2 if at in jointly else each - BEHIND
        for at, each in enumerate(found)
    ]


def choose(
    found: Sequence[float],
    texts: Sequence[str],
    able: Sequence[int],
    *,
    most: int = MOST,
) -> tuple[list[int], float]:
    """Return which passages are the answer, the likeliest first, and how likely it is right.

    A further one is nearly as likely as that and says something else. Where more are than
    may be shown, one of them is meant and which is not known: they count in full against
    each other.

    Args:
        found: Log-odds of each passage against none.
        able: Places of those that may be shown, at least one.
    """
    near = nearly_as_likely(found, texts, able)
    competition = COMPETITION if len(near) <= most else 1.0
    shown = near[:most]
    return shown, chance_of(found, texts, shown, competition=competition)


def nearly_as_likely(
    found: Sequence[float], texts: Sequence[str], able: Sequence[int]
) -> list[int]:
    """Return the likeliest passage, and behind it those that may be meant as well.

    They are nearly as likely as that and say something else. For the arguments see
    `choose`.
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

    Those that say the same in the same words count with them, the others against them.
    """
    together = {_said(texts[at]) for at in shown}
    ours = [_said(text) in together for text in texts]
    own = [odds for odds, is_ours in zip(found, ours, strict=True) if is_ours]
    others = [odds for odds, is_ours in zip(found, ours, strict=True) if not is_ours]
    return float(expit(logsumexp(own) - competition * logsumexp([*others, 0.0])))


def chance_of_any(found: Sequence[float]) -> float:
    """Return the probability in [0, 1] that any passage answers."""
    return float(expit(logsumexp(found)))


def as_read(passage: Passage) -> Passage:
    """Return a passage with its tables written out, as those it was fitted on have none."""
    return replace(passage, text=written_out(passage.text))


def sentences_of(passage: Passage) -> list[Passage]:
    """Return each sentence of a passage, without its question; none of a long one.

    An item of a list and a row of a table count as one. Beside its question every sentence
    seems to answer. Nor any where they are much longer together than the text, whose
    headings or lead are then read again and again.
    """
    parts = parts_of(passage.text)
    if len(parts) > MAX_SENTENCES or (len(parts) == 1 and not passage.question):
        return []
    if sum(len(part.read) for part in parts) > _MOST_READ * max(
        len(passage.text), _SHORT
    ):
        return []
    return [replace(passage, question="", text=part.read) for part in parts]


@lru_cache(maxsize=4096)
def _said(text: str) -> tuple[Terms, frozenset[str]]:
    """Return what is equal of texts that say the same in the same words, in any order."""
    found = terms(text)
    return replace(found, words=()), frozenset(found.words)
