"""Stage 5: what the verifier says of the entries found, and the one that answers by itself.

A verifier reads question and entry together. Above one threshold a verified entry is the
answer, shown whole; below another no language model is asked to make one of it. Of an entry
that is shown whole, the sentence that tells the answer is marked.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kb.text.layout import parts_of
from kb.text.names import Names, asked_by_name, is_of_another, stems_in
from kb.text.terms import is_reversed, terms
from kb.text.turns import is_of_another_turn
from kb.types import Evidence

from .choice import (
    MOST,
    Passage,
    Verifier,
    chance_of_any,
    choose,
    log_odds,
    nearly_as_likely,
    sentences_of,
)
from .gates import COMPETING, Decision, Gate, judge
from .hard_gate import covers
from .policy import Policy
from .retrieve import keep
from .values import Question, Retrieval
from .verbatim import asks_the_same, is_denied

# Of so many words a question asks something definite even without a content word among
# them ("How much is it for two?").
_MIN_WORDS: Final = 4
_WORD: Final = re.compile(r"\w+")
# A sentence tells the answer if it is likelier to than not and its odds are three times
# those of any other: right in 138 of 146 paragraphs so marked of SQuAD's thirteen articles.
_TELLS, _STANDS_OUT = 0.5, math.log(3)
# How much less likely an entry is, in log-odds, that lacks a name which the question says and
# other entries have. Of nine desks' answers 2 in 401 right ones lacked one and 3 in 43 wrong
# ones, and so did the likeliest entry of 31 in 239 questions that nothing answers.
_OTHER_NAME = 2.5
# Which entry is meant is a question to the asker where it is about as likely as not that
# any of them answers: asking costs less than a refusal that says nothing.
_ASKS_BACK = 0.4


@dataclass(frozen=True, slots=True)
class Verification:
    """What the verifier says of the evidence, which it puts in order.

    Attributes:
        evidence: The best `policy.top_k`, the likeliest to answer first.
        matches: The verified entries that answer by themselves, the likeliest first.
        odds: {entry: log-odds that it answers against that none does}, of all.
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
    """Weigh all evidence at once; pass, refuse, or name the entries that answer.

    Of what hard refusal would not let pass nothing answers by itself.
    """
    by = verifier()
    weighed = weigh(question, found.evidence, by)
    chance, own = answering(question, weighed, policy)
    competing = count_competing(weighed, policy)
    values: dict[str, float | None] = {
        "answerability": weighed.answerability,
        "entry_answers": chance if own else None,
    }
    if competing:
        values[COMPETING] = competing
    # Which of several is meant the question does not tell, and a language model that is
    # trusted no more than an entry would take one of them: the asker is asked instead.
    is_trusted = policy.min_answerability < policy.min_entry_answer
    if competing > MOST and not is_trusted:
        values["answerability"] = chance
    decision = judge(Gate.ENTRY, values, policy)
    is_match = any(s.name == "entry_answers" and s.passed for s in decision.signals)
    matches = own if is_match and not decision.refused else ()
    return Verification(
        evidence=_kept([piece for _, piece in weighed.pieces], policy, matches),
        matches=matches,
        verifier=by.fingerprint,
        decision=decision,
        odds={piece.entry_id: odds for odds, piece in weighed.pieces},
    )


@dataclass(frozen=True, slots=True)
class Weighed:
    """Evidence with its log-odds that it answers against that none does, likeliest first.

    Attributes:
        answerability: The probability in [0, 1] that any of it answers; None without any.
    """

    pieces: tuple[tuple[float, Evidence], ...]
    answerability: float | None


def weigh(question: Question, evidence: Sequence[Evidence], by: Verifier) -> Weighed:
    """Weigh pieces against none.

    What says the opposite alone, or speaks of another thing of the kind, answers nothing.
    """
    found = log_odds(
        question.text, [passage_of(piece, question) for piece in evidence], by
    )
    asked = _things_asked_for(question, evidence)
    names = _names_asked_for(question, evidence, by)
    odds = [
        -math.inf
        if _is_beside(question, asked, piece)
        else each - (_OTHER_NAME if _lacks(names, piece) else 0.0)
        for piece, each in zip(evidence, found, strict=True)
    ]
    order = sorted(range(len(evidence)), key=lambda at: -odds[at])
    return Weighed(
        tuple((odds[at], evidence[at]) for at in order),
        chance_of_any(odds) if evidence else None,
    )


def answering(
    question: Question, weighed: Weighed, policy: Policy
) -> tuple[float, tuple[Evidence, ...]]:
    """Return the verified entries that would be shown, and the probability of a right one.

    A second one is shown beside the likeliest where it is nearly as likely: the question
    has several parts, or may mean either. They are weighed against verified ones only:
    others must not silence them.
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
    """Return how many verified entries may be meant, 0 where the question tells it."""
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
    """Return the verified pieces, and the places of those that may be shown or meant.

    Hard refusal lets them pass, and they are not beside the question.
    """
    rivals = [pair for pair in weighed.pieces if pair[1].is_verified]
    able = [
        at
        for at, (odds, piece) in enumerate(rivals)
        if covers(piece, policy) and odds > -math.inf
    ]
    return rivals, able


def _is_definite(question: Question) -> bool:
    """Tell whether an entry may answer it by itself: one word ("PIN?") asks nothing definite.

    Of two ("PALO where", "any discounts") the verifier tells: on seven sets that no fit
    saw it would show an answer to 14 questions of one content word, and all were right.
    """
    words = len(_WORD.findall(question.text))
    return words >= _MIN_WORDS or (words > 1 and bool(terms(question.text).words))


def _is_beside(
    question: Question, asked: Mapping[str, frozenset[str]], piece: Evidence
) -> bool:
    """Tell whether it says "lower" for "raise", or "Gold card" for "Platinum card".

    A verifier that goes by meaning takes opposites, things of one kind, years and places
    in a row for alike, and the question itself for its answer. What an expert said is no
    answer is none either.
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
    """Tell whether it is a question that has no answer: a heading that became an entry."""
    if piece.question or not piece.text.rstrip().endswith("?"):
        return False  # as mostly: no part of it is read
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
    """Return the stems of names that are asked for, but those of several documents.

    What titles of several have in common is the organisation's name.
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


def _kept(
    ranked: Sequence[Evidence], policy: Policy, matches: Sequence[Evidence]
) -> tuple[Evidence, ...]:
    """Return the first `policy.top_k`, or all where a reranker chooses among them."""
    return tuple(ranked if policy.rerank else keep(ranked, policy, matches))


def telling_sentences(
    question: Question, pieces: Sequence[Evidence], *, verifier: Callable[[], Verifier]
) -> tuple[str, ...]:
    return tuple(
        telling_sentence(question, piece, verifier=verifier) for piece in pieces
    )


def telling_sentence(
    question: Question, piece: Evidence, *, verifier: Callable[[], Verifier]
) -> str:
    """Return the sentence of an entry that tells the answer; "" if none stands out."""
    read = sentences_of(passage_of(piece, question))
    if len(read) < 2:  # one has nothing to stand out from
        return ""
    scores = verifier().score(question.text, read)
    (second, _), (first, at) = sorted(zip(scores, range(len(read)), strict=True))[-2:]
    stands_out = _log_odds(first) - _log_odds(second) >= _STANDS_OUT
    span = parts_of(piece.text)[at].span
    said = span.within(piece.text).strip()
    # What is quoted is marked where it first stands.
    is_first = said not in piece.text[: span.start]
    return said if first >= _TELLS and stands_out and is_first else ""


def _log_odds(chance: float) -> float:
    return math.log(chance + 1e-9) - math.log(1 - chance + 1e-9)


def passage_of(piece: Evidence, asked: Question | None = None) -> Passage:
    """Return a piece as the verifier reads it, with the wording in which it is asked for.

    With one that is only like the question it is surer of near misses: of 186 questions
    to a desk that had confirmed 72 wordings, 74 right answers came before the first wrong
    one without them and 65 with them.
    """
    own = Passage.of_entry(
        piece.document_title, piece.section, piece.question, piece.text
    )
    same = (
        each for each in piece.wordings if asked and asks_the_same(asked.text, each)
    )
    return replace(own, question=next(same, own.question))
