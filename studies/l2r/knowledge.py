"""Knowledge made from gold answers or a corpus, or written by a language model."""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

from django.db import transaction

from kb.documents.models import KnowledgeBase
from kb.enrichment.forms import PROMPT_VERSION, Writer
from kb.enrichment.models import Proposal
from kb.enrichment.proposals import Plan
from kb.enrichment.services import enrich
from kb.text.cleaning import QUESTION_LIMIT
from kb.text.words import sentences
from qa.evaluation.cases import as_text, read_lines
from qa.evaluation.knowledge import (
    EMPTY,
    Fact,
    Loading,
    Source,
    ensure_audience,
    ensure_knowledge,
)
from qa.evaluation.suites.options import digest_of
from qa.exceptions import EvaluationDataError

from .questions import ChoiceQuestion

_SEED = 20240219  # any fixed number, so that a share always means the same questions


def gold_knowledge(
    name: str,
    questions: Sequence[ChoiceQuestion],
    ratio: float,
    *,
    digest: str,
    loading: Loading | None = None,
) -> KnowledgeBase:
    """Return the knowledge base with the right answers to a share of the questions.

    Args:
        questions: With one right option each.
        ratio: The share in [0, 1]; a larger share includes the smaller ones.
        digest: Of the data; part of the knowledge base's slug, as is `ratio`.

    Raises:
        EvaluationDataError: The ratio is out of range.
    """
    if not 0 <= ratio <= 1:
        raise EvaluationDataError(f"A share of {ratio} is not between 0 and 1.")
    known = gold_subset(questions, ratio)
    if not known:
        return ensure_knowledge(EMPTY, "Evaluation: nothing", ())
    facts = [Fact(_statement(question), key=question.id) for question in known]
    percent = f"{ratio * 100:g}".replace(".", "-")
    return ensure_knowledge(
        f"eval-{name}-gold-{percent}-{digest[:8]}",
        f"Evaluation: {name}, gold knowledge of {ratio:.0%}",
        [Source(key="gold", title=f"Gold knowledge of {name}", facts=facts)],
        loading=loading,
    )


def gold_subset(
    questions: Iterable[ChoiceQuestion], ratio: float
) -> list[ChoiceQuestion]:
    """Return a share of the questions, chosen by id; a larger share includes it."""
    ordered = sorted(questions, key=lambda question: _place(question.id))
    return ordered[: round(ratio * len(ordered))]


def corpus_knowledge(
    name: str, file: Path, *, loading: Loading | None = None
) -> KnowledgeBase:
    """Return a knowledge base of a corpus: JSON Lines of objects with a "text".

    Raises:
        EvaluationDataError: A line has no text, or the file is missing.
    """
    if not file.is_file():
        raise EvaluationDataError(f"There is no corpus {file}.")
    digest = digest_of(file)
    facts = [
        Fact(text, key=str(number))
        for number, text in read_lines(file, lambda row: as_text(row["text"]))
    ]
    sources = [
        Source(
            key=f"{file.stem}-{begin}",
            title=f"{file.stem}, from entry {begin + 1}",
            facts=facts[begin : begin + 256],
        )
        for begin in range(0, len(facts), 256)
    ]
    return ensure_knowledge(
        f"eval-{name}-corpus-{digest[:8]}",
        f"Evaluation: {name}, corpus {file.stem}"[:100],
        sources,
        loading=loading,
    )


def _statement(question: ChoiceQuestion) -> str:
    answer = question.options[question.correct[0]].strip()
    return f"{question.question.strip()} {answer}"


def _place(question_id: str) -> bytes:
    return hashlib.sha256(f"{_SEED}:{question_id}".encode()).digest()


# Knowledge that a language model wrote from the questions alone.


_SAMPLES: Final = 3
_MAX_CONFIDENCE: Final = 0.999  # 1 is reserved for what a person verified
_MIN_CONFIDENCE: Final = 1e-4


class Confidence(StrEnum):
    """The confidence given to enriched entries: as the model states it, or checked."""

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
    """Return the knowledge base that `writer` writes from the questions alone.

    Writing takes about a second per question on one core and can be resumed.

    Args:
        digest: Of the data; part of the slug, as is the writer's fingerprint.
        confidence: What the model states, as in the paper, or that value checked
            against the model's own signals.
    """
    proposals = _proposals(name, questions, digest, writer(), loading)
    rows = proposals.proposals.select_related("entry").order_by("question_sha256")
    facts = [
        Fact(
            f"{proposal.entry.question} {proposal.sentence}".strip(),
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
    """Return the square root of the proposal's confidence, as the entry's.

    The release compares the squared distance over confidence with alpha, the product
    the distance. With the root, the product's gate decides as the release's does.
    """
    meant = proposal.stated if confidence is Confidence.STATED else proposal.confidence
    return math.sqrt(min(_MAX_CONFIDENCE, max(_MIN_CONFIDENCE, meant)))


def _end_of(question: str) -> str:
    """Return a question in one line; one too long keeps its last sentences that fit."""
    said = " ".join(question.split())
    kept = sentences(said)
    while len(kept) > 1 and len(" ".join(kept)) > QUESTION_LIMIT:
        kept = kept[1:]
    return said if len(said) <= QUESTION_LIMIT else " ".join(kept)


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
    texts = sorted({_end_of(question.question) for question in questions})
    plan = Plan(
        knowledge_base=knowledge_base,
        audience=ensure_audience(),
        seeds=tuple(texts),
        per_seed=0,
        count=len(texts),
        samples=_SAMPLES,
        most_seconds=math.inf,
    )
    for progress in enrich(plan, writer, writing=transaction.atomic):
        if loading:
            loading(progress.seeds, len(texts))
    return knowledge_base
