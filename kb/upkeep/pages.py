"""The admin page of entries due for review, with their reasons and actions."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from accounts.base_admin import OPEN
from accounts.exceptions import NescioError
from accounts.ids import number_in
from accounts.people import by_name, find_person, person_name
from accounts.roles import Role, caller, has_role_in, has_role_somewhere
from accounts.undo import offer_undo
from kb.documents.models import KnowledgeBase
from kb.entries.due import LABELS, Place, Reason
from kb.entries.models import Entry
from kb.entries.services import edit_entry
from kb.entries.states import retire_entry
from kb.entries.values import read_validity
from kb.exceptions import ConflictOpenError, InvalidKnowledgeError
from kb.interface.choices import base_choices
from kb.upkeep.conflict_resolution import edit_undisputed, verify_undisputed
from kb.upkeep.services import COUNTED, due_entries, postpone_review, read_page, sizes
from kb.upkeep.undoing import KIND as UNDO
from kb.upkeep.undoing import undoable

PAGE = 25
PERIODS = ((7, "a week"), (30, "a month"), (90, "a quarter"))
_OFFERED_OWNERS = 200


@dataclass(frozen=True, slots=True)
class _Choice:
    mine: bool
    reason: Reason | None
    base: KnowledgeBase | None
    after: Place | None

    def query(self, **changes: object) -> str:
        chosen = {
            "whose": "mine" if self.mine else "all",
            "reason": self.reason.value if self.reason else "",
            **({"base": self.base.slug} if self.base else {}),
            **changes,
        }
        return "?" + urlencode(chosen)


def due_page(model_admin: Any, request: HttpRequest) -> HttpResponse:
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    user = caller(request)
    choice = _read_choice(request)
    if request.method == "POST":
        if not model_admin.has_change_permission(request):
            raise PermissionDenied
        return _act(model_admin, request, user)
    now = timezone.now()
    entries = due_entries(
        user, at=now, mine=choice.mine, reason=choice.reason, base=choice.base
    )
    page = read_page(entries, size=PAGE, after=choice.after)
    counts = sizes(user, at=now, mine=choice.mine, base=choice.base)
    may_change = model_admin.has_change_permission(request)
    following = page.following
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.model._meta,
        "title": "Due for review",
        "rows": [(entry, entry.upkeep.reasons(now)) for entry in page.entries],
        "choice": choice,
        "whose": [
            ("All", choice.query(whose="all"), not choice.mine),
            ("Mine", choice.query(whose="mine"), choice.mine),
        ],
        "bases": base_choices(user, choice.base, lambda slug: choice.query(base=slug)),
        "reasons": [
            ("any reason", None, choice.query(reason=""), choice.reason is None),
            *(
                (
                    LABELS[reason],
                    f"{count}+" if count == COUNTED else str(count),
                    choice.query(reason=reason.value),
                    choice.reason == reason,
                )
                for reason, count in counts.items()
            ),
        ],
        "next": choice.query(after=following.token()) if following else "",
        "first": choice.query() if choice.after else "",
        "may_change": may_change,
        "may_verify": has_role_somewhere(user, Role.CURATOR),
        "periods": PERIODS,
        "today": timezone.localdate(now),
        "owners": _owners() if may_change else [],
    }
    return TemplateResponse(request, "admin/kb/entry/due.html", context)


def _read_choice(request: HttpRequest) -> _Choice:
    query = request.GET
    reason = query.get("reason", "")
    if reason and reason not in LABELS:
        raise Http404(f"There is no reason {reason[:20]!r}.")
    after = query.get("after", "")
    try:
        place = Place.read(after) if after else None
    except ValueError as error:
        raise Http404(str(error)) from error
    slug = query.get("base", "")
    base = KnowledgeBase.objects.filter(slug=slug).first() if slug else None
    if slug and base is None:
        raise Http404(f"There is no knowledge base {slug[:50]!r}.")
    return _Choice(
        query.get("whose") == "mine", Reason(reason) if reason else None, base, place
    )


def _owners() -> list[User]:
    staff = User.objects.filter(is_active=True, is_staff=True)
    return list(by_name(staff)[:_OFFERED_OWNERS])


def _act(model_admin: Any, request: HttpRequest, user: User) -> HttpResponse:
    posted = request.POST
    entry = _find_entry(user, posted.get("entry", ""))
    back = request.get_full_path()
    try:
        done, before = undoable(lambda: _do(user, entry, posted), entry.pk, by=user)
    except ConflictOpenError as error:
        address = f"{reverse('admin:kb_conflict_changelist')}?{OPEN}"
        linked = '{} <a class="underline" href="{}">Open conflicts</a>'
        said_so = format_html(linked, str(error), address)
        model_admin.message_user(request, said_so, level=messages.ERROR)
    except NescioError as error:
        model_admin.message_user(request, str(error), level=messages.ERROR)
    else:
        offer_undo(
            request,
            f"{done}: {entry.said}",
            kind=UNDO,
            before=before,
            back=back,
            is_focused=posted.get("action") == "retire",
        )
    return HttpResponseRedirect(back)


def _find_entry(user: User, key: str) -> Entry:
    found = Entry.objects.visible_to(user).filter(pk=number_in(key) or 0)
    entry = found.defer("search_vector").first()
    if entry is None:
        raise Http404(f"There is no entry {key[:20]!r}.")
    return entry


def _do(user: User, entry: Entry, posted: Any) -> str:
    action = posted.get("action", "")
    expected = _number(posted.get("revision", ""), "revision")
    is_curator = has_role_in(user, Role.CURATOR, entry.knowledge_base_id)
    if action in {"verify", "set_validity"} and not is_curator:
        raise InvalidKnowledgeError("action", "Verifying needs the role curator.")
    if action == "verify":
        verify_undisputed(entry_id=entry.pk, by=user, expected_revision=expected)
        return "Still true"
    if action == "set_validity":
        day = posted.get("valid_until", "")
        edit_undisputed(
            entry_id=entry.pk,
            by=user,
            valid_until=read_validity(day),
            expected_revision=expected,
        )
        return f"Valid until {day}" if day else "Valid without end"
    if action == "retire":
        retire_entry(entry_id=entry.pk, by=user, expected_revision=expected)
        return "Retired"
    if action == "postpone":
        days = _number(posted.get("days", ""), "days")
        postpone_review(entry_id=entry.pk, by=user, days=days)
        return f"Postponed by {days} days"
    if action == "hand_over":
        name = posted.get("owner", "").strip()
        owner = find_person(name)
        if owner is None:
            raise InvalidKnowledgeError(
                "owner", f"There is no user {name!r}; give the name of an active one."
            )
        edit_entry(
            entry_id=entry.pk,
            author=user,
            may_verify=False,
            expected_revision=expected,
            owner=owner,
        )
        return f"Handed over to {person_name(owner)}"
    raise InvalidKnowledgeError("action", f"There is no action {action[:20]!r}.")


def _number(value: str, field: str) -> int:
    number = number_in(value)
    if number is None:
        raise InvalidKnowledgeError(field, f"{field} {value[:20]!r} is not a number.")
    return number
