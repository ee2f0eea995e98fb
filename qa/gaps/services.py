"""What experts do with a gap: take it, write what fills it, or say that it is none."""

from typing import Final

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.roles import Role, has_role
from kb.audiences.models import Audience
from kb.enrichment.background import SEED_LIMIT, plan_of, start_enrichment
from kb.entries.models import Entry
from kb.entries.services import create_entry
from qa.answers.submitted_text import checked_text
from qa.exceptions import GapClosedError, GapNotFoundError, InvalidGapError
from qa.gaps.models import Gap
from qa.votes.models import Vote

from .escalations import Kept
from .repeats import start_asking_again

TEXT_LIMIT: Final = 8_000
REASON_LIMIT: Final = 2_000
_SEEDS: Final = 5


@transaction.atomic
def assign(gap_id: int, *, by: User, owner: User | None) -> Gap:
    """Say who works on a gap, or that nobody does.

    Raises:
        InvalidGapError: The owner is no expert.
    """
    gap = _lock(gap_id, by)
    if owner is not None and not has_role(owner, Role.SME):
        raise InvalidGapError(
            f"{owner.get_username()} is no expert; give them the role sme first."
        )
    gap.owner = owner
    gap.save(update_fields=["owner"])
    return gap


@transaction.atomic
def draft(gap_id: int, *, by: User, text: str, kept: Kept, question: str = "") -> Gap:
    """Write the answer as an entry; once verified, the questions are asked again.

    Args:
        question: As the entry puts it; "" for the gap's own.

    Raises:
        InvalidGapError: There is no text, it is too long, or `by` may not verify.
    """
    gap = _open(gap_id, by)
    said = checked_text("answer", text, TEXT_LIMIT, InvalidGapError)
    if not said:
        raise InvalidGapError("The answer is empty; write what fills the gap.")
    if kept.verify and not has_role(by, Role.CURATOR):
        raise InvalidGapError(
            "Only curators verify; draft it without, and it waits for review."
        )
    asked = checked_text("question", question, TEXT_LIMIT, InvalidGapError)
    entry = create_entry(
        knowledge_base=gap.knowledge_base,
        audience=kept.audience,
        question=asked or gap.question,
        text=said,
        author=by,
        origin=Entry.Origin.REVIEW,
        state=Entry.State.IN_REVIEW,
        verify=kept.verify,
        owner=by,
        reason=f"Fills gap {gap.pk}.",
    )
    return _drafted(gap, entry, by)


@transaction.atomic
def link(gap_id: int, *, by: User, entry_id: int) -> Gap:
    """Say that an entry which is there fills the gap.

    Raises:
        InvalidGapError: There is no such entry in the knowledge base, or it is retired.
    """
    gap = _open(gap_id, by)
    found = Entry.objects.visible_to(by).filter(
        pk=entry_id, knowledge_base=gap.knowledge_base_id
    )
    entry = found.defer("search_vector").first()
    if entry is None:
        raise InvalidGapError(
            f"There is no entry {entry_id} in {gap.knowledge_base.name}; name another."
        )
    if entry.state == Entry.State.RETIRED:
        raise InvalidGapError(
            f"Entry {entry_id} is retired; restore it or name another."
        )
    return _drafted(gap, entry, by)


@transaction.atomic
def propose(gap_id: int, *, by: User, audience: Audience) -> Gap:
    """Have enrichment propose entries that answer the gap's newest questions.

    Raises:
        InvalidGapError: `by` is no curator, or proposals are on their way.
    """
    gap = _open(gap_id, by)
    if not has_role(by, Role.CURATOR):
        raise InvalidGapError("Only curators ask for proposals; draft an answer.")
    if gap.state == Gap.State.DRAFTED:
        raise InvalidGapError(
            f"Gap {gap_id} waits for a review already; finish that or reopen the gap."
        )
    asked = gap.members.newest().values_list("answer__question", flat=True)
    seeds = dict.fromkeys(
        " ".join(text.split())[:SEED_LIMIT] for text in (gap.question, *asked[:_SEEDS])
    )
    plan = plan_of(
        knowledge_base=gap.knowledge_base,
        audience=audience,
        seeds=list(seeds),
        per_seed=0,
        most=len(seeds),
    )
    gap.proposing_job_id = start_enrichment(plan, by=by).pk
    gap.entry = None
    return _drafted(gap, None, by)


@transaction.atomic
def dismiss(gap_id: int, *, by: User, reason: str) -> Gap:
    """Say that there is nothing to fill; it goes on counting.

    Raises:
        InvalidGapError: There is no reason, or it is too long or no text.
    """
    gap = _open(gap_id, by)
    said = checked_text("reason", reason, REASON_LIMIT, InvalidGapError)
    if not said:
        raise InvalidGapError("The reason is empty; say why it is no gap.")
    gap.state, gap.reason, gap.closed_at = Gap.State.DISMISSED, said, timezone.now()
    gap.owner = gap.owner or by
    gap.save(update_fields=["state", "reason", "closed_at", "owner"])
    return gap


@transaction.atomic
def reopen(gap_id: int, *, by: User) -> Gap:
    """Open a gap again, whatever was drafted, filled or dismissed."""
    gap = _lock(gap_id, by)
    gap.open_again()
    gap.save()
    return gap


def expected_answers(gap: Gap, viewer: User) -> QuerySet[Vote]:
    """Return the thumbs down on the gap's questions that say what was expected.

    Newest first; none that the viewer may not read.
    """
    votes = Vote.objects.visible_to(viewer).exclude(expected_answer="")
    of_gap = votes.filter(answer__gap_question__gap=gap, is_up=False)
    return of_gap.filter(is_withheld=False).order_by("-updated_at")  # type: ignore[misc]  # annotated by `visible_to`


def _drafted(gap: Gap, entry: Entry | None, by: User) -> Gap:
    """Note what is to fill a gap, and ask again where that is verified already."""
    gap.state, gap.entry, gap.drafted_at = Gap.State.DRAFTED, entry, timezone.now()
    gap.owner = gap.owner or by
    gap.save()
    start_asking_again()
    return gap


def _open(gap_id: int, by: User) -> Gap:
    gap = _lock(gap_id, by)
    if not gap.is_open:
        raise GapClosedError(
            f"Gap {gap_id} is {gap.get_state_display()} already; reopen it first."
        )
    return gap


def _lock(gap_id: int, by: User) -> Gap:
    visible = Gap.objects.visible_to(by).select_related("knowledge_base", "owner")
    locked = visible.select_for_update(of=("self",), no_key=True)
    gap = locked.filter(pk=gap_id).first()
    if gap is None:
        raise GapNotFoundError(f"There is no gap {gap_id}.")
    return gap
