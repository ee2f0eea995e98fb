"""A file taken apart: every fact with the document that it belongs to."""

from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import PurePath
from typing import IO

from kb.exceptions import InvalidKnowledgeError
from kb.importing import BadRow, Fact, SourceDocument, read
from kb.models import Import
from kb.services.documents import SECTIONS_LIMIT

from .deciding import visible_audiences
from .documents import find_document
from .matching import reworded
from .uploads import check_audience, limits
from .values import Located, Piece, Source


def pieces(of: Import, stream: IO[bytes]) -> Generator[Piece]:
    """Yield every fact of the file with its document; the same ones each time.

    Raises:
        ImportFileError: The file can not be read.
    """
    title = of.document_title or PurePath(of.file_name).stem
    rows = Source(name=of.source, title=title, headings=None, pairs={})
    met: set[str] = set()
    for item in read(
        stream, of.format, language=of.knowledge_base.language, limits=limits()
    ):
        if isinstance(item, Fact):
            yield Located(rows, item)
        elif isinstance(item, SourceDocument):
            yield from _of_document(of, item, rows, met)
        else:
            yield item


def _of_document(
    of: Import, item: SourceDocument, rows: Source, met: set[str]
) -> Iterator[Piece]:
    name = item.source or rows.name
    if name in met:
        yield BadRow(
            item.place,
            f"The document {name!r} stands above already; give it a source of its own.",
        )
        return
    met.add(name)
    if len(item.headings) > SECTIONS_LIMIT:
        yield BadRow(
            item.place,
            f"It has {len(item.headings)} headings and may have {SECTIONS_LIMIT}; split "
            "it.",
        )
        return
    try:
        check_audience(of.knowledge_base, name, of.audience, of.created_by)
    except InvalidKnowledgeError as error:
        yield BadRow(item.place, str(error))
        return
    title = item.title or rows.title
    if not item.source:  # the file's only one, which may be given another title
        title = of.document_title or title
    document = find_document(of, name)
    audiences = visible_audiences(of.created_by)
    source = Source(
        name=name,
        title=title,
        headings=item.headings,
        pairs=reworded(item.facts, document, audiences) if document else {},
    )
    for fact in item.facts:
        yield Located(source, fact)


def batches(found: Iterator[Piece], size: int) -> Iterator[list[Piece]]:
    """Yield `found` in lists of `size`."""
    while batch := list(islice(found, size)):
        yield batch
