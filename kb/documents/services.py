"""Writing documents with their sections: each function is one transaction."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet

from accounts.acting import unrestricted
from kb.audiences.models import Audience
from kb.documents.models import Document, KnowledgeBase, Section, check_writable
from kb.entries.bulk import BATCH, Action, BulkChange, change_entries
from kb.entries.models import Entry
from kb.entries.revisions import record
from kb.exceptions import DocumentNotFoundError, InvalidKnowledgeError
from kb.text.cleaning import SOURCE_LIMIT, TITLE_LIMIT, clean_line

HEADING_LIMIT = 300
SECTIONS_LIMIT = 2000
DEPTH_LIMIT = 8

# Added to the old positions while a tree is rebuilt, since siblings' positions must be
# unique at every moment.
_ASIDE = 1_000_000


@dataclass(frozen=True, slots=True)
class SectionNode:
    """A heading with its subsections; `id` is that of an existing section, if any."""

    heading: str
    children: tuple["SectionNode", ...] = ()
    id: int | None = None


class DocumentChanges(TypedDict, total=False):
    title: str
    source: str
    audience: Audience
    sections: Sequence[SectionNode]


@transaction.atomic
def create_document(
    *,
    knowledge_base: KnowledgeBase,
    title: str,
    audience: Audience,
    author: User | None,
    source: str = "",
    sections: Sequence[SectionNode] = (),
) -> Document:
    check_writable(author, knowledge_base.pk)
    document = Document.objects.create(
        knowledge_base=knowledge_base,
        title=clean_line(title, field="title", limit=TITLE_LIMIT),
        source=clean_line(source, field="source", limit=SOURCE_LIMIT, required=False),
        audience=audience,
        created_by=author,
    )
    _write_tree(document, sections, author=author)
    return document


@transaction.atomic
def edit_document(
    *,
    document_id: int,
    author: User | None = None,
    entries_follow: bool = False,
    **changes: Unpack[DocumentChanges],
) -> Document:
    """Change a document.

    `sections` is the whole tree: nodes with an id are kept (renamed, moved), nodes
    without one are new, and sections not in it are deleted; their entries stay in the
    document, without a section. `author` is recorded in the history of entries that
    change with it.

    Args:
        entries_follow: Whether entries of the document's previous audience get its
            new one too, except retired ones.
    """
    document = Document.objects.select_for_update().filter(pk=document_id).first()
    if document is None:
        raise DocumentNotFoundError(f"There is no document {document_id}.")
    check_writable(author, document.knowledge_base_id)
    if "title" in changes:
        document.title = clean_line(changes["title"], field="title", limit=TITLE_LIMIT)
    if "source" in changes:
        document.source = clean_line(
            changes["source"], field="source", limit=SOURCE_LIMIT, required=False
        )
    had = document.audience_id
    if "audience" in changes:
        document.audience = changes["audience"]
    document.save()
    if entries_follow and document.audience_id != had:
        _take_along(document, had, author=author)
    if "sections" in changes:
        _write_tree(document, changes["sections"], author=author)
    return document


def check_tree(nodes: Sequence[SectionNode]) -> None:
    for place in _places(nodes):
        clean_line(place.node.heading, field="heading", limit=HEADING_LIMIT)


def section_tree(sections: Sequence[Section]) -> tuple[SectionNode, ...]:
    """Return the tree of one document's sections, in order, without a query."""
    below: dict[int | None, list[Section]] = {}
    for section in sorted(sections, key=lambda section: section.position):
        below.setdefault(section.parent_id, []).append(section)

    def grow(parent_id: int | None) -> tuple[SectionNode, ...]:
        return tuple(
            SectionNode(section.heading, grow(section.pk), section.pk)
            for section in below.get(parent_id, [])
        )

    return grow(None)


def in_reading_order(sections: Sequence[Section]) -> list[Section]:
    """Return one document's sections, each before its subsections, without a query."""
    rows = {section.pk: section for section in sections}

    def walk(nodes: Sequence[SectionNode]) -> Iterator[Section]:
        for node in nodes:
            yield rows[node.id or 0]
            yield from walk(node.children)

    return list(walk(section_tree(sections)))


@dataclass(frozen=True, slots=True)
class _Place:
    node: SectionNode
    parent: int | None  # index of the parent's place
    position: int
    depth: int


def _write_tree(
    document: Document, nodes: Sequence[SectionNode], *, author: User | None
) -> None:
    places = _places(nodes)
    kept = {section.pk: section for section in document.sections.all()}
    named = [place.node.id for place in places if place.node.id is not None]
    _check_ids(document, named, known=kept.keys())
    document.sections.update(position=F("position") + _ASIDE)
    written: list[Section] = []
    for place in places:
        section = (
            Section(document=document) if place.node.id is None else kept[place.node.id]
        )
        section.heading = clean_line(
            place.node.heading, field="heading", limit=HEADING_LIMIT
        )
        section.parent = None if place.parent is None else written[place.parent]
        section.position = place.position
        section.save()
        written.append(section)
    # Last, when no kept section is below a deleted one any more.
    gone = document.sections.exclude(pk__in=[section.pk for section in written])
    # Deleted sections may hold entries that the author may not see.
    with unrestricted("sections that go"):
        _take_entries_out(gone, author=author)
        gone.delete()


def _take_along(document: Document, had: int, *, author: User | None) -> None:
    rows = Entry.objects.filter(document=document, audience=had)
    rows = rows.exclude(state=Entry.State.RETIRED).order_by("pk")
    left = list(rows.values_list("pk", flat=True))
    change = BulkChange(
        Action.AUDIENCE, document.audience_id, "Its document changed its audience."
    )
    for start in range(0, len(left), BATCH):
        chosen = left[start : start + BATCH]
        change_entries(chosen, change, by=author, may_verify=False)


def _take_entries_out(sections: QuerySet[Section], *, author: User | None) -> None:
    entries = list(Entry.objects.locked().filter(section__in=sections).order_by("pk"))
    if not entries:
        return
    for entry in entries:
        entry.section = None
    Entry.objects.bulk_update(entries, ["section"], batch_size=500)
    record(entries, author=author, reason="Its section was taken out of the document.")


def _places(nodes: Sequence[SectionNode]) -> list[_Place]:
    places: list[_Place] = []
    for place in _walk(nodes):
        if place.depth > DEPTH_LIMIT:
            raise InvalidKnowledgeError(
                "sections",
                f"sections are nested deeper than {DEPTH_LIMIT}; flatten them.",
            )
        if len(places) == SECTIONS_LIMIT:
            raise InvalidKnowledgeError(
                "sections",
                f"more than {SECTIONS_LIMIT} sections; split the document.",
            )
        places.append(place)
    return places


def _walk(nodes: Sequence[SectionNode]) -> Iterator[_Place]:
    queue = [_Place(node, None, n, 1) for n, node in enumerate(nodes)]
    for index, place in enumerate(queue):
        yield place
        queue.extend(
            _Place(child, index, n, place.depth + 1)
            for n, child in enumerate(place.node.children)
        )


def _check_ids(
    document: Document, named: Sequence[int], known: Collection[int]
) -> None:
    for section_id in named:
        if section_id not in known:
            raise InvalidKnowledgeError(
                "sections",
                f"document {document.pk} has no section {section_id}; leave the id "
                "out for a new one.",
            )
    if len(set(named)) != len(named):
        raise InvalidKnowledgeError(
            "sections", "A section is named twice; each may appear only once."
        )
