"""The question-answering pipeline: from a question to an answer or a refusal.

`look` takes a question as far as the entries that may answer it, and needs no language
model except, in the adaptive scope, the closed-book one for what no entry covers.
`write` generates an answer from the evidence and judges it; `conclude` sums up. All
measurements and decisions are collected in one `Trace`.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from .answer_gates import abstain, judge_agreement
from .closed_book import (
    ClosedBookModels,
    answer_closed_book,
    answer_uncovered,
    is_uncovered,
)
from .conclude import conclude
from .entry_gate import telling_sentences, verify
from .hard_gate import judge_coverage, with_obstacle
from .history import VerdictDebiaser
from .language_model import Generation, LanguageModel, Probes
from .policy import Policy, Scope
from .retrieve import Reranker, first_pieces, rerank, retrieve
from .soft_gate import debias, generate, judge_generation, verify_support
from .values import Clock, Retriever, StageValue, Trace, clean_question
from .verbatim import match_verbatim
from .weighing import Verifier

__all__ = ["Sources", "Steps", "answer", "conclude", "finish", "look", "write"]

# Yields the value of each stage as it is made, and returns the complete trace.
Steps = Generator[StageValue, None, Trace]


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that may answer a question; models are loaded only when needed."""

    retriever: Retriever
    language_model: Callable[[], LanguageModel]
    probes: Callable[[LanguageModel], Probes]
    closed_book: ClosedBookModels | None = None
    verifier: Callable[[], Verifier] | None = None
    reranker: Callable[[], Reranker | None] | None = None
    debiaser: Callable[[], VerdictDebiaser] | None = None


def answer(
    question: str, sources: Sources, *, policy: Policy, language: str = "en"
) -> Iterator[StageValue]:
    """Run the whole pipeline: yield the value of each stage, the Outcome last."""
    trace = yield from look(question, sources, policy=policy, language=language)
    trace = yield from write(trace, sources)
    yield conclude(trace)


def look(text: str, sources: Sources, *, policy: Policy, language: str = "en") -> Steps:
    """Retrieve evidence, apply the hard gate and find entries that are the answer.

    In the adaptive scope, the model's own knowledge is tried afterwards if no entry
    covers the question, or first if the policy says so. Without a closed-book model, an
    adaptive policy retrieves evidence like any other.
    """
    retriever, clock = sources.retriever, Clock()
    closed_book = sources.closed_book if policy.scope is Scope.ADAPTIVE else None
    question = clock.time("question", clean_question, text, language)
    yield question
    trace = Trace(question, policy, clock)
    if closed_book and policy.own_knowledge_first:
        trace = yield from answer_closed_book(trace, closed_book, retriever)
        if trace.is_decided:
            return trace
    trace = yield from _look_for_evidence(trace, sources)
    if closed_book and not policy.own_knowledge_first and is_uncovered(trace):
        trace = yield from answer_uncovered(trace, closed_book, retriever)
    return trace


def _look_for_evidence(trace: Trace, sources: Sources) -> Steps:
    question, policy, clock = trace.question, trace.policy, trace.clock
    retriever = sources.retriever
    found = clock.time(
        "retrieve", retrieve, question, retriever=retriever, policy=policy
    )
    yield found
    match = clock.time("verbatim", match_verbatim, question, found, policy=policy)
    yield match
    hard = clock.time(
        "hard_refusal", judge_coverage, question, found, retriever=retriever, policy=policy
    )  # fmt: skip
    yield hard
    trace = replace(trace, retrieval=found, verbatim=match, decisions=(hard,))
    if sources.verifier and not trace.is_decided:
        trace = yield from _verify(trace, sources.verifier, retriever)
    else:
        trace = replace(trace, retrieval=first_pieces(found, policy, trace.matches))
    if trace.matches and not trace.refusal:
        used = tuple(piece.entry_id for piece in trace.matches)
        trace = yield from _agree(trace, used, retriever)
    if trace.matches and not trace.refusal and sources.verifier:
        telling = clock.time(
            "mark",
            telling_sentences,
            question,
            trace.matches,
            verifier=sources.verifier,
        )
        trace = replace(trace, telling=telling)
    return trace


def _verify(
    trace: Trace, verifier: Callable[[], Verifier], retriever: Retriever
) -> Steps:
    by = trace.clock.time(
        "verify", verify, trace.question, trace.retrieval,
        verifier=verifier, policy=trace.policy,
    )  # fmt: skip
    decision = by.decision
    if decision.refused:
        decision = trace.clock.time(
            "entry", with_obstacle, decision, trace.question, by.evidence,
            retriever=retriever, policy=trace.policy,
        )  # fmt: skip
    yield decision
    return replace(
        trace,
        retrieval=replace(trace.retrieval, evidence=by.evidence),
        entries=by.matches,
        verifier=by.verifier,
        odds=by.odds,
        decisions=(*trace.decisions, decision),
    )


def write(trace: Trace, sources: Sources) -> Steps:
    """Generate an answer from the evidence and judge it, unless already decided."""
    if trace.is_decided:
        return trace
    found, reranker = trace.retrieval, ""
    if trace.policy.rerank:
        found, reranker = trace.clock.time(
            "rerank", rerank, trace.question, found,
            reranker=sources.reranker, policy=trace.policy,
        )  # fmt: skip
    model, probes = trace.clock.time("load", _load, sources)
    trace = replace(
        trace, retrieval=found, language_model=model.fingerprint,
        probes=f"{probes.fingerprints} {reranker}".strip(),
    )  # fmt: skip
    generation = yield from _generate(trace, model, probes, sources)
    trace = replace(trace, generation=generation)
    if not generation.is_stopped:  # otherwise there is no draft to judge
        trace = yield from _judge_draft(trace, generation, sources)
        if trace.refusal:
            return trace
    confidence, trusted = trace.clock.time("abstention", abstain, trace, probes=probes)
    yield confidence
    yield trusted
    trace = replace(trace, confidence=confidence, decisions=(*trace.decisions, trusted))
    if trusted.refused:
        return trace
    used = tuple(citation.entry_id for citation in trace.citations)
    return (yield from _agree(trace, used, sources.retriever))


def _generate(
    trace: Trace, model: LanguageModel, probes: Probes, sources: Sources
) -> Generator[StageValue, None, Generation]:
    question, found = trace.question, trace.retrieval
    policy, clock = trace.policy, trace.clock
    generation = clock.time(
        "generate", generate, question, found,
        language_model=model, probes=probes, policy=policy,
    )  # fmt: skip
    yield generation
    if policy.debias_verdict and sources.debiaser and not generation.is_stopped:
        generation = clock.time(
            "debias", debias, question, found, generation,
            debiaser=sources.debiaser(), language_model=model.fingerprint,
        )  # fmt: skip
    return generation


def _judge_draft(trace: Trace, generation: Generation, sources: Sources) -> Steps:
    clock, found = trace.clock, trace.retrieval
    support = clock.time(
        "support", verify_support, trace.question, found, generation,
        verifier=sources.verifier,
    )  # fmt: skip
    yield support
    soft = clock.time(
        "soft_refusal", judge_generation, found, generation, support,
        policy=trace.policy, language_model=trace.language_model,
    )  # fmt: skip
    yield soft
    return replace(trace, support=support, decisions=(*trace.decisions, soft))


def finish(steps: Steps) -> Trace:
    """Exhaust the steps and return their final trace."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            trace: Trace = end.value
            return trace


def _agree(trace: Trace, used: Sequence[int], retriever: Retriever) -> Steps:
    contradictions, decision = trace.clock.time(
        "agreement", judge_agreement, trace.retrieval.evidence, used,
        odds=trace.odds, retriever=retriever, policy=trace.policy,
    )  # fmt: skip
    yield decision
    return replace(
        trace, contradictions=contradictions, decisions=(*trace.decisions, decision)
    )


def _load(sources: Sources) -> tuple[LanguageModel, Probes]:
    model = sources.language_model()
    return model, sources.probes(model)
