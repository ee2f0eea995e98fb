"""An entry's own page: its text, source, history and comments, and its actions."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import Exists, F, OuterRef, QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.exceptions import NescioError
from accounts.ids import number_in
from accounts.roles import (
    Role,
    caller,
    has_role_in,
    has_role_somewhere,
    is_live,
    where_role,
)
from accounts.undo import offer_undo
from kb.conflicts.models import Conflict
from kb.documents.models import Section
from kb.entries.comments import COMMENT_LIMIT, Comment, add_comment, delete_comment
from kb.entries.comments import UNDO as UNDO_COMMENT
from kb.entries.models import SERVED_STATES, Entry, Revision
from kb.entries.states import restore_entry, retire_entry
from kb.entries.values import read_validity
from kb.exceptions import CommentNotFoundError, EntryNotFoundError
from kb.upkeep.conflict_resolution import edit_undisputed, verify_undisputed
from kb.upkeep.models import Flag
from kb.upkeep.undoing import KIND as UNDO
from kb.upkeep.undoing import undoable
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.gaps.notices import mark_entry_read
from qa.inbox.services import flag_entry
from qa.votes.models import Vote

from . import parts
from .knowledge_pages import SHOWN

_COMMENTS = 100  # newest ones shown on an entry's page
_ANSWERS = 10  # newest ones shown, among an entry's newest citations
_CITATIONS = 100
_VOTES = 10  # newest thumbs down shown, with their comments


@require_safe
@parts.agents_only
def entry(request: HttpRequest, entry_id: int) -> HttpResponseBase:
    """Show one entry: its text, its source, who is responsible, and its history."""
    found = find_entry(request, entry_id)
    if has_role_somewhere(request.user, Role.SME):
        mark_entry_read(found, by=caller(request))
    return show_entry(request, found)


def show_entry(
    request: HttpRequest, found: Entry, status: int = 200, **said: Any
) -> HttpResponseBase:
    """Return an entry's page; with HTMX, only the part below its header."""
    template = "qa/_entry.html" if is_live(request) else "qa/entry.html"
    context = {**_entry_part(request, found), **said}
    return render(request, template, context, status=status)


def find_entry(request: HttpRequest, entry_id: int) -> Entry:
    rows = Entry.objects.readable_by(request.user).select_related(*SHOWN)
    found = rows.with_revision_number().defer("search_vector").filter(pk=entry_id)
    entry = found.first()
    if entry is None:
        msg = (
            "This entry does not exist, is not in use any more, or you may not see it."
        )
        raise Http404(msg)
    return entry


def _entry_part(request: HttpRequest, found: Entry) -> dict[str, object]:
    revisions = Revision.objects.visible_to(request.user).filter(entry=found)
    at = timezone.now()
    is_in_use = found.knowledge_base.archived_at is None
    due = found.upkeep.reasons(at) if is_in_use else ()
    base = found.knowledge_base_id
    is_curator = is_in_use and has_role_in(request.user, Role.CURATOR, base)
    may_curate = parts.may_curate(request, base)
    is_expert = has_role_in(request.user, Role.SME, base)
    citing = _newest_citing(found) if is_expert else []
    return {
        "entry": found,
        "path": _path(found.section),
        "due": due,
        "flags": Flag.objects.open().filter(entry=found).select_related("user"),
        "votes": _votes_against(request, citing) if is_expert else [],
        "may_flag": is_in_use and found.state in SERVED_STATES,
        **parts.flag_part(),
        # Verifying an expired entry would leave it expired: it needs a new date.
        "is_to_confirm": is_curator
        and found.state != Entry.State.RETIRED
        and not found.has_expired(at)
        and (found.state != Entry.State.VERIFIED or bool(due)),
        "may_change": is_curator and found.state != Entry.State.RETIRED,
        "may_restore": is_curator and found.state == Entry.State.RETIRED,
        "comments": _comments(request, found),
        "comment_limit": COMMENT_LIMIT,
        "revisions": revisions.select_related("author").order_by("-number")[:20],
        "at": at,
        "may_curate": may_curate,
        "conflicts": _conflicts(request, found) if may_curate else [],
        "answers": _answers(request, citing) if is_expert else [],
    }


def _votes_against(request: HttpRequest, citing: list[UUID]) -> QuerySet[Vote]:
    """Return the newest open thumbs down on answers, with their comments.

    Only from knowledge bases where the user is an expert, and on answers that the user
    may read in full.
    """
    newest = (
        Vote.objects.visible_to(request.user)
        .open()
        .filter(
            where_role(request.user, Role.SME, "answer__knowledge_base"),
            answer__in=citing,
            answer__erased_at__isnull=True,
            is_up=False,
        )
    )
    whole = newest.filter(is_withheld=False)  # type: ignore[misc]  # annotated by `visible_to`
    return whole.select_related("answer", "user").order_by("-updated_at")[:_VOTES]


def _newest_citing(found: Entry) -> list[UUID]:
    """Return the ids of the answers with the newest citations of an entry."""
    cited = AnswerEvidence.objects.filter(entry=found, role=AnswerEvidence.Role.CITED)
    # Ordered by an expression, for which there is no index, so that PostgreSQL reads
    # the entry's own rows instead of scanning all rows from the newest.
    newest = cited.order_by((F("pk") + 0).desc()).values_list("answer", flat=True)
    return list(newest[:_CITATIONS])


def _answers(request: HttpRequest, citing: list[UUID]) -> QuerySet[Answer]:
    """Return the newest of the answers that the user may read in full.

    Annotated with whether anybody voted up (`is_up`) or down (`is_down`).
    """
    votes = Vote.objects.filter(answer=OuterRef("pk"))
    rows = Answer.objects.visible_to(request.user).live()
    rows = rows.filter(pk__in=citing, erased_at__isnull=True)
    whole = rows.filter(is_withheld=False)  # type: ignore[misc]  # annotated by `visible_to`
    marked = whole.annotate(
        is_up=Exists(votes.filter(is_up=True)),
        is_down=Exists(votes.filter(is_up=False)),
    )
    shown = marked.only("question", "outcome", "gate", "created_at")
    return shown.order_by("-created_at")[:_ANSWERS]


def _conflicts(request: HttpRequest, found: Entry) -> list[tuple[Conflict, Entry]]:
    """Return an entry's open conflicts, each with the other entry."""
    rows = Conflict.objects.open().of_entry(found.pk).visible_to(request.user)
    rows = rows.select_related("first", "second").order_by("kind", "pk")
    return [
        (row, row.second if row.first_id == found.pk else row.first)
        for row in rows.defer("first__search_vector", "second__search_vector")
    ]


def _comments(request: HttpRequest, found: Entry) -> list[tuple[Comment, bool]]:
    """Return an entry's last comments, oldest first, and whether the user may delete each."""
    rows = Comment.objects.filter(entry=found).select_related("author")
    newest = rows.order_by("-created_at", "-pk")[:_COMMENTS]
    user = caller(request)
    for row in newest:
        row.entry = found
    return [(row, row.is_deletable_by(user)) for row in reversed(newest)]


@require_POST
@parts.agents_only
def comment(request: HttpRequest, entry_id: int) -> HttpResponseBase:
    """Add a comment below an entry."""
    found = find_entry(request, entry_id)
    text = request.POST.get("text", "")
    try:
        add_comment(entry_id=found.pk, by=caller(request), text=text)
    except NescioError as refused:
        return show_entry(
            request, found, status=422, comment_error=str(refused), typed=text
        )
    return redirect(reverse("entry", args=[found.pk]) + "#comments")


@require_POST
@parts.agents_only
def uncomment(request: HttpRequest, comment_id: int) -> HttpResponseBase:
    """Delete a comment: the user's own or, as a curator, any."""
    try:
        before = delete_comment(comment_id=comment_id, by=caller(request))
    except CommentNotFoundError as missing:
        raise Http404(str(missing)) from missing
    page = reverse("entry", args=[before["entry"]])
    offer_undo(
        request,
        "Comment deleted.",
        kind=UNDO_COMMENT,
        before=before,
        back=f"{page}#comments",
        is_focused=True,
    )
    return redirect(page)  # the message is shown at the top


@require_POST
@parts.agents_only
def flag(request: HttpRequest, entry_id: int) -> HttpResponseBase:
    """Flag an entry as wrong or outdated, from its own page or from an answer's evidence."""
    reasons, note = request.POST.getlist("reasons"), request.POST.get("note", "")
    error = ""
    try:
        flag_entry(entry_id=entry_id, by=caller(request), reasons=reasons, note=note)
    except EntryNotFoundError as missing:
        raise Http404(str(missing)) from missing
    except NescioError as refused:
        error = str(refused)
    if not is_live(request) and not error:
        return redirect(reverse("entry", args=[entry_id]) + "#flags")
    context = {
        "entry_id": entry_id,
        "chosen": reasons,
        "note": note,
        "error": error,
        "is_flagged": not error,
        **parts.flag_part(),
    }
    response = render(request, "qa/_flag.html", context, status=422 if error else 200)
    if not error:
        response["HX-Trigger"] = "inbox-changed"  # the entry is in the inbox now
    return response


@require_POST
@parts.agents_only
def still_true(request: HttpRequest, entry_id: int) -> HttpResponseBase:
    """Verify an entry, or verify it again so that it is no longer due."""
    return _change(
        request, entry_id, verify_undisputed, "Verified.", reason="Still true."
    )


@require_POST
@parts.agents_only
def validity(request: HttpRequest, entry_id: int) -> HttpResponseBase:
    """Set the last day on which an entry is valid, or remove its end of validity."""
    day = request.POST.get("valid_until", "")

    def change(**shown: Any) -> Entry:
        return edit_undisputed(valid_until=read_validity(day), **shown)

    said = f"Valid until {day}." if day else "Valid without end."
    return _change(request, entry_id, change, said)


@require_POST
@parts.agents_only
def retire(request: HttpRequest, entry_id: int) -> HttpResponseBase:
    """Retire an entry; its page then offers to restore it."""
    return _change(request, entry_id, retire_entry, "Retired.")


@require_POST
@parts.agents_only
def restore(request: HttpRequest, entry_id: int) -> HttpResponseBase:
    """Restore a retired entry as it was before."""
    return _change(request, entry_id, restore_entry, "Restored.")


def _change(
    request: HttpRequest,
    entry_id: int,
    change: Callable[..., Entry],
    said: str,
    reason: str = "",
) -> HttpResponseBase:
    """Change the revision that the curator was shown, and offer to undo the change.

    Args:
        reason: Recorded if the entry is verified.
    """
    found, by = find_curated(request, entry_id), caller(request)
    why = reason if found.state == Entry.State.VERIFIED else ""
    expected = number_in(request.POST.get("revision", ""))
    try:
        _, before = undoable(
            lambda: change(
                entry_id=found.pk, by=by, expected_revision=expected, reason=why
            ),
            found.pk,
            by=by,
        )
    except NescioError as refused:
        return show_entry(request, found, status=refused.status, error=str(refused))
    back = reverse("entry", args=[found.pk])
    offer_undo(
        request,
        said,
        kind=UNDO,
        before=before,
        back=back,
        is_focused=change is retire_entry,
    )
    return redirect(back)


def find_curated(request: HttpRequest, entry_id: int) -> Entry:
    """Return an entry that the user may change; raise PermissionDenied for others."""
    refusal = "Only a curator can change an entry."
    if not has_role_somewhere(request.user, Role.CURATOR):
        raise PermissionDenied(refusal)
    found = find_entry(request, entry_id)
    if not has_role_in(request.user, Role.CURATOR, found.knowledge_base_id):
        raise PermissionDenied(refusal)
    return found


def _path(section: Section | None) -> list[Section]:
    """Return a section's ancestors and the section itself, the uppermost first."""
    path: list[Section] = []
    while section is not None:
        path.insert(0, section)
        section = section.parent
    return path
