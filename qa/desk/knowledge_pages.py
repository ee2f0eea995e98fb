"""Looking up knowledge: a search as the user types, and documents to read.

As everywhere, only curators see drafts, proposals and retired entries.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.paginator import Page, Paginator
from django.db.models import F, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.models import count_of
from accounts.replica import reads_replica
from accounts.roles import is_live
from kb.documents.models import Document, KnowledgeBase, of_base_in_use
from kb.documents.services import SectionNode, section_tree
from kb.entries.finding import AT_MOST, found_by
from kb.entries.models import Entry, EntryQuerySet
from kb.tags.models import Tag

from . import parts

PAGE_SIZE = 25
READER_LIMIT = 500  # entries of a document that are shown on one page
_OFFERED = 200  # documents in the list of the filter
SHOWN = (
    "knowledge_base", "document", "section", "product_line", "line_of_business", "verified_by", "owner",
    "upkeep", "audience",
)  # fmt: skip


class KnowledgeForm(forms.Form):
    """The words and filters of a search; every field may be empty."""

    q = forms.CharField(required=False, max_length=500)
    knowledge_base = forms.ModelChoiceField(
        KnowledgeBase.objects.order_by(F("archived_at").asc(nulls_first=True), "slug"),
        required=False,
        to_field_name="slug",
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

    def _field(self, name: str) -> Any:
        return self.fields[name]

    def narrow_documents(self, base: KnowledgeBase) -> None:
        """Offer only the documents of this knowledge base."""
        field = self._field("document")
        field.queryset = field.queryset.filter(knowledge_base=base)

    def offered(self, name: str) -> Sequence[Any]:
        """Return the first choices of a list, and the chosen one in any case."""
        first = list(self._field(name).queryset[:_OFFERED])
        chosen = self.cleaned_data.get(name)
        return first if chosen is None or chosen in first else [*first, chosen]

    def narrow(self, entries: EntryQuerySet) -> EntryQuerySet:
        """Apply every filter except the words."""
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
    """Find entries by words and meaning; without words or filters, list documents."""
    form = KnowledgeForm(request)
    form.is_valid()  # an invalid value filters nothing
    chosen = form.cleaned_data.get("knowledge_base")
    bases = list(KnowledgeBase.objects.in_use())
    words = form.cleaned_data.get("q", "").replace("\0", " ").strip()
    # A link from elsewhere, with `q` alone, searches everything that the user may read.
    is_open = len(bases) > 1 and bool(words or "knowledge_base" in request.GET)
    base = chosen or (None if is_open else parts.chosen_base(request, bases))
    is_part = is_live(request)
    context: dict[str, object] = {
        "form": form,
        "words": words,
        "at": timezone.now(),
        "is_live": is_part,
    }
    if not (bases or base):
        return render(request, "qa/knowledge.html", context)
    context["base"] = base
    entries = Entry.objects.readable_by(request.user)
    if base is not None:
        entries = entries.filter(knowledge_base=base)
        form.narrow_documents(base)
    else:
        entries = entries.filter(of_base_in_use())
    entries = form.narrow(entries).select_related(*SHOWN).defer("search_vector")
    if any(map(str.isalnum, words)):
        found = found_by(words, entries, reader=request.user, knowledge_base=base)
        context |= {"found": found, "is_cut": len(found.by_words) == AT_MOST}
    elif form.is_filtered:
        page = _page(request, entries.order_by("-updated_at", "-pk"))
        context |= {"page": page, "entries": page}
    else:
        page = _page(request, _documents(request, base))
        context |= {"page": page, "documents": page}
    if is_part:
        return render(request, "qa/_knowledge_found.html", context)
    context |= {
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


def _documents(request: HttpRequest, base: KnowledgeBase | None) -> QuerySet[Document]:
    entries = Entry.objects.readable_by(request.user)
    documents = Document.objects.visible_to(request.user)
    wanted = Q(knowledge_base=base) if base else of_base_in_use()
    documents = documents.filter(wanted)
    return (
        documents.select_related("knowledge_base")
        .annotate(readable=count_of(entries, "document"))
        .order_by("title", "pk")
    )


@dataclass(frozen=True, slots=True)
class Chapter:
    """A heading of a document with its own entries; the top `level` is 2."""

    key: int
    heading: str
    level: int
    entries: Sequence[Entry]


@require_safe
@parts.agents_only
def document(request: HttpRequest, document_id: int) -> HttpResponseBase:
    """Show a document: its headings in order, each with its entries."""
    documents = Document.objects.visible_to(request.user)
    documents = documents.select_related("knowledge_base")
    found = documents.filter(pk=document_id).first()
    if found is None:
        raise Http404("This document does not exist, or you may not see it.")
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
