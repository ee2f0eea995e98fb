"""The documents that an import writes into: found, made, and given their sections."""

from collections.abc import Iterable, Mapping

from kb.models import Document, Import, KnowledgeBase, Section
from kb.services.documents import (
    SectionNode,
    create_document,
    edit_document,
    section_tree,
)

from .values import Source

Path = tuple[str, ...]


def find_document(of: Import, source: str) -> Document | None:
    """Return the document that the source's earlier version became, if any."""
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
    """Return the documents by the sources' names, locked; those that lack are made.

    A document keeps the title that a curator gave it.

    Raises:
        InvalidKnowledgeError: A title that may not be written.
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
        # Two imports that make one document wait for each other here.
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


def sections_of(
    of: Import, document: Document, headings: tuple[Path, ...] | None
) -> Mapping[Path, Section]:
    """Bring the document's tree in step with its headings; return the sections by path.

    Siblings with one heading are one section. A heading that is no longer there goes;
    the entries below it stay with the document.

    Raises:
        InvalidKnowledgeError: The tree is too big.
    """
    if headings is None:
        return {}
    known = _by_path(document)
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
