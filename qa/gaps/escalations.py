"""Escalation of a refusal or a wrong answer to an expert, and the expert's reply."""

from uuid import UUID

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.utils import timezone

from accounts.people import person_name
from accounts.roles import Role, has_role_in
from kb.entries.models import Entry
from kb.entries.wordings import confirm_question
from qa.answers.models import Answer
from qa.answers.submitted_text import EntryOptions, checked_text, create_reviewed_entry
from qa.exceptions import (
    AnswerNotFoundError,
    AssignedElsewhereError,
    EscalationClosedError,
    EscalationExistsError,
    EscalationNotFoundError,
    InvalidEscalationError,
)
from qa.gaps.escalation_models import Escalation

from .finding import adopt_replies
from .notices import notify_reply
from .repeats import start_asking_again

DECIDED = (Answer.Outcome.REFUSED, Answer.Outcome.ANSWERED)
NOTE_LIMIT = 2_000
REPLY_LIMIT = 8_000


@transaction.atomic
def escalate(answer_id: UUID, *, user: User, note: str = "") -> Escalation:
    """Send one of the user's own questions, refused or wrongly answered, to experts.

    Raises:
        AnswerNotFoundError: There is no such answer, or somebody else asked.
        InvalidEscalationError: It is not decided, or the note is too long or not text.
        EscalationExistsError: It has already been sent.
    """
    own = Answer.objects.select_for_update().filter(pk=answer_id, asker=user)
    answer = own.first()
    if answer is None:
        raise AnswerNotFoundError(f"There is no answer {answer_id}.")
    if answer.outcome not in DECIDED:
        raise InvalidEscalationError(
            f"Question {answer_id} is {answer.outcome}, neither refused nor answered; ask "
            "it again."
        )
    answer.knowledge_base.check_in_use()
    if Escalation.objects.filter(answer=answer).exists():
        raise EscalationExistsError(
            f"Question {answer_id} was already sent to the experts; wait for the reply."
        )
    said = checked_text("note", note, NOTE_LIMIT, InvalidEscalationError)
    return Escalation.objects.create(answer=answer, raised_by=user, note=said)


@transaction.atomic
def assign(
    escalation_id: int, *, to: User | None, by: User, take_over: bool = True
) -> Escalation:
    """Assign an escalation to one expert, or with None release it to all of them.

    Raises:
        AssignedElsewhereError: `by` would take it from another, without `take_over`.
    """
    escalation = _open(escalation_id, by)
    if to == by and not take_over:
        base = escalation.answer.knowledge_base_id
        check_free(f"Escalation {escalation_id}", escalation.assignee, by, base)
    escalation.assignee = to
    escalation.save(update_fields=["assignee"])
    return escalation


@transaction.atomic
def reply(
    escalation_id: int,
    *,
    by: User,
    text: str = "",
    keep: EntryOptions | None = None,
    entry_id: int | None = None,
) -> Escalation:
    """Reply to the asker and, if `keep` is given, keep the reply as an entry.

    With `entry_id`, an existing entry is the answer: its text is sent where `text` is
    empty, and the question becomes one of its wordings. Once the entry is verified, the
    question is asked again on behalf of its asker.

    Raises:
        InvalidEscalationError: The reply is empty, both `keep` and `entry_id` are
            given, or the entry is not verified, has expired, or is not visible to both
            `by` and the asker.
    """
    escalation = _open(escalation_id, by)
    answer = escalation.answer
    if entry_id is not None:
        if keep is not None:
            raise InvalidEscalationError(
                f"Entry {entry_id} answers it already; leave out the entry or `keep`."
            )
        escalation.entry = _answering(entry_id, answer, by)
        text = text.strip() or escalation.entry.text
        confirm_question(escalation.entry, answer.question, by=by)
    said = _said(text)
    if keep is not None:
        escalation.entry = create_reviewed_entry(
            keep,
            author=by,
            error=InvalidEscalationError,
            knowledge_base=answer.knowledge_base,
            question=answer.question,
            text=said,
            reason=f"Reply to escalated question {answer.pk}.",
        )
    ended = _ended(escalation, Escalation.State.ANSWERED, said, by)
    if ended.entry is not None:
        adopt_replies([ended.answer_id])
        start_asking_again()
    return ended


@transaction.atomic
def close(escalation_id: int, *, by: User, reason: str) -> Escalation:
    """Close an escalation without an answer; the asker reads the reason."""
    escalation = _open(escalation_id, by)
    return _ended(escalation, Escalation.State.CLOSED, _said(reason), by)


def check_free(what: str, holder: User | None, by: User, base: int) -> None:
    """Check that `by` may take a row: no other expert of its knowledge base has it.

    Raises:
        AssignedElsewhereError: Another expert has it.
    """
    if holder is None or holder == by:
        return
    if has_role_in(holder, Role.SME, base):
        raise AssignedElsewhereError(
            f"{what} is assigned to {person_name(holder)}; `take_over` takes it from them."
        )


def mark_read(answer: Answer, *, by: User) -> None:
    unread = Escalation.objects.unread_by(by).filter(answer=answer)
    unread.update(read_at=timezone.now())


def _open(escalation_id: int, by: User) -> Escalation:
    found = (
        Escalation.objects.select_for_update(of=("self",))
        .select_related("answer__knowledge_base")
        .filter(pk=escalation_id)
        .first()
    )
    if found is None or not has_role_in(by, Role.SME, found.answer.knowledge_base_id):
        raise EscalationNotFoundError(f"There is no escalation {escalation_id}.")
    found.answer.knowledge_base.check_in_use()
    if not found.is_open:
        raise EscalationClosedError(
            f"Escalation {escalation_id} is {found.get_state_display()} already."
        )
    return found


def _answering(entry_id: int, answer: Answer, by: User) -> Entry:
    """Return an entry that may be sent as the answer: verified and visible to both."""
    seen = Entry.objects.visible_to(by).filter(knowledge_base=answer.knowledge_base)
    entry = seen.defer("search_vector").filter(pk=entry_id).first()
    if entry is None:
        raise InvalidEscalationError(
            f"There is no entry {entry_id} in {answer.knowledge_base.name}; name another."
        )
    if entry.state == Entry.State.RETIRED:
        raise InvalidEscalationError(
            f"Entry {entry_id} is retired; restore and verify it first, or choose another."
        )
    if entry.state != Entry.State.VERIFIED:
        raise InvalidEscalationError(
            f"Entry {entry_id} is {entry.get_state_display()}, not verified; have it "
            "verified first, choose another or write the reply."
        )
    if entry.has_expired(timezone.now()):
        raise InvalidEscalationError(
            f"Entry {entry_id} has expired; renew it first, or choose another."
        )
    asked = Entry.objects.visible_to(answer.asker or AnonymousUser())
    if not asked.filter(pk=entry_id).exists():
        raise InvalidEscalationError(
            f"The asker may not see entry {entry_id}; choose another or write the reply."
        )
    return entry


def _said(text: str) -> str:
    said = checked_text("reply", text, REPLY_LIMIT, InvalidEscalationError)
    if not said:
        raise InvalidEscalationError(
            "The reply is empty; write something to the asker."
        )
    return said


def _ended(
    escalation: Escalation, state: Escalation.State, said: str, by: User
) -> Escalation:
    escalation.state = state
    escalation.reply = said
    escalation.replied_by = by
    escalation.replied_at = timezone.now()
    escalation.save()
    notify_reply(escalation)
    return escalation
