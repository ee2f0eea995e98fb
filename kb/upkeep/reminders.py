"""Emails that remind owners of due entries: one digest each, every event once.

Reminders are written in the transaction that sends the email. If sending fails, the job
tries again; a worker killed before the commit may send one digest twice, but none is
lost.
"""

from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from accounts.acting import acting_for
from jobs.mail import mail_to
from jobs.run import JobRun
from kb.entries.models import Entry, EntryQuerySet
from kb.upkeep.models import Reminder

KIND = "kb.remind_owners"
NAMED = 20  # entries that an email names; the others are counted

_MAX_EVENTS = 10_000  # events per email; the rest come with the next


def remind_owners(run: JobRun) -> dict[str, object]:
    """Send each owner one email on entries that came due since the last, one per step.

    The handler of jobs of the kind "kb.remind_owners". Skips owners without an address
    or who want no emails, and entries that an owner may not see.
    """
    after: int = run.cursor.get("after", 0)
    mails: int = run.cursor.get("mails", 0)
    reminded: int = run.cursor.get("reminded", 0)
    owners = User.objects.filter(is_active=True, pk__gt=after).exclude(email="")
    owners = owners.exclude(preferences__mails_notices=False)
    owners = owners.filter(Exists(Entry.objects.filter(owner=OuterRef("pk"))))
    for owner in owners.order_by("pk"):
        with run.step() as step, acting_for(owner):
            count = remind(owner, at=timezone.now())
            mails, reminded = mails + bool(count), reminded + count
            cursor = {"after": owner.pk, "mails": mails, "reminded": reminded}
            step.advance(done=mails, cursor=cursor)
    return {"mails": mails, "entries": reminded}


def remind(owner: User, *, at: datetime) -> int:
    """Send `owner` one email on entries due by `at`; return the number of entries.

    Must be called in a transaction, which includes the email. An address that the mail
    server rejects permanently is logged, and counts as reminded.
    """
    rows = _due_unreminded(owner, at).in_queue_order().select_related("upkeep")
    entries = list(rows.defer("search_vector")[:_MAX_EVENTS])
    if not entries:
        return 0
    made = Reminder.objects.bulk_create(
        [
            Reminder(entry=entry, owner=owner, due_at=entry.upkeep.due_at)
            for entry in entries
        ],
        batch_size=1_000,
    )
    return len(made) if _mail(owner, entries, at) else 0


def _due_unreminded(owner: User, at: datetime) -> EntryQuerySet:
    reminded = Reminder.objects.filter(
        entry=OuterRef("pk"), owner=owner, due_at=OuterRef("upkeep__due_at")
    )
    mine = Entry.objects.visible_to(owner).filter(~Exists(reminded), owner=owner)
    return mine.due(at)


def _mail(owner: User, entries: Sequence[Entry], at: datetime) -> bool:
    queue = f"{settings.PUBLIC_URL}{reverse('admin:kb_entry_due')}?whose=mine"
    context = {
        "owner": owner,
        "lines": [(entry.said, entry.upkeep.reasons(at)) for entry in entries[:NAMED]],
        "more": max(len(entries) - NAMED, 0),
        "queue": queue,
    }
    noun = "entry is" if len(entries) == 1 else "entries are"
    return mail_to(
        owner,
        subject=f"{len(entries)} {noun} due for review",
        body=render_to_string("kb/reminder.txt", context),
    )
