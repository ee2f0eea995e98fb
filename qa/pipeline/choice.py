"""Choice of the entries that answer, each weighed against the others and none.

An entry that fits counts for less next to another that fits as well and says something
else: one of them is a near miss. An entry with several facts also counts by its best
sentence, and the likeliest entries are read jointly with the question, as one text.
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

MAX_SENTENCES: Final = 32  # per entry; the embedder reads them in one batch
# Number of entries, the likeliest first, that are also read sentence by sentence.
# Entries below them hardly ever overtake them, and reading takes time.
READ_CLOSELY: Final = 3
# Of these, the number that are read jointly with the question, which takes longest:
# with three instead of two, 4.5 instead of 5.6 % of what twelve help desks showed was
# wrong. Entries below `MIN_READ`, or more than `FAR_BEHIND` below the likeliest, are
# left out: they hardly ever become an answer.
READ_TOGETHER: Final = 3
MIN_READ, FAR_BEHIND = -2.5, 3.0  # log-odds
# An entry with a question of its own is read jointly only if it is among the first two:
# the networks tell such entries apart well enough.
_WITH_QUESTIONS: Final = 2
# How far below its whole passage a sentence may count when both are read jointly: on
# its own, a sentence may have lost its subject. Of 2,214 questions to organisations
# held out of training, this bound saved about 2 in 100 from refusal, with no more wrong
# answers.
MAX_LOST: Final = 5.0  # log-odds
# The most that a jointly read sentence is assumed to reach. If even that would leave an
# entry less likely than not, its sentence is not read and counts as the least it may.
# On 756 held-out questions this and `MIN_READ` changed no decision and saved a fifth of
# the readings, two fifths where nothing answers.
_MAX_FOUND: Final = 6.0  # log-odds
# Penalty for every entry that was not read jointly, if the verifier can do so.
BEHIND: Final = 1.0  # log-odds
# The most entries shown as one answer, and the share of the likeliest one's odds that a
# further entry needs.
MOST, _BESIDE = 2, 1 / 6
# Penalty for a single row of a table, whose headings fit what any row would answer: of
# 52 rows shown at nine help desks 12 were wrong, and of the 23 with less than 0.95 ten.
ROW: Final = 1.0  # log-odds
# How much other entries count against an entry. At 1, probabilities are shares of one
# choice, as if exactly one entry could answer: right where near misses are written to
# compete, too low where entries on one subject answer in parts. At 0 nothing competes.
COMPETITION: Final = 0.5
# Bonus for standing out: per unit of lead over the next entry beyond the usual lead,
# and the same penalty per unit short of it. An entry on a subject that nothing else
# covers is right more often than its odds suggest.
_STANDING_OUT, _USUAL_LEAD, _MAX_LEAD = 0.2, 2.5, 4.0  # leads in log-odds


@dataclass(frozen=True, slots=True)
class Passage:
    """An entry as a verifier reads it; every part except the text may be empty."""

    title: str
    section: str
    question: str
    text: str

    @classmethod
    def of_entry(cls, title: str, section: str, question: str, text: str) -> Self:
        """Return an entry with its own question as the pipeline has it read.

        The document's title is included only if the entry has no question: a table's
        title is mostly its file's name, and next to a question a meaningless title
        costs answers (of 268 questions to ten help desks 36 instead of 29 % were
        refused; with meaningful titles, leaving them out cost 1 of 100).
        """
        return cls("" if question else title, section, question, text)


class Verifier(Protocol):
    """A model that estimates whether an entry answers a question."""

    @property
    def fingerprint(self) -> str:
        """Identifier that differs between any two verifiers."""

    @property
    def reads_jointly(self) -> bool:
        """Whether it can read a passage jointly with the question."""

    def is_word(self, word: str) -> bool:
        """Return whether it knows a lower-case word as a whole."""

    def score(self, question: str, passages: Sequence[Passage]) -> Sequence[float]:
        """Return each passage's own probability in [0, 1] of answering."""

    def log_odds(self, question: str, passages: Sequence[Passage]) -> Sequence[float]:
        """Return for each passage its log-odds of answering versus none answering."""

    def joint_log_odds(
        self, question: str, passages: Sequence[Passage]
    ) -> Sequence[float]:
        """Return the same log-odds, each passage read jointly with the question."""


# Version of the way questions are read; thresholds are current only for the same one. A
# change that moves odds gets a new number, and knowledge bases recalibrate themselves.
READING: Final = "14"
_MAX_READ: Final = (
    3  # times a text's length, for all its parts; a table of short cells reaches two
)
_SHORT: Final = 1_000  # characters; a shorter text gets the limit of one this long
_ENDS: Final = " .!?\u2026"


def log_odds(
    question: str, passages: Sequence[Passage], verifier: Verifier
) -> list[float]:
    """Return the log-odds of each passage versus none, by which passages are ranked.

    Misspelled words are read as the similar words of the passages. Every question is
    read with a question mark, as in training: without one the verifier is
    overconfident.
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
    """Return which passages are worth reading jointly with the question.

    Args:
        apart: Log-odds of each passage versus none, read separately: (..., passages).
        is_close: Which of them were also read sentence by sentence.
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
    """Return which passages a joint reading of their best sentence could make likely.

    Args:
        apart: Log-odds of each passage versus none, read separately: (..., passages).
        whole: The same, read jointly with the question; NaN where it was not.
    """
    return np.asarray(apart + (whole + _MAX_FOUND) / 2 >= 0)


def weighed_together(
    apart: NDArray[np.float64], joint: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Combine the separate and the joint readings of passages into their log-odds.

    Args:
        apart: Separate readings: (..., passages).
        joint: Joint readings of the whole passage and of its likeliest sentence:
            (..., passages, 2), NaN where there is none. A sentence counts only where it
            may make its passage likely; elsewhere it counts as the least it may.
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


def as_read(passage: Passage) -> Passage:
    """Return a passage with its tables written out: training passages have none."""
    return replace(passage, text=written_out(passage.text))


def sentences_of(passage: Passage) -> list[Passage]:
    """Return the sentences of a passage, without its question.

    There are none if the passage has too many. A list item or a table row counts as one
    sentence. The question is left out because next to it every sentence seems to
    answer. Nothing is returned either if the parts together are much longer than the
    text, as when headings or a lead repeat in each.
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
    """Return the sentence to read jointly with the question besides the whole passage.

    None if the passage has its own question, which each of its sentences seems to
    answer.
    """
    if passage.question or not sentences:
        return None
    return sentences[max(range(len(sentences)), key=lambda at: readings[at])]


@lru_cache(maxsize=4096)
def _said(text: str) -> tuple[Terms, frozenset[str]]:
    """Return a key that is equal for texts with the same words in any order."""
    found = terms(text)
    return replace(found, words=()), frozenset(found.words)
