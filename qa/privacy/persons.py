"""Export and erasure of everything that names a person or contains their words.

An account is emptied instead of deleted, as others rely on rows that refer to it:
revisions of entries, activations, votes that count. Nothing then shows whose it was.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.acting import as_owner, unrestricted
from accounts.exceptions import ConflictError, NotFoundError
from accounts.models import ApiToken, AuditEntry, Preferences, ProviderAccount
from accounts.services import end_access
from jobs.models import Job
from jobs.run import JobRun
from jobs.services import enqueue
from kb.entries.comments import Comment
from kb.entries.models import Entry, Revision
from kb.entries.wordings import Wording, remove_wordings
from kb.upkeep.models import Flag
from qa.answers.models import Answer
from qa.gaps.escalation_models import Escalation, Notice
from qa.gaps.models import GapQuestion
from qa.inbox.models import InboxMark
from qa.privacy.scrubbing import BATCH, StepMaker, scrub_in_steps
from qa.reviews.models import Review
from qa.votes.models import Vote

KIND: Final = "qa.erase_person"
_NAMES: Final = ("username", "first_name", "last_name", "email")
_SUBJECT: Final = "subject"  # their id at the identity provider
_MASK: Final = ["…", "…"]
_PERSON: Final = (*_NAMES, "is_active", "date_joined", "last_login")


def find_person(name: str) -> User:
    found = User.objects.filter(username=name).first()
    if found is None:
        raise NotFoundError(
            f"There is no user {name!r}. Give the name that they sign in with; upper and "
            "lower case differ."
        )
    return found


def export_person(person: User) -> dict[str, Any]:
    """Return what is stored about a person, for an encoder that handles times and ids.

    Everything is included, whatever the exporting user may see; of entries, only ids.
    """
    with unrestricted("all that is stored of a person"):
        return {
            "exported_at": timezone.now(),
            "person": {
                **{name: getattr(person, name) for name in _PERSON},
                "groups": list(person.groups.values_list("name", flat=True)),
                "knowledge_roles": list(map(str, person.knowledge_roles.all())),
                "expert_for": list(person.expert_tags.values_list("name", flat=True)),
            },
            **{name: list(rows) for name, rows in _rows_of(person).items()},
        }


def counts_of(person: User) -> dict[str, int]:
    """Return how many rows of each kind are stored about a person."""
    return {name: rows.count() for name, rows in _rows_of(person).items()}


def _rows_of(person: User) -> Mapping[str, QuerySet[Any, dict[str, Any]]]:
    mine = {"user": person}
    return {
        "questions": Answer.objects.filter(asker=person).order_by("created_at").values(
            "id", "knowledge_base__slug", "channel", "created_at", "question", "typed",
            "conversation", "language", "refusal_language", "outcome", "shown_reason", "text", "erased_at",
        ),
        "votes": Vote.objects.filter(**mine).values(
            "answer_id", "is_up", "reasons", "comment", "expected_answer",
            "answering_entry_id", "created_at", "updated_at",
        ),
        "escalations": Escalation.objects.filter(Q(raised_by=person) | Q(replied_by=person)).values(
            "id", "answer_id", "note", "state", "reply", "replied_at", "created_at",
        ),
        "reviews": Review.objects.filter(reviewed_by=person).values(
            "id", "answer_id", "completeness", "correctness", "truthfulness",
            "should_be_answered", "ideal_answer", "note", "reviewed_at",
        ),
        "notices": Notice.objects.filter(**mine).values(
            "kind", "answer_id", "entry_id", "created_at", "read_at"
        ),
        "flags": Flag.objects.filter(**mine).values("entry_id", "reasons", "note", "created_at"),
        "comments": Comment.objects.filter(author=person).values(
            "entry_id", "text", "created_at"
        ),
        "wordings": Wording.objects.filter(Q(added_by=person) | Q(text__in=_asked_by(person))).values(
            "entry_id", "text", "created_at"
        ),
        "entries_of_their_questions": _entries_asked_by(person).values(
            "id", "knowledge_base__slug", "state", "created_at"
        ),
        "inbox": InboxMark.objects.filter(**mine).values(
            "kind", "subject", "is_assigned", "snoozed_until", "changed_at"
        ),
        "preferences": Preferences.objects.filter(**mine).values(
            "language", "mails_notices", "alerts"
        ),
        "alerts": person.alerts.values("kind", "mailed_at"),
        "tokens": ApiToken.objects.filter(**mine).values("name", "created", "expiry"),
        "provider_accounts": ProviderAccount.objects.filter(**mine).values(
            "issuer", "subject"
        ),
        "kept_replies": person.kept_replies.values("key", "body", "created_at"),
        "webhook_endpoints": person.endpoints.values("name", "url", "created_at"),
        "revisions_written": Revision.objects.filter(author=person).values(
            "entry_id", "number", "reason", "created_at"
        ),
        "jobs": Job.objects.filter(owner=person).values("id", "kind", "created_at"),
        "changes_of_access": AuditEntry.objects.filter(actor=person.username).values(
            "at", "kind", "action", "subject"
        ),
        "admin_actions": LogEntry.objects.filter(**mine).values("action_time", "object_repr"),
    }  # fmt: skip


def entries_to_look_at(person: User) -> list[int]:
    """Return the ids of entries that may contain a person's words and are not erased.

    Call it before an erasure: entries that only share a question's words are not found
    afterwards.
    """
    return list(_entries_asked_by(person).values_list("pk", flat=True))


def _asked_by(person: User) -> QuerySet[Any, Any]:
    return Answer.objects.filter(asker=person).values("question")


def _entries_asked_by(person: User) -> QuerySet[Entry]:
    """Return entries linked to the person's questions by a reply, a gap or words."""
    sent = Escalation.objects.filter(answer__asker=person)
    gaps = GapQuestion.objects.filter(answer__asker=person)
    return Entry.objects.filter(
        Q(pk__in=sent.values("entry"))
        | Q(pk__in=gaps.values("gap__entry"))
        | Q(question__in=_asked_by(person))
    ).order_by("pk")


def request_erasure(person: User, *, by: User) -> Job:
    """Enqueue the erasure of a person; the job names them only by their id."""
    _refuse_where_kept(person)
    key = f"{KIND} {person.pk}"
    return enqueue(KIND, {"user": person.pk}, owner=by, idempotency_key=key)


def erase_in_background(run: JobRun) -> dict[str, object]:
    """Erase a person, with a step for each batch; the handler of `KIND`."""
    person = User.objects.filter(pk=run.parameters["user"]).first()
    if person is None:
        return {"questions": 0, "entries": []}
    entries = entries_to_look_at(person)
    erased = erase_person(person, step=run.step, done=run.done)
    return {"questions": erased, "entries": entries}


def erase_person(
    person: User, *, step: StepMaker = transaction.atomic, done: int = 0
) -> int:
    """Erase a person's words and names; return how many questions lost their words.

    They are locked out first and lose their name last, so that an interrupted erasure
    is finished by the same call.
    """
    _refuse_where_kept(person)
    with step():
        _lock_out(person)
        remove_wordings(Wording.objects.filter(text__in=_asked_by(person)))
    done = scrub_in_steps(partial(_next_answers, person), step=step, done=done)
    with step():
        _erase_names(person)
    return done


def is_erased(person: User) -> bool:
    return person.username == _pseudonym(person)


def _refuse_where_kept(person: User) -> None:
    if person.is_superuser:
        raise ConflictError(
            f"{person.username} is a superuser; remove that status first."
        )


def _pseudonym(person: User) -> str:
    return f"erased-{person.pk}"


def _lock_out(person: User) -> None:
    person.is_active = person.is_staff = False
    person.set_unusable_password()
    person.save(update_fields=["is_active", "is_staff", "password"])
    end_access(person)
    ProviderAccount.objects.filter(user=person).delete()
    person.endpoints.update(is_active=False)
    # Nobody waits any more for questions that are being decided.
    pending = Answer.objects.filter(asker=person, outcome=Answer.Outcome.PENDING)
    pending.update(outcome=Answer.Outcome.FAILED)


def _next_answers(person: User) -> list[Any]:
    """Return a batch of unerased answers, with their copies asked by evaluations."""
    rows = Answer.objects.erasable().filter(asker=person)
    found = list(rows.values_list("pk", "question")[:BATCH])
    copies = Answer.objects.filter(
        asker__isnull=True,
        channel=Answer.Channel.EVALUATION,
        erased_at__isnull=True,
        question__in={question for _, question in found},
    )
    return [*(pk for pk, _ in found), *copies.values_list("pk", flat=True)]


def _erase_names(person: User) -> None:
    name, pseudonym = person.username, _pseudonym(person)
    Vote.objects.filter(user=person).update(comment="", expected_answer="")
    Escalation.objects.filter(raised_by=person).update(note="")
    Answer.objects.filter(service=name).update(service=pseudonym)
    Flag.objects.filter(user=person).update(note="")
    Comment.objects.filter(author=person).delete()
    InboxMark.objects.filter(user=person).delete()
    Notice.objects.filter(user=person).delete()
    Preferences.objects.filter(user=person).delete()
    person.alerts.all().delete()
    person.kept_replies.all().delete()
    Job.objects.filter(owner=person, finished_at__isnull=False).delete()
    person.groups.clear()
    person.knowledge_roles.all().delete()
    person.user_permissions.clear()
    person.expert_tags.clear()
    person.username, person.last_login = pseudonym, None
    person.first_name = person.last_name = person.email = ""
    person.save()
    of_users = LogEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(User), object_id=str(person.pk)
    )
    of_users.update(object_repr=pseudonym, change_message="")
    with as_owner("an erased person's name in the audit"):
        _erase_from_audit(name, pseudonym)


def _erase_from_audit(name: str, pseudonym: str) -> None:
    """Replace the person in the audit by the pseudonym; mask values that name them."""
    AuditEntry.objects.filter(actor=name).update(actor=pseudonym)
    named = Q(subject__contains=name) | Q(subject__contains=pseudonym)
    for entry in AuditEntry.objects.filter(named).iterator():
        parts = entry.subject.split(", ")
        if not {name, pseudonym} & {*parts}:
            continue
        entry.subject = ", ".join(pseudonym if part == name else part for part in parts)
        named_by = {"user": _NAMES, "sign-in account": (_SUBJECT,)}
        masked = [key for key in named_by.get(entry.kind, ()) if key in entry.changes]
        entry.changes |= dict.fromkeys(masked, _MASK)
        entry.save(update_fields=["subject", "changes"])
