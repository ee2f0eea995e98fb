"""The history of an entry in the admin: its revisions, compared and restored."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import QuerySet, Window
from django.db.models.functions import Lag
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from unfold.admin import TabularInline

from accounts.base_admin import BaseAdmin, nobody
from accounts.exceptions import NescioError
from accounts.ids import number_in
from accounts.people import person_name
from accounts.roles import Role, caller, has_role_in
from kb.audiences.models import Audience
from kb.entries.models import Entry, Revision, RevisionQuerySet
from kb.entries.states import restore_revision
from kb.entries.values import REVISED


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of words: "same", "gone" (only in the old text) or "new"."""

    kind: str
    text: str


def word_difference(old: str, new: str) -> tuple[Piece, ...]:
    """Return the pieces of both texts in reading order, without omissions."""
    return tuple(_pieces(_words(old), _words(new)))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+\s*|[^\w\s]\s*|\s+", text)


def _pieces(old: list[str], new: list[str]) -> Iterator[Piece]:
    # autojunk ignores very frequent words in texts of 200 words and more: without it, a
    # text that repeats one word takes many seconds.
    matcher = SequenceMatcher(None, old, new, autojunk=True)
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag == "equal":
            yield Piece("same", "".join(old[old_from:old_to]))
            continue
        if old_from < old_to:
            yield Piece("gone", "".join(old[old_from:old_to]))
        if new_from < new_to:
            yield Piece("new", "".join(new[new_from:new_to]))


class RevisionInline(TabularInline):  # type: ignore[misc]  # unfold ships no types
    model = Revision
    fields = [
        "number", "created_at", "author", "state", "confidence", "text", "reason",
        "compared",
    ]  # fmt: skip
    readonly_fields = fields
    extra = 0
    can_delete = False
    per_page = 20
    has_add_permission = has_change_permission = nobody

    def get_queryset(self, request: HttpRequest) -> QuerySet[Revision]:
        revisions: RevisionQuerySet = super().get_queryset(request)
        revisions = revisions.visible_to(request.user)
        before = Window(Lag("number"), partition_by="entry", order_by="number")
        with_before = revisions.select_related("author").annotate(before=before)
        return with_before.order_by("-number")

    @admin.display(description="changes")
    def compared(self, revision: Revision) -> str:
        before: int | None = revision.before  # type: ignore[attr-defined]  # annotated
        if before is None:  # the first that the user may see
            return ""
        address = reverse("admin:kb_entry_compare", args=[revision.entry_id])
        return format_html(
            '<a class="underline" href="{}?old={}&new={}">with {}</a>',
            address,
            before,
            revision.number,
            before,
        )


_PER_PAGE = 50


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    old: str
    new: str

    @property
    def differs(self) -> bool:
        return self.old != self.new


@dataclass(frozen=True, slots=True)
class _Sides:
    name: str
    pieces: tuple[Piece, ...]

    @property
    def old(self) -> tuple[Piece, ...]:
        return tuple(piece for piece in self.pieces if piece.kind != "new")

    @property
    def new(self) -> tuple[Piece, ...]:
        return tuple(piece for piece in self.pieces if piece.kind != "gone")


class HistoryPages(BaseAdmin):
    def history_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        entry = self._visible_entry(request, object_id)
        pages = Paginator(_revisions(entry, request), _PER_PAGE)
        page = pages.get_page(request.GET.get("page"))
        numbers = [revision.number for revision in page.object_list]
        context = {
            "title": "History",
            "page": page,
            "newest": entry.revisions.values_list("number", flat=True).first(),
            "chosen_new": numbers[0] if numbers else None,
            "chosen_old": numbers[1] if len(numbers) > 1 else None,
        }
        return self._page(request, entry, "history", context)

    def compare(self, request: HttpRequest, entry_id: int) -> HttpResponse:
        entry = self._visible_entry(request, str(entry_id))
        numbers = list(_revisions(entry, request).values_list("number", "created_at"))
        newest = numbers[0][0]
        old = _chosen(entry, request, request.GET.get("old", str(numbers[-1][0])))
        new = _chosen(entry, request, request.GET.get("new", str(newest)))
        audiences = Audience.objects.visible_to(request.user)
        visible = set(audiences.values_list("pk", flat=True))
        texts = [_Sides("Text", word_difference(old.text, new.text))]
        if old.question or new.question:
            question = word_difference(old.question, new.question)
            texts.insert(0, _Sides("Question", question))
        sides = zip(_facts(old, visible), _facts(new, visible), strict=True)
        context = {
            "title": "Compare revisions",
            "numbers": numbers,
            "newest": newest,
            "old": old,
            "new": new,
            "texts": texts,
            "rows": [_Row(one[0], one[1], other[1]) for one, other in sides],
        }
        return self._page(request, entry, "compare", context)

    def restore_revision(
        self, request: HttpRequest, entry_id: int, number: int
    ) -> HttpResponse:
        entry = self._visible_entry(request, str(entry_id))
        if not self.has_change_permission(request, entry):
            raise PermissionDenied
        back = reverse("admin:kb_entry_history", args=[entry.pk])
        if request.method == "POST":
            try:
                restore_revision(
                    entry_id=entry.pk,
                    number=number,
                    by=caller(request),
                    may_verify=has_role_in(
                        request.user, Role.CURATOR, entry.knowledge_base_id
                    ),
                )
            except NescioError as error:
                self.message_user(request, str(error), messages.ERROR)
            else:
                done = f"The entry was restored to revision {number}."
                self.message_user(request, done, messages.SUCCESS)
            return redirect(back)
        revision = _chosen(entry, request, str(number))
        context = {
            **self.admin_site.each_context(request),
            "title": f"Restore revision {number}? Audience and owner stay as they are. "
            "The entry will say:",
            "subject": " ".join([revision.question, revision.text]).strip(),
            "back": back,
        }
        return TemplateResponse(request, "admin/confirm_action.html", context)

    def _visible_entry(self, request: HttpRequest, object_id: str) -> Entry:
        entry: Entry = self.found(request, object_id)
        if not self.has_view_permission(request, entry):
            raise PermissionDenied
        return entry

    def _page(
        self,
        request: HttpRequest,
        entry: Entry,
        name: str,
        context: Mapping[str, object],
    ) -> HttpResponse:
        may_change = self.has_change_permission(request, entry)
        shared = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "entry": entry,
            "may_restore": may_change and entry.state != Entry.State.RETIRED,
        }
        template = f"admin/kb/entry/{name}.html"
        return TemplateResponse(request, template, {**shared, **context})


def _revisions(entry: Entry, request: HttpRequest) -> QuerySet[Revision]:
    visible = Revision.objects.visible_to(request.user).filter(entry=entry)
    return visible.select_related(
        "author", "verified_by", "owner", "audience", "document", "section",
        "product_line", "line_of_business",
    ).order_by("-number")  # fmt: skip


def _chosen(entry: Entry, request: HttpRequest, number: str) -> Revision:
    revision = _revisions(entry, request).filter(number=number_in(number) or 0).first()
    if revision is None:
        raise Http404(f"Entry {entry.pk} has no revision {number[:20]!r}.")
    return revision


_OTHERWISE_SHOWN = {"question", "text", "verified_by", "verified_at"}


def _facts(revision: Revision, visible: set[int]) -> Iterator[tuple[str, str]]:
    """Yield name and value of each field except the texts, hiding invisible rows."""
    verifier = revision.verified_by
    yield (
        "Verified",
        f"by {person_name(verifier)}, {_moment(revision.verified_at)}"
        if verifier
        else "no",
    )
    for name in REVISED:
        if name not in _OTHERWISE_SHOWN:
            field: Any = Revision._meta.get_field(name)
            yield str(field.verbose_name).capitalize(), _fact(revision, field, visible)
    author = "system"
    if revision.author is not None:
        author = person_name(revision.author)
    elif revision.database_user:
        author = f"database user {revision.database_user}"
    yield "Written by", author
    yield "Written", _moment(revision.created_at)
    yield "Reason", revision.reason


def _fact(revision: Revision, field: Any, visible: set[int]) -> str:
    name, value = field.name, getattr(revision, field.name)
    if field.is_relation:
        owner = revision if name == "audience" else revision.document
        is_hidden = name in ("audience", "document", "section") and (
            owner is not None and owner.audience_id not in visible
        )
        if value is not None and not is_hidden:
            return str(value)
        # Readers who may not see the row must not learn whether it still exists.
        is_empty = getattr(revision, field.attname) is None
        return "none" if is_empty else "deleted, or not visible to you"
    if isinstance(value, datetime):
        return _moment(value)
    if value is None:
        return "always" if name == "valid_until" else "default"
    if isinstance(value, float):
        return f"{value:g}"
    shown = getattr(revision, f"get_{name}_display", None)
    return str(shown() if shown else value)


def _moment(value: datetime | None) -> str:
    return "" if value is None else f"{timezone.localtime(value):%Y-%m-%d %H:%M}"
