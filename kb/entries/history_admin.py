"""What changed between two texts, word by word."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher

from django.contrib import admin, messages
from django.contrib.admin.options import ModelAdmin
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from unfold.admin import TabularInline

from accounts.exceptions import NescioError
from accounts.roles import Role, caller, has_role
from kb.audiences.models import Audience
from kb.entries.models import Entry, Revision
from kb.entries.states import restore_revision
from kb.tags.models import Tag


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of words that both texts have, or one of them.

    Attributes:
        kind: "same", "gone" (only in the old text) or "new".
    """

    kind: str
    text: str


def word_difference(old: str, new: str) -> tuple[Piece, ...]:
    """Return the pieces of both texts in reading order; nothing is left out.

    The pieces that are not new make up `old`, those that are not gone make up `new`.
    """
    return tuple(_pieces(_words(old), _words(new)))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+\s*|[^\w\s]\s*|\s+", text)


def _pieces(old: list[str], new: list[str]) -> Iterator[Piece]:
    # The library's measure against words that come very often, in texts of 200 words and
    # more: without it a text of one word over and over takes many seconds.
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
    """What an entry said before, newest first; to look at and to compare."""

    model = Revision
    fields = [
        "number",
        "created_at",
        "author",
        "state",
        "confidence",
        "text",
        "reason",
        "compared",
    ]
    readonly_fields = fields
    extra = 0
    can_delete = False
    per_page = 20

    def get_queryset(self, request: HttpRequest) -> QuerySet[Revision]:
        revisions: QuerySet[Revision] = super().get_queryset(request)
        return revisions.select_related("author").order_by("-number")

    def has_add_permission(
        self, request: HttpRequest, obj: Entry | None = None
    ) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Entry | None = None
    ) -> bool:
        return False

    @admin.display(description="changes")
    def compared(self, revision: Revision) -> str:
        """Link to what this revision changed."""
        if revision.number == 1:
            return ""
        address = reverse("admin:kb_entry_compare", args=[revision.entry_id])
        return format_html(
            '<a class="underline" href="{}?old={}&new={}">with {}</a>',
            address,
            revision.number - 1,
            revision.number,
            revision.number - 1,
        )


# The pages of an entry's history: what it was, what changed, and the way back.


_PER_PAGE = 50


@dataclass(frozen=True, slots=True)
class _Row:
    """A field of two revisions, beside each other."""

    name: str
    old: str
    new: str

    @property
    def differs(self) -> bool:
        """Whether it was changed in between."""
        return self.old != self.new


@dataclass(frozen=True, slots=True)
class _Sides:
    """A text of two revisions, beside each other with the words that differ marked."""

    name: str
    pieces: tuple[Piece, ...]

    @property
    def old(self) -> tuple[Piece, ...]:
        return tuple(piece for piece in self.pieces if piece.kind != "new")

    @property
    def new(self) -> tuple[Piece, ...]:
        return tuple(piece for piece in self.pieces if piece.kind != "gone")


def history_page(
    admin: "ModelAdmin[Entry]", request: HttpRequest, entry: Entry, *, may_change: bool
) -> HttpResponse:
    """Show the revisions of an entry, newest first, to compare any two or go back."""
    pages = Paginator(_revisions(entry), _PER_PAGE)
    page = pages.get_page(request.GET.get("page"))
    numbers = [revision.number for revision in page.object_list]
    context = {
        **admin.admin_site.each_context(request),
        "opts": admin.model._meta,
        "title": "History",
        "entry": entry,
        "page": page,
        "newest": entry.revisions.values_list("number", flat=True).first(),
        "chosen_new": numbers[0] if numbers else None,
        "chosen_old": numbers[1] if len(numbers) > 1 else None,
        "may_restore": may_change and entry.state != Entry.State.RETIRED,
    }
    return TemplateResponse(request, "admin/kb/entry/history.html", context)


def compare_page(
    admin: "ModelAdmin[Entry]", request: HttpRequest, entry: Entry, *, may_change: bool
) -> HttpResponse:
    """Show two revisions of an entry side by side."""
    numbers = list(entry.revisions.values_list("number", "created_at"))
    newest = numbers[0][0]
    old = _chosen(entry, request.GET.get("old", "1"))
    new = _chosen(entry, request.GET.get("new", str(newest)))
    visible = set(
        Audience.objects.visible_to(request.user).values_list("pk", flat=True)
    )
    texts = [_Sides("Text", word_difference(old.text, new.text))]
    if old.question or new.question:
        texts.insert(0, _Sides("Question", word_difference(old.question, new.question)))
    context = {
        **admin.admin_site.each_context(request),
        "opts": admin.model._meta,
        "title": "Compare revisions",
        "entry": entry,
        "numbers": numbers,
        "newest": newest,
        "old": old,
        "new": new,
        "texts": texts,
        "rows": list(_rows(old, new, visible)),
        "may_restore": may_change and entry.state != Entry.State.RETIRED,
    }
    return TemplateResponse(request, "admin/kb/entry/compare.html", context)


def _revisions(entry: Entry) -> QuerySet[Revision]:
    return entry.revisions.select_related(
        "author",
        "verified_by",
        "owner",
        "audience",
        "document",
        "section",
        "product_line",
        "line_of_business",
    ).order_by("-number")


def _chosen(entry: Entry, number: str) -> Revision:
    is_number = number.isascii() and number.isdecimal() and len(number) < 10
    revision = (
        _revisions(entry).filter(number=int(number)).first() if is_number else None
    )
    if revision is None:
        msg = f"Entry {entry.pk} has no revision {number[:20]!r}."
        raise Http404(msg)
    return revision


def _rows(old: Revision, new: Revision, visible: set[int]) -> Iterator[_Row]:
    for one, other in zip(_facts(old, visible), _facts(new, visible), strict=True):
        yield _Row(one[0], one[1], other[1])


def _facts(revision: Revision, visible: set[int]) -> Iterator[tuple[str, str]]:
    audience, document, section = (
        revision.audience, revision.document, revision.section,
    )  # fmt: skip
    if audience is not None and audience.pk not in visible:
        audience = None
    if document is not None and document.audience_id not in visible:
        document = section = None
    yield "State", revision.get_state_display()
    yield "Verified", verification_of(revision)
    yield "Confidence", f"{revision.confidence:g}"
    yield "Valid until", _moment(revision.valid_until) or "always"
    yield "Language", revision.get_language_display()
    yield "Audience", _named(audience, revision.audience_id)
    yield "Document", _named(document, revision.document_id)
    yield "Section", _named(section, revision.section_id)
    yield "Owner", _named(revision.owner, revision.owner_id)
    for facet in Tag.Facet:
        tag = getattr(revision, facet)
        tag_id = getattr(revision, f"{facet}_id")
        yield facet.label.capitalize(), _named(tag, tag_id)
    yield "Written by", author_of(revision)
    yield "Written", _moment(revision.created_at)
    yield "Reason", revision.reason


def _named(row: object | None, row_id: int | None) -> str:
    """Return what a revision refers to; that it is there is not told to who may not see it."""
    if row is not None:
        return str(row)
    return "none" if row_id is None else "gone, or not yours to see"


def author_of(revision: Revision) -> str:
    """Return who wrote a revision, as pages say it."""
    if revision.author is not None:
        return revision.author.get_username()
    if revision.database_user:
        return f"database user {revision.database_user}"
    return "system"


def verification_of(revision: Revision) -> str:
    """Return who had vouched for what an entry said, and when."""
    if revision.verified_by is None:
        return "no"
    by = revision.verified_by.get_username()
    return f"by {by}, {_moment(revision.verified_at)}"


def _moment(value: datetime | None) -> str:
    return "" if value is None else f"{timezone.localtime(value):%Y-%m-%d %H:%M}"


def restore_page(
    admin: "ModelAdmin[Entry]", request: HttpRequest, entry: Entry, number: int
) -> HttpResponse:
    """Ask whether to go back to a revision; on POST, do."""
    back = reverse("admin:kb_entry_history", args=[entry.pk])
    if request.method == "POST":
        try:
            restore_revision(
                entry_id=entry.pk,
                number=number,
                by=caller(request),
                may_verify=has_role(request.user, Role.CURATOR),
            )
        except NescioError as error:
            admin.message_user(request, str(error), messages.ERROR)
        else:
            admin.message_user(
                request,
                f"The entry says again what it said at revision {number}.",
                messages.SUCCESS,
            )
        return redirect(back)
    revision = _chosen(entry, str(number))
    context = {
        **admin.admin_site.each_context(request),
        "title": f"Restore revision {number}? Who may see the entry and who owns it "
        "stay as they are. It says again:",
        "subject": " ".join([revision.question, revision.text]).strip(),
        "back": back,
    }
    return TemplateResponse(request, "admin/confirm_action.html", context)
