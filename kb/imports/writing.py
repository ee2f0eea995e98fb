"""Writes what an import decided: documents with their sections, and entries."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django.utils import timezone

from kb.documents.models import Document, KnowledgeBase, Section
from kb.documents.services import (
    SECTIONS_LIMIT,
    SectionNode,
    create_document,
    edit_document,
    section_tree,
)
from kb.embedding.services import PreparedVectors
from kb.entries.models import Entry, Revision
from kb.entries.revisions import lock_all, record
from kb.entries.services import create_entries, edit_entry
from kb.entries.states import restore_entry, verify_entry
from kb.entries.values import EntryChanges, NewEntry
from kb.entries.wordings import replace_imported
from kb.imports.models import Import

from .decisions import Action, Piece, Source

Path = tuple[str, ...]


def find_document(of: Import, source: str) -> Document | None:
    return (
        Document.objects.filter(
            knowledge_base_id=of.knowledge_base_id,
            audience_id=of.audience_id,
            source=source,
        )
        .order_by("pk")
        .first()
    )


def locked_documents(of: Import, sources: Iterable[Source]) -> dict[str, Document]:
    """Return the documents by source name, locked; missing ones are created.

    A document keeps the title that a curator gave it.
    """
    found: dict[str, Document] = {}
    by_name = {source.name: source for source in sources}
    rows = Document.objects.select_for_update(no_key=True).filter(
        knowledge_base_id=of.knowledge_base_id,
        audience_id=of.audience_id,
        source__in=by_name,
    )
    for document in rows.order_by("-pk"):
        found[document.source] = document
    if missing := [name for name in by_name if name not in found]:
        # Two imports that create the same document wait for each other here.
        KnowledgeBase.objects.select_for_update(no_key=True).get(
            pk=of.knowledge_base_id
        )
        for name in missing:
            found[name] = find_document(of, name) or create_document(
                knowledge_base=of.knowledge_base,
                title=by_name[name].title,
                source=name,
                audience=of.audience,
                author=of.created_by,
            )
    return found


def sections_by_path(
    of: Import, document: Document, decided: Sequence[Piece]
) -> Mapping[Path, Section]:
    """Adapt a document's tree to its headings, and return the sections by path.

    Siblings with the same heading are one section. A heading that is gone is deleted;
    its entries stay in the document. Headings of a table become known row by row: new
    ones are appended, up to the limit of sections.
    """
    known = _by_path(document)
    headings = decided[0].source.headings
    if headings is None:
        met = dict.fromkeys([*known, *(each.fact.headings for each in decided)])
        headings = tuple(filter(None, met))
        if sum(map(len, headings)) > SECTIONS_LIMIT:
            return known
    if tuple(known) != headings and set(known) != set(headings):
        edit_document(
            document_id=document.pk,
            author=of.created_by,
            sections=_grow(headings, known, ()),
        )
        known = _by_path(document)
    return known


def _by_path(document: Document) -> dict[Path, Section]:
    sections = {section.pk: section for section in document.sections.all()}
    found: dict[Path, Section] = {}

    def walk(nodes: Iterable[SectionNode], above: Path) -> None:
        for node in nodes:
            path = (*above, node.heading)
            if node.id is not None:
                found.setdefault(path, sections[node.id])
            walk(node.children, path)

    walk(section_tree(list(sections.values())), ())
    return found


def _grow(
    headings: tuple[Path, ...], known: Mapping[Path, Section], above: Path
) -> tuple[SectionNode, ...]:
    below: dict[Path, None] = {}
    for path in headings:
        if len(path) > len(above) and path[: len(above)] == above:
            below[path[: len(above) + 1]] = None
    return tuple(
        SectionNode(
            path[-1],
            _grow(headings, known, path),
            known[path].pk if path in known else None,
        )
        for path in below
    )


Sections = Mapping[str, Mapping[Path, Section]]


def carry_out(of: Import, decided: Sequence[Piece], prepared: PreparedVectors) -> None:
    sources = {each.source.name: each.source for each in decided}
    documents = locked_documents(of, sources.values())
    sections = {
        name: sections_by_path(
            of, documents[name], [each for each in decided if each.source.name == name]
        )
        for name in sources
    }
    author = of.verify_as or of.created_by
    new = [each for each in decided if each.action is Action.CREATED]
    made = create_entries(
        [
            NewEntry(
                knowledge_base=of.knowledge_base,
                audience=of.audience,
                document=documents[each.source.name],
                section=_section(each, sections),
                origin=Entry.Origin.IMPORTED,
                state=Entry.State.IN_REVIEW,
                verify=of.verify_as is not None,
                product_line=of.product_line,
                line_of_business=of.line_of_business,
                reason=_reason(of),
                text=each.fact.text,
                question=each.fact.question,
                place=each.fact.place,
                own_key=each.fact.id,
                source_key=each.fact.key,
                source_digest=each.fact.digest,
            )
            for each in new
        ],
        author=author,
        prepared=prepared,
    )
    said = {
        entry.pk: each.fact.wordings
        for entry, each in zip(made, new, strict=True)
        if each.fact.wordings
    }
    for each in decided:
        if each.entry and each.action in (Action.CHANGED, Action.RESTORED):
            _change(of, each, each.entry, _section(each, sections), prepared)
            said[each.entry.pk] = each.fact.wordings
    if said:
        replace_imported(said, by=author, prepared=prepared)
    _move(of, [each for each in decided if each.action is Action.UNCHANGED], sections)


def _change(
    of: Import,
    piece: Piece,
    known: Entry,
    section: Section | None,
    prepared: PreparedVectors,
) -> None:
    author = of.verify_as or of.created_by
    if piece.action is Action.RESTORED:
        restore_entry(entry_id=known.pk, by=author, reason=_reason(of))
    says_the_same = (known.question, known.text) == (
        piece.fact.question, piece.fact.text,
    )  # fmt: skip
    changes: EntryChanges = {
        "text": piece.fact.text,
        "question": piece.fact.question,
        "place": piece.fact.place,
        "own_key": piece.fact.id,
        # An entry that was matched by its words keeps its key.
        "source_key": known.source_key if says_the_same else piece.fact.key,
        "source_digest": piece.fact.digest,
    }
    # Even with the same text: nobody has verified that it answers these questions.
    was_verified = known.state == Entry.State.VERIFIED
    if piece.fact.wordings and was_verified and of.verify_as is None:
        changes["state"] = Entry.State.NEEDS_REVIEW
    if _has_place(piece):
        changes["section"] = section
    entry = edit_entry(
        entry_id=known.pk,
        author=author,
        may_verify=of.verify_as is not None,
        reason=_reason(of),
        prepared=prepared,
        **changes,
    )
    # An expired entry stays unverified: the file does not extend its validity.
    is_verified = entry.state == Entry.State.VERIFIED
    if of.verify_as is not None and not (
        is_verified or entry.has_expired(timezone.now())
    ):
        verify_entry(entry_id=entry.pk, by=of.verify_as, reason=_reason(of))


def _move(of: Import, unchanged: Sequence[Piece], sections: Sections) -> None:
    """Store where unchanged entries are now; a new section makes a new revision."""
    places: dict[int, dict[str, Any]] = {}
    for each in unchanged:
        if each.entry is None:
            continue
        place = _place(each, each.entry, sections)
        if any(getattr(each.entry, name) != value for name, value in place.items()):
            places[each.entry.pk] = place
    moved = lock_all(places)
    elsewhere = [
        entry for entry in moved if entry.section_id != places[entry.pk]["section_id"]
    ]
    for entry in moved:
        for name, value in places[entry.pk].items():
            setattr(entry, name, value)
    fields = ["place", "section", "own_key", "source_digest"]
    Entry.objects.bulk_update(moved, fields, batch_size=500)
    record(elsewhere, author=of.verify_as or of.created_by, reason=_reason(of))


def _place(piece: Piece, entry: Entry, sections: Sections) -> dict[str, Any]:
    """Return the place, section, key and digest of an unchanged entry by its source."""
    section_id = entry.section_id
    if _has_place(piece):
        section = _section(piece, sections)
        section_id = section.pk if section else None
    is_retired = entry.state == Entry.State.RETIRED
    return {
        "place": piece.fact.place,
        "section_id": section_id,
        "own_key": piece.fact.id or entry.own_key,
        # An edit in Nescio may have given it the file's words.
        "source_digest": entry.source_digest if is_retired else piece.fact.digest,
    }


def _has_place(piece: Piece) -> bool:
    """Return whether the source says in which section the fact is.

    A table may not; then an entry stays in the section that a curator gave it.
    """
    return piece.source.headings is not None or bool(piece.fact.headings)


def _section(piece: Piece, sections: Sections) -> Section | None:
    return sections[piece.source.name].get(piece.fact.headings)


def edited_by_people(entries: Collection[Entry]) -> frozenset[int]:
    """Return the ids of entries that differ from what their last import wrote."""
    left = (
        Revision.objects.filter(entry__in=entries, reason__regex=_BY_IMPORT)
        .order_by("entry_id", "-number")
        .distinct("entry_id")
        .values_list("entry_id", "question", "text")
    )
    said = {entry_id: (question, text) for entry_id, question, text in left}
    return frozenset(
        entry.pk
        for entry in entries
        if entry.pk in said and said[entry.pk] != (entry.question, entry.text)
    )


_BY_IMPORT = r"^(Import \d+ of|Followed source) "


def _reason(of: Import) -> str:
    if of.followed is not None:
        return f"Followed source {of.followed}: {of.source}"[:300]
    return f"Import {of.pk} of {of.file_name}"[:300]
