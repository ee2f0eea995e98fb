"""A proposal goes where its entry goes: one decision, kept in two rows."""

from django.contrib.auth.models import User
from django.utils import timezone

from kb.models import Entry, Proposal


def keep_in_step(entry: Entry, *, by: User | None, reason: str) -> None:
    """Record on an enriched entry's proposal what a person decided about the entry.

    Whichever way it was decided: on the page of proposals, in the entry itself, or by
    REST. Nothing while the entry is still proposed, nor where it was decided before.
    """
    if entry.origin != Entry.Origin.ENRICHED or entry.state == Entry.State.PROPOSED:
        return
    proposal = Proposal.objects.undecided().filter(entry=entry).first()
    if proposal is None:
        return
    if entry.state == Entry.State.RETIRED:
        proposal.state = Proposal.State.REJECTED
    elif (entry.text, entry.question) == (proposal.sentence, ""):
        proposal.state = Proposal.State.APPROVED
    else:
        proposal.state = Proposal.State.EDITED
    proposal.decided_by = by
    proposal.decided_at = timezone.now()
    proposal.reason = reason
    proposal.save(update_fields=["state", "decided_by", "decided_at", "reason"])
