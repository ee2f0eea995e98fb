"""Values of the pipeline, built for its tests: what a retriever or a model hands over."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from kb.types import Contradiction, Evidence, Excluded
from probes.taps import Activations, Tap
from qa import pipeline
from qa.pipeline.language_model import (
    NO_CAPTURE,
    Capture,
    Confidence,
    Generation,
    KeptActivations,
    Prompt,
)
from qa.pipeline.policy import Policy, RetrievalTiming, Scope
from qa.pipeline.values import Retrieval, StageValue
from qa.pipeline.weighing import Passage

EMBEDDER = "e" * 64
MODEL = "m" * 64
SCORER = "s" * 64
PROBES = f"{'a' * 64} {'b' * 64}"
INSIDE: Activations = np.zeros(4, np.float32)


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
        "answer_from_enriched": False,
        "enriched_floor": 0.4,
        "hard_refusal": True,
        "soft_refusal": True,
        "support_check": True,
        "min_verdict": 0.5,
        "abstention": False,
        "min_confidence": 0.0,
        "min_early_confidence": 0.0,
        "min_joint_confidence": 0.0,
        "answer_without_probe": True,
        "sources_must_agree": True,
        "reveal_not_entitled": False,
        "refuse_when_stale": False,
        "scope": Scope.KNOWLEDGE_BASE,
        "retrieval_timing": RetrievalTiming.ALWAYS,
        "min_known": 0.95,
        "steering": 0.3,
        "min_token_confidence": 0.0,
        "rerank": False,
        "debias_verdict": False,
        "calibrated_embedder": EMBEDDER,
        "calibrated_language_model": "",
        "calibrated_retrieval": "",
        "calibrated_probes": "",
        "calibrated_own_knowledge": "",
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
    hidden: Sequence[Excluded] = ()
    looks: list[bool] = field(default_factory=list)
    opposed: Sequence[Contradiction] = ()
    unread: frozenset[int] = frozenset()
    looked_up: list[frozenset[int]] = field(default_factory=list)

    def look(self, question: str, *, top_k: int, deep: bool) -> Retrieval:
        self.looks.append(deep)
        if deep:
            assert self.second is not None, "nobody expected a second look"
            return self.second
        return self.first

    def withheld(self, question: str) -> Sequence[Excluded]:
        return self.hidden

    def contradictions(self, entry_ids: Sequence[int]) -> Sequence[Contradiction]:
        self.looked_up.append(frozenset(entry_ids))
        return self.opposed

    def not_compared(self, entry_ids: Sequence[int]) -> Collection[int]:
        return self.unread & set(entry_ids)


@dataclass
class GivenScorer:
    """A verifier or a reranker: gives the scores that it was given, and keeps its input."""

    scores: Sequence[float]
    asked: list[tuple[str, Sequence[object]]] = field(default_factory=list)
    fingerprint: str = SCORER
    reads_jointly: bool = False

    def is_word(self, word: str) -> bool:
        return True

    def likeness(self, question: str, texts: Sequence[object]) -> NDArray[np.float64]:
        return np.zeros(len(texts))

    def score(self, question: str, texts: Sequence[object]) -> Sequence[float]:
        self.asked.append((question, texts))
        return self.scores

    def log_odds(self, question: str, texts: Sequence[Passage]) -> Sequence[float]:
        """Return the scores' log-odds; single sentences of an entry say nothing more."""
        if len(texts) != len(self.scores) or not texts:
            return [-math.inf] * len(texts)
        self.asked.append((question, texts))
        return [float(np.clip(logit(score), -30, 30)) for score in self.scores]

    def joint_log_odds(
        self, question: str, texts: Sequence[Passage]
    ) -> Sequence[float]:
        raise NotImplementedError("it only reads apart")


@dataclass
class GivenModel:
    """Gives the generation that it was given, and keeps the prompts.

    It can be stopped, as a white-box model can; what stands inside it does not matter.
    """

    generation: Generation
    prompts: list[Prompt] = field(default_factory=list)

    @property
    def fingerprint(self) -> str:
        return MODEL

    def generate(self, prompt: Prompt, capture: Capture = NO_CAPTURE) -> Generation:
        self.prompts.append(prompt)
        for place in capture.prompt:
            if capture.watch and not capture.watch(place, INSIDE):
                return make_generation(
                    "", can_answer=False, trace=KeptActivations(is_stopped=True)
                )
        return self.generation


@dataclass
class GivenProbes:
    """Gives the confidence that it was given, and keeps the signals that it was told.

    A model that can be stopped is stopped by `confidence.early`.
    """

    confidence: Confidence
    signals: list[Mapping[str, float | None]] = field(default_factory=list)

    @property
    def fingerprints(self) -> str:
        return self.confidence.probes

    def capture(self, *, least_early: float | None) -> Capture:
        early = self.confidence.early
        if early is None or least_early is None:
            return NO_CAPTURE
        return Capture(prompt=(Tap(0),), watch=lambda _place, _at: early >= least_early)

    def read(
        self,
        prompt: Prompt,
        generation: Generation,
        signals: Mapping[str, float | None],
    ) -> Confidence:
        self.signals.append(signals)
        if generation.is_stopped:
            return replace(self.confidence, answer=None, joint=None, along=())
        return self.confidence


def never_load() -> GivenModel:
    raise AssertionError("the language model was loaded")


def run_pipeline(
    asked: str, *, policy: Policy, language: str = "en", **sources: Any
) -> Iterator[StageValue]:
    """Ask by the sources that are named."""
    given = pipeline.Sources(**sources)
    return pipeline.answer(asked, given, policy=policy, language=language)
