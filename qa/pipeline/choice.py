"""Which of the entries found answers: each is weighed against the others and against none.

An entry that fits is worth less beside another that fits as well and says something else:
one of them is a near miss. An entry of several facts counts by its best sentence too, and
the likeliest are read together with the question, as one text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from kb.text.layout import is_row, parts_of, written_out
from kb.text.slips import respelt
from kb.text.terms import Terms, terms

MAX_SENTENCES: Final = 32  # of one entry, which the embedder reads at once
# Entries that are read closely, by their sentences: the likeliest. What is behind them is
# hardly ever lifted above them, and reading takes time.
READ_CLOSELY: Final = 3
# Of these, how many are read together with the question, which takes longest: with three
# and not two 4.5 instead of 5.6 % of what twelve desks showed was wrong. What seems less
# likely than `MIN_READ`, or far less likely than the likeliest, is not: it is hardly ever
# lifted to an answer.
READ_TOGETHER: Final = 3
MIN_READ, FAR_BEHIND = -2.5, 3.0  # of log-odds
# Of those with a question of their own, which the nets tell apart well, only the first two.
_WITH_QUESTIONS: Final = 2
# How far below the whole passage its likeliest sentence may drag it, read so: alone, a
# sentence may have lost what it is about. Of 2,214 questions to organisations that no fit
# of the nets saw about 2 in 100 fewer were refused with this bound, at as many wrong ones.
MAX_LOST: Final = 5.0  # of log-odds
# The most that a reading of a sentence comes to. Where even that would leave an entry less
# likely than not, its sentence is not read and counts as the least that it may. On 756
# held-out questions this and `MIN_READ` changed no decision and saved a fifth of the
# readings, two fifths where nothing answers.
_MAX_FOUND: Final = 6.0  # of log-odds
# How much less likely than it seems an entry is that others kept from being read so.
BEHIND: Final = 1.0  # of log-odds
# Entries that are shown as one answer; a further one is at least this likely, as a share
# of the likeliest.
MOST, _BESIDE = 2, 1 / 6
# How much less likely than it seems a single row of a table is. Its headings fit what any row
# would answer: of 52 shown to the questions of nine desks 12 were wrong, of 23 below 0.95 ten.
ROW: Final = 1.0  # of log-odds
# How much others count against an entry. At 1 probabilities would be shares of one choice,
# as if exactly one entry could answer: right where near misses are written to compete, and
# too little where entries of one subject answer in parts. At 0 nothing competes.
COMPETITION: Final = 0.5
# What an entry gains by standing out: for each step that it is ahead of the next one beyond
# the usual lead, and as much less for each that it lacks. An entry of a subject that nothing
# else is about is right more often than it seems.
_STANDING_OUT, _USUAL_LEAD, _MAX_LEAD = 0.2, 2.5, 4.0  # the leads are of log-odds


@dataclass(frozen=True, slots=True)
class Passage:
    """An entry as a verifier reads it; any part but the text may be empty."""

    title: str
    section: str
    question: str
    text: str

    @classmethod
    def of_entry(cls, title: str, section: str, question: str, text: str) -> Self:
        """Return an entry as it is read in use; its question is its own.

        A document's title is read only with an entry that has no question: a table's is
        mostly its file's name, and beside a question a title without meaning costs answers
        (of 268 questions to ten desks 36 instead of 29 % were refused; where titles mean
        something leaving them out cost 1 of 100).
        """
        return cls("" if question else title, section, question, text)


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
READING: Final = "13"
_MAX_READ: Final = (
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
    sentences: dict[int, Passage | None] = {}
    for at, own in parts.items():
        odds = [next(read) for _ in own]
        sentences[at] = likeliest_sentence(passages[at], own, odds)
        found[at] = max([found[at], *odds])
    rows = [ROW * is_row(each.text) for each in passages]
    if not verifier.reads_jointly:
        return [odds - less for odds, less in zip(found, rows, strict=True)]
    apart, joint = np.array(found), np.full((len(found), 2), np.nan)
    is_close = np.isin(np.arange(len(found)), likeliest)
    has_question = np.array([bool(each.question) for each in passages])
    worth = np.flatnonzero(is_worth_reading(apart, is_close, has_question)).tolist()
    joint[worth, 0] = verifier.joint_log_odds(question, [wholes[at] for at in worth])
    may_answer = may_be_likely(apart, joint[:, 0])
    with_sentence = {at: each for at in worth if (each := sentences[at])}
    joint[[*with_sentence], 1] = -np.inf
    if to_read := [at for at in with_sentence if may_answer[at]]:
        read_now = [with_sentence[at] for at in to_read]
        joint[to_read, 1] = verifier.joint_log_odds(question, read_now)
    return [float(each) for each in weighed_together(apart, joint) - rows]


def is_worth_reading(
    apart: NDArray[np.float64],
    is_close: NDArray[np.bool_],
    has_question: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Tell which passages are read together with the question.

    Args:
        apart: Log-odds of each passage against none: (..., passages).
        is_close: Which of them were read by their sentences.
        has_question: Which of them have a question of their own.
    """
    least = np.maximum(
        MIN_READ, apart.max(-1, keepdims=True, initial=-np.inf) - FAR_BEHIND
    )
    worth = np.where(is_close & (apart >= least), apart, -np.inf)
    place = (-worth).argsort(-1, kind="stable").argsort(-1)
    most = np.where(has_question, _WITH_QUESTIONS, READ_TOGETHER)
    return np.asarray(np.isfinite(worth) & (place < most))


def may_be_likely(
    apart: NDArray[np.float64], whole: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Tell of which passages the likeliest sentence may still make a likely answer.

    Args:
        apart: Log-odds of each passage against none: (..., passages).
        whole: The same of it read together with the question, NaN where it was not.
    """
    return np.asarray(apart + (whole + _MAX_FOUND) / 2 >= 0)


def weighed_together(
    apart: NDArray[np.float64], joint: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the log-odds of passages by both ways in which they were read.

    Args:
        apart: (..., passages).
        joint: Of the whole passage and of its likeliest sentence, read together with the
            question: (..., passages, 2), NaN where there is none. A sentence counts only
            where it may make its passage likely, and as the least that it may elsewhere.
    """
    whole, sentence = joint[..., 0], joint[..., 1]
    least = whole - MAX_LOST
    counted = np.where(may_be_likely(apart, whole), np.fmax(sentence, least), least)
    sentence = np.where(np.isnan(sentence), whole, counted)
    both = (whole + sentence) / 2
    found: NDArray[np.float64] = np.where(
        np.isnan(whole), apart - BEHIND, (apart + both) / 2
    )
    return found


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
    """Return the log-odds that what is shown answers, beside what is not shown.

    Args:
        own: Of what is shown, against none: (...).
        others: Of each other passage, against none: (..., passages), -inf where none is.
    """
    every = np.concatenate([others, np.zeros((*others.shape[:-1], 1))], axis=-1)
    lead = own - others.max(axis=-1, initial=-np.inf)
    gained = _STANDING_OUT * (np.clip(lead, 0.0, _MAX_LEAD) - _USUAL_LEAD)
    found: NDArray[np.float64] = own - competition * logsumexp(every, axis=-1) + gained
    return found


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
    if sum(len(part.read) for part in parts) > _MAX_READ * max(
        len(passage.text), _SHORT
    ):
        return []
    return [replace(passage, question="", text=part.read) for part in parts]


def likeliest_sentence(
    passage: Passage, sentences: Sequence[Passage], readings: Sequence[float]
) -> Passage | None:
    """Return the one that is read together with the question beside the whole passage.

    None where the passage has its own question, which every sentence of it seems to answer.
    """
    if passage.question or not sentences:
        return None
    return sentences[max(range(len(sentences)), key=lambda at: readings[at])]


@lru_cache(maxsize=4096)
def _said(text: str) -> tuple[Terms, frozenset[str]]:
    """Return what is equal of texts that say the same in the same words, in any order."""
    found = terms(text)
    return replace(found, words=()), frozenset(found.words)
