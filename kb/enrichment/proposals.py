"""A model's proposals, written with their entries, and the curators' decisions."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from accounts.prepared import lock_until_commit
from kb.audiences.models import Audience
from kb.conflicts.background import enqueue_entries
from kb.documents.models import KnowledgeBase
from kb.enrichment.agents import SAMPLES, Draft, normalised
from kb.enrichment.forms import PROMPT_VERSION, Writer
from kb.enrichment.models import Proposal
from kb.entries.models import Entry
from kb.entries.services import create_entries, edit_entry
from kb.entries.states import retire_entry, verify_entry
from kb.entries.values import UNVERIFIED_CONFIDENCE, EntryChanges, NewEntry
from kb.exceptions import ProposalDecidedError, ProposalNotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    knowledge_base: KnowledgeBase
    audience: Audience
    seeds: Sequence[str]
    per_seed: int = 3  # questions made from each seed; 0 answers the seeds
    count: int = 100  # most proposals in all
    samples: int = SAMPLES  # further answers, to measure agreement
    seed: int = 0
    most_seconds: float = 6 * 3600  # time after which no batch begins
    job_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class NewProposal:
    draft: Draft
    confidence: float
    nearest: tuple[tuple[int, float], ...] = ()


def question_key(question: str) -> str:
    """Return the digest of the question's words alone, to recognize repetitions."""
    return hashlib.sha256(normalised(question).encode()).hexdigest()


def proposed_keys(knowledge_base: KnowledgeBase, questions: Sequence[str]) -> set[str]:
    rows = Proposal.objects.filter(
        knowledge_base=knowledge_base,
        question_sha256__in=[question_key(question) for question in questions],
    )
    return set(rows.values_list("question_sha256", flat=True))


@transaction.atomic
def create_proposals(
    plan: Plan, writer: Writer, proposals: Sequence[NewProposal]
) -> tuple[Proposal, ...]:
    """Write proposals with their entries; questions already proposed are left out."""
    knowledge_base = plan.knowledge_base
    # Two jobs may propose the same question at the same time.
    lock_until_commit(f"proposals {knowledge_base.slug}")
    keyed = {question_key(new.draft.question): new for new in reversed(proposals)}
    known = proposed_keys(knowledge_base, [new.draft.question for new in proposals])
    wanted = {key: new for key, new in reversed(keyed.items()) if key not in known}
    if not wanted:
        return ()
    entries = create_entries(
        [_entry(new, plan, writer) for new in wanted.values()], author=None
    )
    return tuple(
        Proposal.objects.bulk_create(
            [
                Proposal(
                    knowledge_base=knowledge_base,
                    entry=entry,
                    seed_question=new.draft.seed[:1000],
                    question=new.draft.question,
                    question_sha256=key,
                    answer=new.draft.answer,
                    sentence=entry.text,
                    stated=new.draft.signals.stated,
                    agreement=new.draft.signals.agreement,
                    likelihood=new.draft.signals.likelihood,
                    confidence=new.confidence,
                    model_name=writer.name[:200],
                    model_fingerprint=writer.fingerprint,
                    prompt_version=PROMPT_VERSION,
                    random_seed=plan.seed,
                    nearest=[list(pair) for pair in new.nearest],
                    job_id=plan.job_id,
                )
                for (key, new), entry in zip(wanted.items(), entries, strict=True)
            ]
        )
    )


Decision = Literal["approve", "verify", "reject"]


@transaction.atomic
def decide(
    proposal_id: int,
    *,
    by: User,
    decision: Decision,
    text: str | None = None,
    reason: str = "",
) -> Proposal:
    """Accept a proposed entry into the knowledge base, or retire it.

    Args:
        decision: "approve" puts it in review, with at least the confidence of an
            unverified manual entry; "verify" verifies it in the name of `by`, with
            confidence 1; "reject" retires it, and its question is not proposed again.
        text: Replaces the text of an accepted entry.
    """
    proposal = _lock(proposal_id)
    entry_id = proposal.entry_id
    if decision == "reject":
        retire_entry(
            entry_id=entry_id, by=by, reason=reason or "Rejected a model's proposal."
        )
    else:
        changes: EntryChanges = {} if text is None else {"text": text}
        if decision == "approve":
            changes |= {
                "state": Entry.State.IN_REVIEW,
                "confidence": max(UNVERIFIED_CONFIDENCE, proposal.confidence),
            }
        if changes:
            edit_entry(
                entry_id=entry_id,
                author=by,
                may_verify=False,
                reason=reason or "Approved a model's proposal.",
                **changes,
            )
        if decision == "verify":
            verify_entry(
                entry_id=entry_id,
                by=by,
                reason=reason or "Verified a model's proposal.",
            )
        enqueue_entries([entry_id])
    proposal.refresh_from_db()
    return proposal


def _entry(new: NewProposal, plan: Plan, writer: Writer) -> NewEntry:
    draft = new.draft
    return NewEntry(
        knowledge_base=plan.knowledge_base,
        audience=plan.audience,
        text=draft.sentence or draft.answer,
        question="" if draft.sentence else draft.question,
        origin=Entry.Origin.ENRICHED,
        state=Entry.State.PROPOSED,
        confidence=new.confidence,
        reason=f"Proposed by {writer.name}, {PROMPT_VERSION}, seed {plan.seed}.",
    )


def _lock(proposal_id: int) -> Proposal:
    # The entry first, because every change locks it first.
    Entry.objects.locked().filter(proposal=proposal_id).first()
    proposal = Proposal.objects.filter(pk=proposal_id).first()
    if proposal is None:
        raise ProposalNotFoundError(f"There is no proposal {proposal_id}.")
    if proposal.state != Proposal.State.PROPOSED:
        raise ProposalDecidedError(
            f"Proposal {proposal_id} is already {proposal.get_state_display()}; change "
            f"its entry {proposal.entry_id} instead."
        )
    return proposal
