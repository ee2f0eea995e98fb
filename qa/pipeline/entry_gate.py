"""Stage 5: the verifier's judgment of the retrieved entries, and those that answer.

The verifier reads question and entry together. Above one threshold a verified entry is
the answer, shown whole; below another the language model is not asked to write one. In
an entry that is shown whole, the sentence that gives the answer is marked.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kb.text.layout import parts_of
from kb.text.names import Names, asked_by_name, is_of_another, stems_in
from kb.text.terms import is_reversed, terms
from kb.text.turns import is_of_another_turn
from kb.types import Evidence

from .choice import MOST, chance_of_any, choose, nearly_as_likely
from .gates import COMPETING, Decision, Gate, judge
from .hard_gate import covers, share_of_bound
from .policy import Policy
from .retrieve import keep
from .values import Question, Retrieval
from .verbatim import asks_the_same, is_denied
from .weighing import Passage, Verifier, as_asked, likeness, odds_of, sentences_of

# A question of this many words is definite even without a content word ("How much is it
# for two?").
_MIN_WORDS: Final = 4
_WORD: Final = re.compile(r"\w+")
# A sentence gives the answer if it does so more likely than not and its odds are three
# times those of any other: right in 138 of 146 paragraphs so marked in 13 SQuAD
# articles.
_TELLS, _STANDS_OUT = 0.5, math.log(3)
# Penalty in log-odds for an entry that lacks a name which the question uses and other
# entries have. At nine help desks 2 of 401 right answers and 3 of 43 wrong ones lacked
# one, as did the likeliest entry for 31 of 239 questions that nothing answers.
_OTHER_NAME = 2.5
# The least probability that any entry answers at which the asker is asked which one is
# meant: asking back costs less than a refusal that explains nothing.
_ASKS_BACK = 0.4


@dataclass(frozen=True, slots=True)
class Verification:
    """The verifier's judgment of the evidence.

    Attributes:
        evidence: The best `policy.top_k` of the weighed, the likeliest to answer first.
        matches: The verified entries that answer by themselves, the likeliest first.
        odds: {entry: log-odds that it answers versus that none does}, for all weighed.
    """

    evidence: tuple[Evidence, ...]
    matches: tuple[Evidence, ...]
    verifier: str
    decision: Decision
    odds: Mapping[int, float]


def verify(
    question: Question,
    found: Retrieval,
    *,
    verifier: Callable[[], Verifier],
    policy: Policy,
) -> Verification:
    """Weigh the most similar evidence; pass, refuse, or return the entries that answer.

    An entry that hard refusal would not pass never answers by itself.
    """
    by = verifier()
    weighed = weigh(question, found.evidence, by, policy)
    chance, own = answering(question, weighed, policy)
    competing = count_competing(weighed, policy)
    values: dict[str, float | None] = {
        "answerability": weighed.answerability,
        "entry_answers": chance if own else None,
    }
    if competing:
        values[COMPETING] = competing
    # The question does not tell which of several entries is meant. A language model
    # that is trusted no more than an entry would pick one, so the asker is asked
    # instead.
    is_trusted = policy.min_answerability < policy.min_entry_answer
    if competing > MOST and not is_trusted:
        values["answerability"] = chance
    decision = judge(Gate.ENTRY, values, policy)
    is_match = any(s.name == "entry_answers" and s.passed for s in decision.signals)
    matches = own if is_match and not decision.refused else ()
    return Verification(
        evidence=tuple(keep([piece for _, piece in weighed.pieces], policy, matches)),
        matches=matches,
        verifier=by.fingerprint,
        decision=decision,
        odds={piece.entry_id: odds for odds, piece in weighed.pieces},
    )


@dataclass(frozen=True, slots=True)
class Weighed:
    """Evidence with its log-odds of answering versus none, the likeliest first.

    Attributes:
        answerability: Probability in [0, 1] that any of it answers; None if empty.
    """

    pieces: tuple[tuple[float, Evidence], ...]
    answerability: float | None


def weigh(
    question: Question, found: Sequence[Evidence], by: Verifier, policy: Policy
) -> Weighed:
    """Weigh the pieces most similar to the question by their log-odds of answering.

    Those with the most similar tokens are weighed, and always the one that decided hard
    refusal, the nearest verified one and the best match by words. A piece that states
    the opposite, or is about another thing of the same kind, cannot answer.
    """
    passages = [passage_of(piece, question) for piece in found]
    text = as_asked(question.text, passages, by)
    alike = likeness(text, passages, by)
    near = _most_similar(found, alike, policy)
    evidence = [found[at] for at in near]
    own = odds_of(text, [passages[at] for at in near], by, alike[near])
    asked = _things_asked_for(question, evidence)
    names = _names_asked_for(question, evidence, by)
    odds = [
        -math.inf
        if _is_beside(question, asked, piece)
        else each - (_OTHER_NAME if _lacks(names, piece) else 0.0)
        for piece, each in zip(evidence, own, strict=True)
    ]
    order = sorted(range(len(evidence)), key=lambda at: -odds[at])
    return Weighed(
        tuple((odds[at], evidence[at]) for at in order),
        chance_of_any(odds) if evidence else None,
    )


def _most_similar(
    found: Sequence[Evidence], alike: NDArray[np.float64], policy: Policy
) -> list[int]:
    """Return the indices of the pieces to weigh, at most `policy.weighed`."""
    every = range(len(found))
    deciding = sorted(every, key=lambda at: share_of_bound(found[at], policy))[:1]
    verified = [at for at in every if found[at].is_verified]
    nearest = sorted(verified, key=lambda at: found[at].ratio)[:1]
    named = [at for at in every if found[at].text_rank == 1]
    wanted = {*deciding, *nearest, *named}
    order: list[int] = np.argsort(-alike, kind="stable").tolist()
    others = [at for at in order if at not in wanted]
    kept = wanted.union(others[: max(policy.weighed - len(wanted), 0)])
    return [at for at in order if at in kept]


def answering(
    question: Question, weighed: Weighed, policy: Policy
) -> tuple[float, tuple[Evidence, ...]]:
    """Return the probability of a right answer and the verified entries to show.

    A second entry is shown if it is nearly as likely as the first: the question has
    several parts or may mean either. Entries compete only with verified ones, so that
    unverified ones cannot suppress them.
    """
    rivals, able = _candidates(weighed, policy)
    if not (able and _is_definite(question)):
        return 0.0, ()
    shown, chance = choose(
        [odds for odds, _ in rivals],
        [piece.text for _, piece in rivals],
        able,
        most=min(MOST, policy.top_k),
    )
    return chance, tuple(rivals[at][1] for at in shown)


def count_competing(weighed: Weighed, policy: Policy) -> int:
    """Return how many verified entries may be meant; 0 if asking back is pointless."""
    rivals, able = _candidates(weighed, policy)
    if not able or (weighed.answerability or 0.0) < _ASKS_BACK:
        return 0
    near = nearly_as_likely(
        [odds for odds, _ in rivals], [piece.text for _, piece in rivals], able
    )
    return len(near) if len(near) > 1 else 0


def _candidates(
    weighed: Weighed, policy: Policy
) -> tuple[list[tuple[float, Evidence]], list[int]]:
    """Return the verified pieces and the indices of those that may be shown or meant.

    The latter pass hard refusal and were not ruled out (log-odds of -inf).
    """
    rivals = [pair for pair in weighed.pieces if pair[1].is_verified]
    able = [
        at
        for at, (odds, piece) in enumerate(rivals)
        if covers(piece, policy) and odds > -math.inf
    ]
    return rivals, able


def _is_definite(question: Question) -> bool:
    """Return whether the question is definite enough for an entry to answer it.

    A single word ("PIN?") is not. On two words ("PALO where", "any discounts") the
    verifier is reliable: on seven held-out sets it would answer 14 questions with one
    content word, all of them rightly.
    """
    words = len(_WORD.findall(question.text))
    return words >= _MIN_WORDS or (words > 1 and bool(terms(question.text).words))


def _is_beside(
    question: Question, asked: Mapping[str, frozenset[str]], piece: Evidence
) -> bool:
    """Return whether a piece answers another question, as "lower" does for "raise".

    A verifier judges by meaning: it takes opposites, things of one kind, and years or
    places in a series for the same, and a question for its own answer. A piece that an
    expert rejected for this question counts as well.
    """
    place, said = _place(piece), _said(piece)
    return (
        is_denied(question.text, piece)
        or _only_asks(piece)
        or is_reversed(question.text, f"{piece.question} {piece.text}")
        or is_of_another(asked, said, place)
        or is_of_another_turn(question.text, f"{place}\n{said}")
    )


def _only_asks(piece: Evidence) -> bool:
    """Return whether it is a question without an answer, such as a stray heading."""
    if piece.question or not piece.text.rstrip().endswith("?"):
        return False  # the usual case, without parsing its parts
    return all(part.read.endswith("?") for part in parts_of(piece.text))


def _things_asked_for(
    question: Question, evidence: Sequence[Evidence]
) -> Mapping[str, frozenset[str]]:
    if question.language != "en":
        return {}
    return Names.in_texts(map(_said, evidence)).asked_for(question.text)


def _names_asked_for(
    question: Question, evidence: Sequence[Evidence], by: Verifier
) -> frozenset[str]:
    """Return the stems of the names asked for, except those that titles share.

    A name in the titles of several documents is the organisation's own.
    """
    if question.language != "en":
        return frozenset()
    names = asked_by_name(question.text, map(_said, evidence), is_word=by.is_word)
    titles = {piece.document_title for piece in evidence} if names else ()
    counts = Counter(stem for title in titles for stem in stems_in(title))
    return frozenset(name for name in names if counts[name] < 2)


def _said(piece: Evidence) -> str:
    return "\n".join((*piece.questions, piece.text))


def _place(piece: Evidence) -> str:
    return f"{piece.document_title}\n{piece.section}"


def _lacks(names: frozenset[str], piece: Evidence) -> bool:
    return bool(names) and not names <= (
        stems_in(_said(piece)) | stems_in(_place(piece))
    )


def telling_sentences(
    question: Question, pieces: Sequence[Evidence], *, verifier: Callable[[], Verifier]
) -> tuple[str, ...]:
    return tuple(
        telling_sentence(question, piece, verifier=verifier) for piece in pieces
    )


def telling_sentence(
    question: Question, piece: Evidence, *, verifier: Callable[[], Verifier]
) -> str:
    """Return the sentence of an entry that gives the answer; "" if none stands out."""
    read = sentences_of(passage_of(piece, question))
    if len(read) < 2:  # a single sentence cannot stand out
        return ""
    scores = verifier().score(question.text, read)
    (second, _), (first, at) = sorted(zip(scores, range(len(read)), strict=True))[-2:]
    stands_out = _log_odds(first) - _log_odds(second) >= _STANDS_OUT
    span = parts_of(piece.text)[at].span
    said = span.within(piece.text).strip()
    # A quotation is marked at its first occurrence in the text.
    is_first = said not in piece.text[: span.start]
    return said if first >= _TELLS and stands_out and is_first else ""


def _log_odds(chance: float) -> float:
    return math.log(chance + 1e-9) - math.log(1 - chance + 1e-9)


def passage_of(piece: Evidence, asked: Question | None = None) -> Passage:
    """Return a piece as the verifier reads it, with a wording that asks the same.

    A wording that is merely similar to the question makes the verifier overrate near
    misses: of 186 questions to a help desk with 72 confirmed wordings, 74 right answers
    ranked above the first wrong one without such wordings and 65 with them.
    """
    own = Passage.of_entry(
        piece.document_title, piece.section, piece.question, piece.text
    )
    same = (
        each for each in piece.wordings if asked and asks_the_same(asked.text, each)
    )
    return replace(own, question=next(same, own.question))
