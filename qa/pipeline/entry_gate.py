"""Stage 5: what the verifier says of the entries found, and the one that answers by itself.

A verifier reads question and entry together. Above one threshold a verified entry is the
answer, shown whole; below another no language model is asked to make one of it. Of an entry
that is shown whole, the sentence that tells the answer is marked.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kb.text.terms import is_reversed, terms
from kb.text.words import sentence_spans
from kb.types import Evidence

from .gates import Decision, Gate, judge
from .hard_gate import covers
from .policy import Policy
from .retrieve import keep
from .values import Question, Retrieval

_MIN_WORDS = 2  # content words of a question that an entry may answer by itself
# A sentence tells the answer if it is likelier to than not and its odds are three times
# those of any other: right in 138 of 146 paragraphs so marked of SQuAD's thirteen articles.
_TELLS, _STANDS_OUT = 0.5, math.log(3)
_MOST_SENTENCES = 32  # which the embedder reads at once


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
        """Return for each passage the probability in [0, 1] that it answers."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What the verifier says of the evidence, which it puts in order.

    Attributes:
        evidence: The best `policy.top_k`, the likeliest to answer first.
        match: The verified entry that answers by itself, if any.
    """

    evidence: tuple[Evidence, ...]
    match: Evidence | None
    verifier: str
    decision: Decision


def verify(
    question: Question,
    found: Retrieval,
    *,
    verifier: Callable[[], Verifier],
    policy: Policy,
) -> Verification:
    """Score all evidence at once; pass, refuse, or name the entry that answers.

    Of what hard refusal would not let pass nothing answers by itself; see `may_answer`.
    """
    by = verifier()
    scores = by.score(question.text, [passage_of(piece) for piece in found.evidence])
    ranked = sorted(
        (
            (0.0 if _is_opposite(question, piece) else score, piece)
            for score, piece in zip(scores, found.evidence, strict=True)
        ),
        key=lambda pair: -pair[0],
    )
    own = next((pair for pair in ranked if may_answer(question, pair[1], policy)), None)
    values = {
        "answerability": ranked[0][0] if ranked else None,
        "entry_answers": own[0] if own else None,
    }
    decision = judge(Gate.ENTRY, values, policy)
    is_match = any(s.name == "entry_answers" and s.passed for s in decision.signals)
    match = own[1] if own and is_match and not decision.refused else None
    return Verification(
        evidence=_kept([piece for _, piece in ranked], policy, match),
        match=match,
        verifier=by.fingerprint,
        decision=decision,
    )


def may_answer(question: Question, piece: Evidence, policy: Policy) -> bool:
    """Tell whether an entry may be the answer by itself, however likely it seems.

    One word ("PIN?") asks nothing definite.
    """
    return (
        piece.is_verified
        and covers(piece, policy)
        and len(terms(question.text).words) >= _MIN_WORDS
        and not _is_opposite(question, piece)
    )


def _is_opposite(question: Question, piece: Evidence) -> bool:
    """Tell whether it says "lower" alone where "raise" is asked for.

    A verifier that goes by meaning takes opposites for alike.
    """
    return is_reversed(question.text, f"{piece.question} {piece.text}")


def _kept(
    ranked: Sequence[Evidence], policy: Policy, match: Evidence | None
) -> tuple[Evidence, ...]:
    """Return the first `policy.top_k`, or all where a reranker chooses among them."""
    return tuple(ranked if policy.rerank else keep(ranked, policy, match))


def telling_sentence(
    question: Question, piece: Evidence, *, verifier: Callable[[], Verifier]
) -> str:
    """Return the sentence of an entry that tells the answer; "" if none stands out.

    The entry's own question is left out: beside it all of its sentences seem to answer.
    """
    found = sentence_spans(piece.text)
    if not 1 < len(found) <= _MOST_SENTENCES:
        return ""
    whole = replace(passage_of(piece), question="")
    said = [span.within(piece.text).strip() for span in found]
    scores = verifier().score(question.text, [replace(whole, text=s) for s in said])
    (second, _), (first, at) = sorted(zip(scores, range(len(said)), strict=True))[-2:]
    stands_out = _log_odds(first) - _log_odds(second) >= _STANDS_OUT
    # What is quoted is marked where it first stands.
    is_first = said[at] not in piece.text[: found[at].start]
    return said[at] if first >= _TELLS and stands_out and is_first else ""


def _log_odds(chance: float) -> float:
    return math.log(chance + 1e-9) - math.log(1 - chance + 1e-9)


def passage_of(piece: Evidence) -> Passage:
    return Passage(piece.document_title, piece.section, piece.question, piece.text)
