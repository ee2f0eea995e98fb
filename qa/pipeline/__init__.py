"""How a question is answered or refused: the table of contents of the pipeline."""

from collections.abc import Callable, Iterator

from .abstain import abstain
from .agree import judge_agreement
from .closed_book import ClosedBookModels, answer_closed_book
from .conclude import conclude
from .generate import debias, generate
from .hard_gate import judge_coverage
from .history import VerdictDebiaser
from .language_model import LanguageModel, Probes
from .policy import Policy, Scope
from .retrieve import Reranker, rerank, retrieve
from .soft_gate import judge_generation, verify_support
from .values import Clock, Outcome, Retriever, StageValue, clean_question
from .verbatim import match_verbatim


def answer(
    asked: str,
    *,
    language: str = "en",
    retriever: Retriever,
    language_model: Callable[[], LanguageModel],
    probes: Callable[[LanguageModel], Probes],
    policy: Policy,
    mind: ClosedBookModels | None = None,
    reranker: Callable[[], Reranker | None] | None = None,
    debiaser: Callable[[], VerdictDebiaser] | None = None,
) -> Iterator[StageValue]:
    """Yield the value of each stage as it is made; the last one is the Outcome.

    `language_model` loads the model and `probes` those in force for it; they are called
    only for a question that passed hard refusal and has no verbatim answer.
    `mind` is asked in the adaptive scope alone, `reranker` where the policy ranks anew
    and `debiaser` where it corrects verdicts.
    """
    clock, by_reranker = Clock(), ""
    yield (question := clock.time("question", clean_question, asked, language))
    boundary = None
    if policy.scope is Scope.ADAPTIVE and mind:
        before = yield from answer_closed_book(
            question, mind=mind, retriever=retriever, policy=policy, clock=clock
        )
        if isinstance(before, Outcome):
            yield before
            return
        boundary = before
    found = clock.time(
        "retrieve", retrieve, question, retriever=retriever, policy=policy
    )
    yield found
    yield (
        match := clock.time("verbatim", match_verbatim, question, found, policy=policy)
    )
    yield (
        hard := clock.time(
            "hard_refusal",
            judge_coverage,
            question,
            found,
            retriever=retriever,
            policy=policy,
        )
    )
    agreement = None
    if match.evidence and not hard.refused:
        agreement = clock.time(
            "agreement",
            judge_agreement,
            found.evidence,
            (match.evidence.entry_id,),
            retriever=retriever,
            policy=policy,
        )
        yield agreement.decision
    if hard.refused or match.evidence:
        yield conclude(
            question, found, match, hard, agreement=agreement, boundary=boundary,
            policy=policy, times=clock.times,
        )  # fmt: skip
        return
    if policy.rerank:
        found, by_reranker = clock.time(
            "rerank", rerank, question, found, reranker=reranker, policy=policy
        )
    model, in_force = clock.time("load", _loaded, language_model, probes)
    by = model.fingerprint
    yield (
        generation := clock.time(
            "generate",
            generate,
            question,
            found,
            language_model=model,
            probes=in_force,
            policy=policy,
        )
    )
    if policy.debias_verdict and debiaser and not generation.is_stopped:
        generation = clock.time(
            "debias", debias, question, found, generation,
            debiaser=debiaser(), language_model=by,
        )  # fmt: skip
    support = soft = confidence = abstention = None
    if not generation.is_stopped:  # nothing was written that could be judged
        yield (
            support := clock.time(
                "support", verify_support, question, found, generation
            )
        )
        yield (
            soft := clock.time(
                "soft_refusal",
                judge_generation,
                found,
                generation,
                support,
                policy=policy,
                language_model=by,
            )
        )
    if soft is None or not soft.refused:
        confidence, abstention = clock.time(
            "abstention",
            abstain,
            question,
            found,
            generation,
            earlier=(*match.signals, *hard.signals, *(soft.signals if soft else ())),
            probes=in_force,
            policy=policy,
            language_model=by,
        )
        yield confidence
        yield abstention
    if support and abstention and not abstention.refused:
        used = tuple(citation.entry_id for citation in support.citations)
        agreement = clock.time(
            "agreement",
            judge_agreement,
            found.evidence,
            used,
            retriever=retriever,
            policy=policy,
        )
        yield agreement.decision
    yield conclude(
        question, found, match, hard, generation, support, soft, confidence, abstention,
        agreement, boundary, policy=policy, language_model=by,
        probes=f"{in_force.fingerprints} {by_reranker}".strip(),
        times=clock.times,
    )  # fmt: skip


def _loaded(
    language_model: Callable[[], LanguageModel],
    probes: Callable[[LanguageModel], Probes],
) -> tuple[LanguageModel, Probes]:
    model = language_model()
    return model, probes(model)
