"""Knowledge that a language model wrote from the questions alone.

The paper's set-up: each test question is answered by a model that sees nothing else, and
question and answer become one sentence. The knowledge base therefore knows something
about every question, but nothing that anybody checked.
"""

import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from django.db import transaction

from kb.enrichment.forms import PROMPT_VERSION
from kb.enrichment.writer import Writer
from kb.models import KnowledgeBase, Proposal
from kb.services.enrichment import Plan, enrich
from qa.evaluation.knowledge import (
    Fact,
    Loading,
    Source,
    ensure_audience,
    ensure_knowledge,
)

from .values import ChoiceQuestion

_SAMPLES: Final = 3
_MOST_CERTAIN: Final = 0.999  # only what a person verified has 1
_LEAST_CERTAIN: Final = 1e-4


class Confidence(StrEnum):
    """Which confidence the enriched entries carry."""

    STATED = "stated"
    CHECKED = "checked"


def enriched_knowledge(
    name: str,
    questions: Sequence[ChoiceQuestion],
    *,
    digest: str,
    writer: Callable[[], Writer],
    confidence: Confidence,
    loading: Loading | None = None,
) -> KnowledgeBase:
    """Return the knowledge base that `writer` wrote from the questions alone.

    Writing takes a second a question on one core. Broken off it goes on.

    Args:
        digest: Of the data; names the knowledge base with the writer.
        confidence: What the model states, as in the paper, or that held against the
            model's own signals.

    Raises:
        UnavailableError: The language model can't be asked now.
    """
    proposals = _proposals(name, questions, digest, writer(), loading)
    rows = proposals.proposals.order_by("question_sha256")
    facts = [
        Fact(
            proposal.sentence,
            key=proposal.question_sha256,
            confidence=_weight(proposal, confidence),
        )
        for proposal in rows
    ]
    return ensure_knowledge(
        f"{proposals.slug}-{confidence.value}",
        f"{proposals.name}, {confidence.value} confidence"[:100],
        [Source(key="enriched", title=f"What was written of {name}", facts=facts)],
        loading=loading,
    )


def _weight(proposal: Proposal, confidence: Confidence) -> float:
    """Return the entry's confidence: the root of what is meant.

    The release holds the squared distance over confidence against alpha, the product the
    distance; so the product's gate with the root decides as the release's does.
    """
    meant = proposal.stated if confidence is Confidence.STATED else proposal.confidence
    return math.sqrt(min(_MOST_CERTAIN, max(_LEAST_CERTAIN, meant)))


def _proposals(
    name: str,
    questions: Sequence[ChoiceQuestion],
    digest: str,
    writer: Writer,
    loading: Loading | None,
) -> KnowledgeBase:
    version = PROMPT_VERSION.rpartition("-")[2]
    slug = f"eval-{name}-by-{writer.fingerprint[:8]}-{version}-{digest[:8]}"
    knowledge_base, _ = KnowledgeBase.objects.get_or_create(
        slug=slug, defaults={"name": f"Evaluation: {name}, by a model"}
    )
    texts = sorted({question.question for question in questions})
    plan = Plan(
        knowledge_base=knowledge_base,
        audience=ensure_audience(),
        seeds=tuple(texts),
        per_seed=0,
        most=len(texts),
        samples=_SAMPLES,
        most_seconds=math.inf,
    )
    for progress in enrich(plan, writer, writing=transaction.atomic):
        if loading:
            loading(progress.seeds, len(texts))
    return knowledge_base
