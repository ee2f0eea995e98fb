"""Values of the pipeline, built for its tests: what a retriever or a model hands over."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from qa.pipeline.types import (
    Evidence,
    Generation,
    Policy,
    Prompt,
    Retrieval,
    Withheld,
)

EMBEDDER = "e" * 64
MODEL = "m" * 64


def make_policy(**changes: Any) -> Policy:
    values: dict[str, Any] = {
        "name": "test",
        "version": 1,
        "alpha": 0.85,
        "alpha_unverified": 2.0,
        "horizon": 1.2,
        "top_k": 4,
        "verbatim_distance": 0.35,
        "unverified_floor": 0.75,
        "hard_refusal": True,
        "soft_refusal": True,
        "support_check": True,
        "min_verdict": 0.5,
        "reveal_not_entitled": False,
        "refuse_when_stale": False,
        "calibrated_embedder": EMBEDDER,
        "calibrated_language_model": "",
        "calibrated_retrieval": "",
        "is_calibrated": False,
    }
    return Policy(**values | changes)


def make_evidence(
    text: str = "A replacement card costs 12 euros.",
    *,
    distance: float = 0.5,
    confidence: float = 1.0,
    question: str = "",
    entry_id: int = 1,
) -> Evidence:
    return Evidence(
        entry_id=entry_id,
        revision_id=entry_id + 1000,
        text=text,
        question=question,
        confidence=confidence,
        is_verified=confidence == 1.0,
        distance=distance,
        vector_rank=1,
        text_rank=None,
        score=1 / 61,
        document_title="Price list",
        section="",
        verified_at=None,
        valid_until=None,
    )


def make_retrieval(*evidence: Evidence, **changes: Any) -> Retrieval:
    values: dict[str, Any] = {
        "evidence": evidence,
        "visible": len(evidence),
        "route": "exact",
        "method": "test",
        "embedder": EMBEDDER,
        "deep": False,
        "embed_milliseconds": 7.0,
        "sql_milliseconds": 2.0,
    }
    return Retrieval(**values | changes)


def make_generation(answer: str = "It costs 12 euros.", **changes: Any) -> Generation:
    values: dict[str, Any] = {
        "cited": (1,),
        "quotes": (),
        "reasoning": "Note 1 says so.",
        "can_answer": True,
        "verdict_probability": 0.9,
        "answer": answer,
        "malformed": False,
        "repaired": False,
        "log_probability": -0.1,
        "raw": answer,
        "prompt_tokens": 10,
        "answer_tokens": 5,
        "milliseconds": 1.0,
    }
    return Generation(**values | changes)


@dataclass
class GivenRetriever:
    """Hands over the looks that it was given, and remembers how it was asked."""

    first: Retrieval
    second: Retrieval | None = None
    hidden: Sequence[Withheld] = ()
    looks: list[bool] = field(default_factory=list)

    def look(self, question: str, *, top_k: int, deep: bool) -> Retrieval:
        self.looks.append(deep)
        if deep:
            assert self.second is not None, "nobody expected a second look"
            return self.second
        return self.first

    def withheld(self, question: str) -> Sequence[Withheld]:
        return self.hidden


@dataclass
class GivenModel:
    """Gives the generation that it was given, and keeps the prompts."""

    generation: Generation
    prompts: list[Prompt] = field(default_factory=list)

    @property
    def fingerprint(self) -> str:
        return MODEL

    def generate(self, prompt: Prompt) -> Generation:
        self.prompts.append(prompt)
        return self.generation


def never_load() -> GivenModel:
    raise AssertionError("the language model was loaded")
