"""How a question is answered or refused: the table of contents of the pipeline."""

from collections.abc import Callable, Iterator

from .clean import clean_question
from .clock import Clock
from .conclude import conclude
from .generate import generate
from .hard_gate import judge_coverage
from .retrieve import retrieve
from .soft_gate import judge_generation
from .support import verify_support
from .types import LanguageModel, Policy, Retriever, StageValue
from .verbatim import match_verbatim


def answer(
    asked: str,
    *,
    language: str = "en",
    retriever: Retriever,
    language_model: Callable[[], LanguageModel],
    policy: Policy,
) -> Iterator[StageValue]:
    """Yield the value of each stage as it is made; the last one is the Outcome.

    `language_model` loads the model and is called only for a question that passed hard
    refusal and has no verbatim answer.

    Raises:
        LanguageModelUnavailableError: The model's server is down or too slow.
    """
    clock = Clock()
    yield (question := clock.time("question", clean_question, asked, language))
    yield (
        found := clock.time(
            "retrieve", retrieve, question, retriever=retriever, policy=policy
        )
    )
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
    if hard.refused or match.evidence:
        yield conclude(question, found, match, hard, policy=policy, times=clock.times)
        return
    model = clock.time("load", language_model)
    yield (
        generation := clock.time(
            "generate", generate, question, found, language_model=model
        )
    )
    yield (
        support := clock.time("support", verify_support, question, found, generation)
    )
    yield (
        soft := clock.time(
            "soft_refusal",
            judge_generation,
            found,
            generation,
            support,
            policy=policy,
            language_model=model.fingerprint,
        )
    )
    yield conclude(
        question, found, match, hard, generation, support, soft,
        policy=policy, language_model=model.fingerprint, times=clock.times,
    )  # fmt: skip
