"""A file taken apart: its facts, with their document and the entries they reword."""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import PurePath
from typing import IO

from django.conf import settings
from django.contrib.auth.models import User

from accounts.exceptions import first_of
from kb.audiences.models import Audience
from kb.documents.models import Document, KnowledgeBase
from kb.documents.services import SECTIONS_LIMIT
from kb.entries.models import Entry
from kb.exceptions import AudienceNotFoundError, InvalidKnowledgeError
from kb.imports.models import Import
from kb.imports.readers import BadRow, Fact, Limits, SourceDocument, UnreadColumns
from kb.imports.readers.child import read_in_child

from .decisions import Piece, Source, visible_audiences
from .writing import find_document

_MIB = 1024 * 1024
MIN_LIKENESS = 0.6
"""Share of words that two wordings of one fact have in common (Dice's coefficient)."""

_MAX_NAMED = 20
"""Columns that a note names."""

MAX_COMPARISONS = 250_000
"""Beyond it nothing is paired: so different a document is a new one."""


def reworded(
    facts: Sequence[Fact], document: Document, audiences: frozenset[int] | None
) -> dict[str, int]:
    """Return entries by the keys of the facts that take their place, most alike first.

    Facts that an entry already holds pair with it by their key and are left out.
    """
    keys = {fact.key for fact in facts}
    standing = Entry.objects.filter(document=document).exclude(source_key="")
    rows = standing.values_list(
        "source_key", "pk", "source_digest", "state", "audience_id"
    )
    known, gone = set(), []
    for key, pk, digest, state, audience in rows:
        known.add(key)
        is_mine = audiences is None or audience in audiences
        if key not in keys and digest and is_mine and state != Entry.State.RETIRED:
            gone.append(pk)
    new = {fact.key: fact for fact in facts if not fact.id and fact.key not in known}
    if not new or not gone or len(new) * len(gone) > MAX_COMPARISONS:
        return {}
    texts = Entry.objects.filter(pk__in=gone).values_list("pk", "question", "text")
    return pair(
        {pk: f"{question} {text}" for pk, question, text in texts},
        {key: f"{fact.question} {fact.text}" for key, fact in new.items()},
    )


def pair(old: Mapping[int, str], new: Mapping[str, str]) -> dict[str, int]:
    """Return the old text that each new one rewords, each at most once."""
    words = {pk: Counter(text.lower().split()) for pk, text in old.items()}
    candidates = []
    for key, text in new.items():
        mine = Counter(text.lower().split())
        for pk, theirs in words.items():
            likeness = 2 * (mine & theirs).total() / (mine.total() + theirs.total())
            if likeness >= MIN_LIKENESS:
                candidates.append((-likeness, pk, key))
    pairs: dict[str, int] = {}
    taken: set[int] = set()
    for _, pk, key in sorted(candidates):
        if pk not in taken and key not in pairs:
            pairs[key] = pk
            taken.add(pk)
    return pairs


def pieces(
    of: Import,
    stream: IO[bytes],
    check: Callable[[], None] = lambda: None,
    note: Callable[[str], None] = lambda _: None,
) -> Generator[Piece | BadRow]:
    """Yield every fact of the file with its document; the same ones each time.

    `check` is called about twice a second while the file is read, and ends that by what
    it raises. `note` gets what is to be said of the file as a whole.
    """
    title = of.document_title or PurePath(of.file_name).stem
    rows = Source(name=of.source, title=title, headings=None, pairs={})
    met: set[str] = set()
    language = of.knowledge_base.language
    found = read_in_child(
        stream, of.format, language=language, limits=limits(), check=check
    )
    with closing(found):
        for item in found:
            if isinstance(item, Fact):
                yield Piece(rows, item)
            elif isinstance(item, SourceDocument):
                yield from _of_document(of, item, rows, met)
            elif isinstance(item, UnreadColumns):
                note(_left_out(item.names, of.audience))
            else:
                yield item


def _left_out(names: Sequence[str], audience: Audience) -> str:
    note = f"Columns that are not read: {first_of(names, _MAX_NAMED)}."
    if "audience" in names:
        note += (
            f" All entries get the audience {audience.slug!r}, whatever the column "
            "audience says."
        )
    return note


def _of_document(
    of: Import, item: SourceDocument, rows: Source, met: set[str]
) -> Iterator[Piece | BadRow]:
    name = item.source or rows.name
    if name in met:
        yield BadRow(
            item.place,
            f"The document {name!r} is above already; give it a source of its own.",
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
        yield Piece(source, fact)


def batches(
    found: Iterator[Piece | BadRow], size: int
) -> Iterator[list[Piece | BadRow]]:
    while batch := list(islice(found, size)):
        yield batch


def limits() -> Limits:
    return Limits(
        file_bytes=settings.IMPORT_MAX_MIB * _MIB,
        unpacked_bytes=settings.IMPORT_MAX_UNPACKED_MIB * _MIB,
        paragraphs=settings.IMPORT_MAX_PARAGRAPHS,
        memory_bytes=settings.IMPORT_MAX_MEMORY_MIB * _MIB,
        seconds=settings.IMPORT_MAX_SECONDS,
    )


def check_audience(
    knowledge_base: KnowledgeBase, source: str, audience: Audience, by: User | None
) -> None:
    """Refuse an audience of others, and a document that another audience has."""
    mine = Audience.objects.visible_to(by) if by is not None else Audience.objects.all()
    if not mine.filter(pk=audience.pk).exists():
        raise AudienceNotFoundError(f"There is no audience {audience.slug!r}.")
    documents = Document.objects.filter(knowledge_base=knowledge_base, source=source)
    if by is not None:
        documents = documents.visible_to(by)
    others = list(documents.select_related("audience").order_by("pk")[:2])
    if others and all(each.audience_id != audience.pk for each in others):
        raise InvalidKnowledgeError(
            "audience",
            f"{source!r} was imported for the audience {others[0].audience.slug!r} "
            "already; take that one, or another source.",
        )
