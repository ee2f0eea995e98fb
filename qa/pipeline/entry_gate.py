"""Stage 5: what the verifier says of the entries found, and the one that answers by itself.

A verifier reads question and entry together. Above one threshold a verified entry is the
answer, shown whole; below another no language model is asked to make one of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kb.text.terms import is_reversed, terms
from kb.types import Evidence

from .gates import Decision, Gate, judge
from .hard_gate import covers
from .policy import Policy
from .retrieve import keep
from .values import Question, Retrieval

_MIN_WORDS = 2  # content words of a question that an entry may answer by itself


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


def passage_of(piece: Evidence) -> Passage:
    return Passage(piece.document_title, piece.section, piece.question, piece.text)
