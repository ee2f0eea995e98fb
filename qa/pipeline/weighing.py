"""Log-odds that an entry answers a question, as the verifier reads both.

An entry with several facts also counts by its best sentence, and the likeliest entries
are read jointly with the question, as one text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from kb.text.layout import is_row, parts_of, written_out
from kb.text.slips import respelt

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
# Penalty for a single row of a table, whose headings fit what any row would answer: of
# 52 rows shown at nine help desks 12 were wrong, and of the 23 with less than 0.95 ten.
ROW: Final = 1.0  # log-odds
# Penalty for each unit of likeness by tokens that an entry has less than the most similar
# one. It says which of the entries answers rather than whether any does: at twenty-five
# help desks what would be shown is right for 90 instead of 89 of 100 questions, and 26
# instead of 28 are refused where 5 % is wrong.
_LESS_SIMILAR: Final = 12.0  # log-odds


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

    def likeness(
        self, question: str, passages: Sequence[Passage]
    ) -> NDArray[np.float64]:
        """Return each passage's likeness to the question by tokens, in [-1, 1]."""

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
READING: Final = "17"
_MAX_READ: Final = (
    3  # times a text's length, for all its parts; a table of short cells reaches two
)
_SHORT: Final = 1_000  # characters; a shorter text gets the limit of one this long
_ENDS: Final = " .!?\u2026"


def as_asked(question: str, passages: Sequence[Passage], verifier: Verifier) -> str:
    """Return the question as the verifier reads it.

    Misspelled words are read as the similar words of the passages. Every question is
    read with a question mark, as in training: without one the verifier is
    overconfident.
    """
    texts = (
        f"{each.title} {each.section} {each.question} {each.text}" for each in passages
    )
    question = respelt(question, texts, is_word=verifier.is_word)
    return f"{question.rstrip(_ENDS)}?"


def likeness(
    asked: str, passages: Sequence[Passage], verifier: Verifier
) -> NDArray[np.float64]:
    """Return each passage's likeness by tokens to a question from `as_asked`."""
    return verifier.likeness(asked, [as_read(each) for each in passages])


def log_odds(
    question: str, passages: Sequence[Passage], verifier: Verifier
) -> list[float]:
    """Return the log-odds of each passage versus none, by which passages are ranked."""
    asked = as_asked(question, passages, verifier)
    return odds_of(asked, passages, verifier, likeness(asked, passages, verifier))


def odds_of(
    question: str,
    passages: Sequence[Passage],
    verifier: Verifier,
    alike: NDArray[np.float64],
) -> list[float]:
    """Do what `log_odds` does, for a question from `as_asked`.

    Args:
        alike: What `likeness` returned for these passages.
    """
    wholes = [as_read(each) for each in passages]
    less = less_similar(alike)
    found = (np.array(verifier.log_odds(question, wholes)) - less).tolist()
    likeliest = sorted(range(len(found)), key=lambda at: -found[at])[:READ_CLOSELY]
    parts = {at: sentences_of(passages[at]) for at in likeliest}
    read = iter(verifier.log_odds(question, [p for ps in parts.values() for p in ps]))
    sentences: dict[int, Passage | None] = {}
    for at, own in parts.items():
        odds = [next(read) - less[at] for _ in own]
        sentences[at] = likeliest_sentence(passages[at], own, odds)
        found[at] = max([found[at], *odds])
    rows = [ROW * is_row(each.text) for each in passages]
    if not verifier.reads_jointly:
        return [odds - row for odds, row in zip(found, rows, strict=True)]
    apart, joint = np.array(found), np.full((len(found), 2), np.nan)
    is_close = np.isin(np.arange(len(found)), likeliest)
    has_question = np.array([bool(each.question) for each in passages])
    worth = np.flatnonzero(is_worth_reading(apart, is_close, has_question)).tolist()
    read_now = [wholes[at] for at in worth]
    joint[worth, 0] = verifier.joint_log_odds(question, read_now) - less[worth]
    may_answer = may_be_likely(apart, joint[:, 0])
    with_sentence = {at: each for at in worth if (each := sentences[at])}
    joint[[*with_sentence], 1] = -np.inf
    if to_read := [at for at in with_sentence if may_answer[at]]:
        read_now = [with_sentence[at] for at in to_read]
        joint[to_read, 1] = verifier.joint_log_odds(question, read_now) - less[to_read]
    return [float(each) for each in weighed_together(apart, joint) - rows]


def less_similar(alike: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the penalty of each passage, in log-odds, for less likeness than the most.

    Args:
        alike: Likeness by tokens: (..., passages).
    """
    most = alike.max(-1, keepdims=True, initial=-1.0)
    return np.asarray(_LESS_SIMILAR * (most - alike))


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
