"""Enriching a knowledge base from seed questions, and the confidence of the proposals.

With enough decisions by curators the confidence is a logistic curve over the three
signals, otherwise the least of them, scaled down.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from django.db.models import Q
from pgvector.django import L2Distance

from kb.audiences.models import Audience
from kb.embedding.embedder import get_embedder
from kb.embedding.models import EntryEmbedding
from kb.embedding.services import active_model
from kb.enrichment import agents
from kb.enrichment.forms import PROMPT_VERSION, Writer
from kb.enrichment.models import Proposal
from kb.entries.models import Entry
from kb.text.terms import same_numbers_and_denial

from .proposals import NewProposal, Plan, create_proposals, proposed_keys, question_key

MIN_DECISIONS: Final = 50
"""Decisions needed before they count, with at least a fifth of them of either kind."""
MAX_FITTED_CONFIDENCE: Final = 0.95
_MAX_DECISIONS: Final = 5_000  # the latest; the model stays the same, people may not
_MIN_OF_EITHER: Final = MIN_DECISIONS // 5


@dataclass(frozen=True, slots=True)
class Trust:
    """Maps signals to a confidence; by a fixed rule if there are no weights."""

    decisions: int
    weights: tuple[float, ...] | None = None

    def confidence(self, signals: agents.Signals) -> float:
        if self.weights is None:
            return agents.unreviewed_confidence(signals)
        odds = self.weights[0] + float(np.dot(self.weights[1:], _features(signals)))
        share = 1 / (1 + float(np.exp(-odds)))
        return min(MAX_FITTED_CONFIDENCE, max(agents.MIN_CONFIDENCE, share))


def fit_trust(model_fingerprint: str) -> Trust:
    """Return how far a model's proposals can be trusted, from curators' decisions.

    An edited proposal counts as one that was wrong.
    """
    decided = (
        Proposal.objects.decided()
        .filter(model_fingerprint=model_fingerprint, prompt_version=PROMPT_VERSION)
        .order_by("-decided_at")
        .values_list("stated", "agreement", "likelihood", "state")[:_MAX_DECISIONS]
    )
    rows = [
        (_features(agents.Signals(stated, agreement, likelihood)), state)
        for stated, agreement, likelihood, state in decided
    ]
    right = np.asarray([state == Proposal.State.APPROVED for _, state in rows])
    few = min(int(right.sum()), len(rows) - int(right.sum()))
    if len(rows) < MIN_DECISIONS or few < _MIN_OF_EITHER:
        return Trust(0)
    # Importing it takes a second, which is only worth it with enough decisions.
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    fitted = LogisticRegression(C=1.0, max_iter=1_000)
    fitted.fit(np.asarray([features for features, _ in rows]), right)
    weights = (float(fitted.intercept_[0]), *map(float, fitted.coef_[0]))
    return Trust(len(rows), weights)


def _features(signals: agents.Signals) -> tuple[float, float, float, float]:
    """Return the signals; a model without likelihoods gets its own constant."""
    has_likelihood = signals.likelihood is not None
    return (
        signals.stated,
        signals.agreement,
        signals.likelihood or 0.0,
        1.0 if has_likelihood else 0.0,
    )


MAX_SEEDS: Final = 2_000
MAX_PROPOSALS: Final = 10_000
MAX_PER_SEED: Final = 20
MAX_SAMPLES: Final = 20
# A text that says the same as an entry is closer to it: a cosine above 0.97.
_SAME_DISTANCE: Final = 0.25
_NEAREST: Final = 3
_QUESTIONS_AT_ONCE: Final = 16


@dataclass(slots=True)
class Progress:
    """The progress of an enrichment; `counts` is what was left out, by cause."""

    seeds: int = 0
    proposed: int = 0
    counts: Counter[str] = field(default_factory=Counter)


Writing = Callable[[], AbstractContextManager[object]]


def enrich(
    plan: Plan, writer: Writer, *, writing: Writing, after: Progress | None = None
) -> Iterator[Progress]:
    """Propose entries, yielding the progress after every batch.

    An interrupted run continues when it is started again with the same plan: no
    question is proposed twice, and none that was proposed is answered again.

    Args:
        writing: Opens the transaction in which a batch's rows are written.
        after: The progress of an earlier attempt; it is updated in place.
    """
    progress = after or Progress()
    trust = fit_trust(writer.fingerprint)
    began = time.monotonic()
    at_once = max(1, _QUESTIONS_AT_ONCE // max(1, plan.per_seed))
    while progress.seeds < len(plan.seeds) and progress.proposed < plan.count:
        if time.monotonic() - began > plan.most_seconds:
            return
        seeds = plan.seeds[progress.seeds : progress.seeds + at_once]
        drafts, counts = _drafts(plan, writer, seeds, progress)
        proposals = _proposals(plan, drafts, trust, counts)
        with writing():
            made = create_proposals(plan, writer, proposals)
            counts["repeated"] += len(proposals) - len(made)
            progress.seeds += len(seeds)
            progress.proposed += len(made)
            progress.counts += counts
        yield progress


def _drafts(
    plan: Plan, writer: Writer, seeds: Sequence[str], progress: Progress
) -> tuple[tuple[agents.Draft, ...], Counter[str]]:
    seed = plan.seed + progress.seeds
    generated, counts = agents.generate_questions(
        writer, seeds, per_seed=plan.per_seed, seed=seed
    )
    known = proposed_keys(plan.knowledge_base, [one.question for one in generated])
    new = {question_key(one.question): one for one in reversed(generated)}
    wanted: list[agents.SeededQuestion] = [
        one for key, one in reversed(new.items()) if key not in known
    ]
    counts["repeated"] += len(generated) - len(wanted)
    wanted = wanted[: plan.count - progress.proposed]
    if not wanted:
        return (), counts
    drafts = agents.answer(
        writer,
        get_embedder(active_model()).encode,
        wanted,
        samples=plan.samples,
        seed=seed,
    )
    return drafts.made, counts + drafts.counts


def _proposals(
    plan: Plan, drafts: Sequence[agents.Draft], trust: Trust, counts: Counter[str]
) -> list[NewProposal]:
    """Leave out drafts covered by an entry or by an earlier draft of the batch."""
    if not drafts:
        return []
    model = active_model()
    vectors = get_embedder(model).encode([draft.said for draft in drafts])
    kept: list[tuple[str, np.ndarray]] = []
    proposals = []
    for draft, vector in zip(drafts, vectors, strict=True):
        nearest = _nearest(plan, vector, model.pk)
        said = [(text, distance) for _, text, distance in nearest]
        said += [(text, float(np.linalg.norm(vector - v))) for text, v in kept]
        if any(
            distance < _SAME_DISTANCE and same_numbers_and_denial(draft.said, text)
            for text, distance in said
        ):
            counts["known"] += 1
            continue
        kept.append((draft.said, vector))
        proposals.append(
            NewProposal(
                draft,
                trust.confidence(draft.signals),
                tuple((pk, round(distance, 4)) for pk, _, distance in nearest),
            )
        )
    return proposals


def _nearest(
    plan: Plan, vector: np.ndarray, model_id: int
) -> list[tuple[int, str, float]]:
    """Return the nearest entries visible to the plan's audience: id, text, distance.

    The knowledge of other audiences must not leak. Entries that a curator rejected
    count as known, other retired entries do not.
    """
    seen = Audience.objects.filter(Q(pk=plan.audience.pk) | Q(everyone=True))
    rows = (
        EntryEmbedding.objects.filter(
            model_id=model_id,
            part=EntryEmbedding.Part.FIRST,
            entry__knowledge_base=plan.knowledge_base,
            entry__audience__in=seen,
        )
        .exclude(
            ~Q(entry__origin=Entry.Origin.ENRICHED), entry__state=Entry.State.RETIRED
        )
        .annotate(distance=L2Distance("vector", vector))
        .order_by("distance", "entry_id")
    )
    return list(rows.values_list("entry_id", "entry__text", "distance")[:_NEAREST])
