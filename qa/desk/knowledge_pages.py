"""Knowledge to look up: search as one types, a document as a reader, an entry's own page.

Drafts, proposals and retired entries are the curators', here as everywhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.exceptions import NescioError
from accounts.ids import number_in
from accounts.replica import reads_replica
from accounts.roles import Role, caller, has_role_in, has_role_somewhere
from kb.documents.models import Document, KnowledgeBase, Section
from kb.documents.services import SectionNode, section_tree
from kb.entries.comments import (
    COMMENT_LIMIT,
    Comment,
    add_comment,
    delete_comment,
)
from kb.entries.due import Reason
from kb.entries.finding import AT_MOST, found_by
from kb.entries.models import SERVED_STATES, Entry, EntryQuerySet, Revision
from kb.entries.states import verify_entry
from kb.exceptions import CommentNotFoundError, EntryNotFoundError
from kb.tags.models import Tag
from kb.upkeep.models import Flag
from kb.upkeep.services import FLAG_NOTE_LIMIT
from qa.gaps.notices import mark_entry_read
from qa.inbox.services import flag_entry

from . import parts

PAGE_SIZE = 25
READER_LIMIT = 500  # entries of a document that are shown on one page
_COMMENTS = 100  # the newest of an entry that its page shows
_OFFERED = 200  # documents in the list of the filter
_SHOWN = (
    "document", "section", "product_line", "line_of_business", "verified_by", "owner",
    "upkeep", "audience",
)  # fmt: skip


class KnowledgeForm(forms.Form):
    """What is looked for; every field may be empty."""

    q = forms.CharField(required=False, max_length=500)
    knowledge_base = forms.ModelChoiceField(
        KnowledgeBase.objects.all(), required=False, to_field_name="slug"
    )
    document = forms.ModelChoiceField(Document.objects.none(), required=False)
    product_line = forms.ModelChoiceField(
        Tag.objects.product_lines(), required=False, to_field_name="slug"
    )
    line_of_business = forms.ModelChoiceField(
        Tag.objects.lines_of_business(), required=False, to_field_name="slug"
    )
    state = forms.ChoiceField(
        required=False,
        choices=[
            ("", "Any"),
            ("verified", "Verified"),
            ("unverified", "Not verified"),
            ("expired", "Expired"),
        ],
    )

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request.GET)
        self._field("document").queryset = Document.objects.visible_to(request.user)

    def _field(self, name: str) -> Any:  # noqa: ANN401  # a field of any kind
        return self.fields[name]

    def offered(self, name: str) -> Sequence[Any]:
        return list(self._field(name).queryset[:_OFFERED])

    def narrow(self, entries: EntryQuerySet) -> EntryQuerySet:
        """Apply every filter but the words."""
        chosen = self.cleaned_data
        for name in ("document", "product_line", "line_of_business"):
            if chosen.get(name):
                entries = entries.filter(**{name: chosen[name]})
        match chosen.get("state"):
            case "verified":
                return entries.filter(state=Entry.State.VERIFIED).current(
                    timezone.now()
                )
            case "unverified":
                return entries.exclude(state=Entry.State.VERIFIED)
            case "expired":
                return entries.expired(timezone.now())
            case _:
                return entries

    @property
    def is_filtered(self) -> bool:
        names = ("document", "product_line", "line_of_business", "state")
        return any(self.cleaned_data.get(name) for name in names)


@require_safe
@parts.agents_only
@reads_replica
def knowledge(request: HttpRequest) -> HttpResponseBase:
    """Find entries by words and meaning, or list documents where nothing is looked for."""
    form = KnowledgeForm(request)
    form.is_valid()  # what is not valid filters nothing
    chosen = form.cleaned_data.get("knowledge_base")
    base = chosen or KnowledgeBase.objects.order_by("pk").first()
    words = form.cleaned_data.get("q", "").replace("\0", " ").strip()
    is_live = parts.is_live(request)
    context: dict[str, object] = {
        "form": form,
        "words": words,
        "at": timezone.now(),
        "is_live": is_live,
    }
    if base is None:
        return render(request, "qa/knowledge.html", context)
    entries = Entry.objects.readable_by(request.user).filter(knowledge_base=base)
    entries = form.narrow(entries).select_related(*_SHOWN).defer("search_vector")
    if any(map(str.isalnum, words)):
        found = found_by(words, entries, reader=request.user, knowledge_base=base)
        context |= {"found": found, "is_cut": len(found.by_words) == AT_MOST}
    elif form.is_filtered:
        page = _page(request, entries.order_by("-updated_at", "-pk"))
        context |= {"page": page, "entries": page}
    else:
        page = _page(request, _documents(request, base))
        context |= {"page": page, "documents": page}
    if is_live:
        return render(request, "qa/_knowledge_found.html", context)
    context |= {
        "base": base,
        "offered": {
            name: form.offered(name)
            for name in (
                "knowledge_base", "document", "product_line", "line_of_business",
            )
        },
    }  # fmt: skip
    return render(request, "qa/knowledge.html", context)


def _page(request: HttpRequest, rows: QuerySet[Any]) -> Page[Any]:
    return Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))


def _documents(request: HttpRequest, base: KnowledgeBase) -> QuerySet[Document]:
    own = Entry.objects.readable_by(request.user).filter(document=OuterRef("pk"))
    count = own.order_by().values("document").annotate(count=Count("pk"))
    return (
        Document.objects.visible_to(request.user)
        .filter(knowledge_base=base)
        .annotate(readable=Coalesce(Subquery(count.values("count")), 0))
        .order_by("title", "pk")
    )


@dataclass(frozen=True, slots=True)
class Chapter:
    """A heading of a document with its own entries; `level` is 2 for the uppermost."""

    key: int
    heading: str
    level: int
    entries: Sequence[Entry]


@require_safe
@parts.agents_only
def document(request: HttpRequest, document_id: int) -> HttpResponseBase:
    """Show a document from the first heading to the last, with the entries of each."""
    documents = Document.objects.visible_to(request.user)
    found = get_object_or_404(documents, pk=document_id)
    rows = Entry.objects.readable_by(request.user).filter(document=found)
    rows = rows.select_related("verified_by", "upkeep").defer("search_vector")
    entries = list(rows.order_by("pk")[: READER_LIMIT + 1])
    by_section: dict[int | None, list[Entry]] = {}
    for entry in entries[:READER_LIMIT]:
        by_section.setdefault(entry.section_id, []).append(entry)
    tree = section_tree(list(found.sections.all()))
    context = {
        "document": found,
        "loose": by_section.get(None, []),
        "chapters": list(_chapters(tree, by_section)),
        "count": len(entries[:READER_LIMIT]),
        "is_cut": len(entries) > READER_LIMIT,
        "may_curate": parts.may_curate(request, found.knowledge_base_id),
        "at": timezone.now(),
    }
    return render(request, "qa/document.html", context)


def _chapters(
    nodes: Sequence[SectionNode],
    by_section: Mapping[int | None, Sequence[Entry]],
    level: int = 2,
) -> Iterator[Chapter]:
    for node in nodes:
        key = node.id or 0
        yield Chapter(key, node.heading, level, by_section.get(key, ()))
        yield from _chapters(node.children, by_section, level + 1)


@require_safe
@parts.agents_only
def entry(request: HttpRequest, entry_id: int) -> HttpResponseBase:
    """Show one entry: what it says, where it comes from, who stands for it, its history."""
    found = _find_entry(request, entry_id)
    if has_role_somewhere(request.user, Role.SME):
        mark_entry_read(found, by=caller(request))
    return render(request, "qa/entry.html", _entry_part(request, found))


def _find_entry(request: HttpRequest, entry_id: int) -> Entry:
    rows = Entry.objects.readable_by(request.user).select_related(*_SHOWN)
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
    due = found.upkeep.reasons(at)
    base = found.knowledge_base_id
    may_verify = has_role_in(request.user, Role.CURATOR, base)
    return {
        "entry": found,
        "path": _path(found.section),
        "due": due,
        "flags": Flag.objects.open().filter(entry=found).select_related("user"),
        "may_flag": found.state in SERVED_STATES,
        "note_limit": FLAG_NOTE_LIMIT,
        # Verifying what has expired would leave it expired: it needs another date.
        "is_to_confirm": may_verify
        and found.state in SERVED_STATES
        and bool(due)
        and due[0].reason != Reason.EXPIRED,
        "comments": _comments(request, found),
        "comment_limit": COMMENT_LIMIT,
        "revisions": revisions.select_related("author").order_by("-number")[:20],
        "at": at,
        "may_curate": parts.may_curate(request, base),
    }


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
    found = _find_entry(request, entry_id)
    text = request.POST.get("text", "")
    try:
        add_comment(entry_id=found.pk, by=caller(request), text=text)
    except NescioError as refused:
        said = {"comment_error": str(refused), "typed": text}
        context = {**_entry_part(request, found), **said}
        return render(request, "qa/entry.html", context, status=422)
    return redirect(reverse("entry", args=[found.pk]) + "#comments")


@require_POST
@parts.agents_only
def uncomment(request: HttpRequest, comment_id: int) -> HttpResponseBase:
    """Delete a comment: one's own, or as a curator any."""
    try:
        entry_id = delete_comment(comment_id=comment_id, by=caller(request))
    except CommentNotFoundError as missing:
        raise Http404(str(missing)) from missing
    return redirect(reverse("entry", args=[entry_id]) + "#comments")


@require_POST
@parts.agents_only
def flag(request: HttpRequest, entry_id: int) -> HttpResponseBase:
    """Flag an entry as outdated, from its own page or from an answer's evidence."""
    note = request.POST.get("note", "")
    error = ""
    try:
        flag_entry(entry_id=entry_id, by=caller(request), note=note)
    except EntryNotFoundError as missing:
        raise Http404(str(missing)) from missing
    except NescioError as refused:
        error = str(refused)
    if not parts.is_live(request) and not error:
        return redirect(reverse("entry", args=[entry_id]) + "#flags")
    context = {
        "entry_id": entry_id,
        "note": note,
        "error": error,
        "is_flagged": not error,
        "note_limit": FLAG_NOTE_LIMIT,
    }
    status = 422 if error else 200
    return render(request, "qa/_flag.html", context, status=status)


@require_POST
@parts.agents_only
def still_true(request: HttpRequest, entry_id: int) -> HttpResponseBase:
    """Verify an entry again, which ends what it was due for; for curators."""
    found = _find_entry(request, entry_id)
    if not has_role_in(request.user, Role.CURATOR, found.knowledge_base_id):
        raise PermissionDenied("Only a curator can say that an entry is still true.")
    revision = number_in(request.POST.get("revision", ""))
    try:
        verify_entry(
            entry_id=found.pk,
            by=caller(request),
            expected_revision=revision,
            reason="Still true.",
        )
    except NescioError as refused:
        context = {**_entry_part(request, found), "error": str(refused)}
        return render(request, "qa/entry.html", context, status=refused.status)
    return redirect("entry", found.pk)


def _path(section: Section | None) -> list[Section]:
    """Return the section below those that it is in, the uppermost first."""
    path: list[Section] = []
    while section is not None:
        path.insert(0, section)
        section = section.parent
    return path
