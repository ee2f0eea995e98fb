"""Stage 2: look for evidence, twice before a refusal."""

from .evidence import Retrieval, Retriever
from .hard_gate import passes
from .outcome import Question
from .policy import Policy

_EXACT = "exact"


def retrieve(question: Question, *, retriever: Retriever, policy: Policy) -> Retrieval:
    """Return the first look, or a deeper one where the first would end in a refusal.

    An index that gave up early must never look like missing knowledge. A first look
    that compared every visible entry can't have missed one and is not repeated.
    """
    first = retriever.look(question.text, top_k=policy.candidates, deep=False)
    if passes(first, policy) or first.route == _EXACT:
        return first
    second = retriever.look(question.text, top_k=policy.candidates, deep=True)
    return Retrieval(
        evidence=second.evidence,
        visible=second.visible,
        route=second.route,
        method=second.method,
        embedder=second.embedder,
        deep=True,
        embed_milliseconds=first.embed_milliseconds + second.embed_milliseconds,
        sql_milliseconds=first.sql_milliseconds + second.sql_milliseconds,
    )
