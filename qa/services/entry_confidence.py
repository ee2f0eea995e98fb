"""Moving the confidence of enriched entries by votes, on record and reversibly.

What a person verified is certain because of that person, and is never moved. Nor is what
people wrote: they are asked to verify it instead.
"""

from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from jobs.run import JobRun
from kb.exceptions import EntryNotFoundError, RevisionConflictError
from kb.models import Entry, EntryQuerySet
from kb.services.entries import edit_entry
from qa.exceptions import NothingToUndoError
from qa.feedback.posterior import Rating, weigh
from qa.models import Answer, AnswerEvidence, ConfidenceMove, Vote

KIND = "qa.weigh_votes"
# Smaller steps are not worth a revision.
_LEAST_STEP = 0.01
_AT_ONCE = 50
_MOVABLE = (Entry.State.PROPOSED, Entry.State.IN_REVIEW, Entry.State.NEEDS_REVIEW)
# Thumbs down that say something about what the answer rests on; one without a reason does.
_AGAINST = [Vote.Reason.WRONG.value, Vote.Reason.OUTDATED.value]


def weigh_votes(run: JobRun) -> dict[str, object]:
    """Weigh the votes on every enriched entry that nobody verified; handler of `KIND`."""
    cited = AnswerEvidence.objects.filter(
        role=AnswerEvidence.Role.CITED, answer__votes__isnull=False
    )
    # Those that were moved are looked at again: votes fade, and are taken back.
    touched = Q(pk__in=cited.values("entry")) | Q(
        pk__in=ConfidenceMove.objects.order_by().values("entry")
    )
    found = _movable().filter(touched).order_by("pk")
    ids = list(found.values_list("pk", flat=True))
    done = int(run.cursor.get("done", 0))
    moved = int(run.cursor.get("moved", 0))
    waiting = [pk for pk in ids if pk > int(run.cursor.get("last", 0))]
    for first in range(0, len(waiting), _AT_ONCE):
        some = waiting[first : first + _AT_ONCE]
        with run.step() as step:
            moved += sum(weigh_entry(pk) is not None for pk in some)
            done += len(some)
            cursor = {"last": some[-1], "done": done, "moved": moved}
            step.advance(done=done, total=len(ids), cursor=cursor)
    return {"entries": done, "moved": moved}


def weigh_entry(entry_id: int, *, at: datetime | None = None) -> ConfidenceMove | None:
    """Bring one entry's confidence to what votes make of it.

    Its revision and its row in the ledger are written together.

    Args:
        at: Now.

    Returns:
        None where nothing was to be moved: also where the entry is verified, a person's,
        retired, or was changed by somebody in this moment.
    """
    entry = _movable().with_revision_number().filter(pk=entry_id).first()
    if entry is None:
        return None
    last = ConfidenceMove.objects.filter(entry=entry).first()
    # Whoever set another confidence since then set another prior.
    is_ours = last is not None and last.after == entry.confidence
    prior = last.prior if last is not None and is_ours else entry.confidence
    found = weigh(prior, _ratings(entry), at=at or timezone.now())
    after = found.confidence
    step = abs(after - entry.confidence)
    if step == 0 or (step < _LEAST_STEP and after != prior):
        return None
    try:
        with transaction.atomic():
            edit_entry(
                entry_id=entry.pk,
                author=None,
                may_verify=False,
                expected_revision=entry.revision_number,
                reason=f"Votes of {found.raters} users.",
                confidence=after,
            )
            return ConfidenceMove.objects.create(
                entry=entry,
                prior=prior,
                before=entry.confidence,
                after=after,
                up=found.up,
                down=found.down,
                raters=found.raters,
            )
    except (EntryNotFoundError, RevisionConflictError):
        return None  # the next run looks again


@transaction.atomic
def undo_moves(entry_id: int, *, by: User, reason: str = "") -> ConfidenceMove:
    """Give an entry the confidence back that it had without votes.

    Votes of until now count no more for it; later ones do.

    Raises:
        NothingToUndoError: Votes have not moved it, or its confidence was set since.
    """
    entry = (
        _movable()
        .with_revision_number()
        .select_for_update(of=("self",))
        .filter(pk=entry_id)
        .first()
    )
    last = ConfidenceMove.objects.filter(entry=entry_id).first()
    if entry is None or last is None or last.is_undo or last.after != entry.confidence:
        raise NothingToUndoError(
            f"Votes have not moved the confidence of entry {entry_id}, or somebody set "
            "it since; change the entry instead."
        )
    edit_entry(
        entry_id=entry.pk,
        author=by,
        may_verify=False,
        expected_revision=entry.revision_number,
        reason=reason or "Took back what votes had made of its confidence.",
        confidence=last.prior,
    )
    return ConfidenceMove.objects.create(
        entry=entry,
        prior=last.prior,
        before=last.after,
        after=last.prior,
        is_undo=True,
        by=by,
        reason=reason,
    )


def _movable() -> EntryQuerySet:
    return Entry.objects.filter(origin=Entry.Origin.ENRICHED, state__in=_MOVABLE).defer(
        "search_vector"
    )


def _ratings(entry: Entry) -> list[Rating]:
    """Return the votes on answers that rest on what the entry says now."""
    cited = AnswerEvidence.objects.filter(
        entry=entry,
        role=AnswerEvidence.Role.CITED,
        revision__text=entry.text,
        revision__question=entry.question,
    ).exclude(answer__channel=Answer.Channel.EVALUATION)
    about = Q(is_up=True) | Q(reasons=[]) | Q(reasons__overlap=_AGAINST)
    votes = Vote.objects.filter(about, answer__in=cited.values("answer"))
    undone = ConfidenceMove.objects.filter(entry=entry, is_undo=True).first()
    if undone is not None:
        votes = votes.filter(updated_at__gt=undone.at)
    rows = votes.order_by().values_list("user_id", "is_up", "updated_at")
    return [Rating(*row) for row in rows]
