"""Splits a file into facts, with their document and the entries that they reword."""

import time
from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import closing
from dataclasses import dataclass, field, replace
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
from kb.imports.readers import (
    BadRow,
    Fact,
    GuessedEncoding,
    Limits,
    SourceDocument,
    UnreadColumns,
    Withdrawn,
)
from kb.imports.readers.blocks import HEADED
from kb.imports.readers.child import CHECK_SECONDS, read_in_child
from kb.text.facts import leans, sentences_of

from .decisions import Piece, Source, visible_audiences
from .writing import find_document

_MIB = 1024 * 1024
MIN_LIKENESS = 0.6
"""Least word overlap of two wordings of one fact (Dice's coefficient)."""

_MAX_NAMED = 20
"""Maximum number of columns or rows that a note names."""

_MAX_LEFT_OUT = 5
"""Maximum number of lines about the document itself that a note quotes."""

_MAX_RUN = 40
"""Maximum sentences of a run; no entry was ever longer, whichever rules cut it."""

MAX_COMPARISONS = 250_000
"""Above this nothing is paired: a document that different is a new one."""


def reworded(
    facts: Sequence[Fact], document: Document, audiences: frozenset[int] | None
) -> dict[str, int]:
    """Return, by the keys of new facts, the entries that they reword.

    The most similar texts are paired first. Facts that already have an entry match it
    by key and are left out.
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
    """Return, by new key, the old text that each new one rewords; each is used once."""
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


def as_it_stands(
    read: SourceDocument,
    document: Document,
    language: str,
    check: Callable[[], None] = lambda: None,
) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
    """Return the facts of a new version, cut like the existing entries.

    The cutting rules may change between releases: a repeated import would replace every
    entry and lose its verification. So a paragraph stays split into several entries if
    they hold most of its sentences; a single entry is cut by the current rules. Text
    that a new document would leave out stays if it is an entry already; the rest is
    returned second. A table stored without the mark below its headings keeps that form.
    """
    rows = Entry.objects.filter(document=document).exclude(source_key="")
    rows = rows.exclude(source_digest="")
    standing = frozenset(rows.values_list("source_key", flat=True))
    facts: list[Fact] = []
    for found in _checking(read.facts, check):
        bare = replace(found, text=found.text.replace(f"\n{HEADED}", "", 1))
        fact = bare if found.key not in standing and bare.key in standing else found
        is_prose = "\n" not in fact.text
        runs = _runs(fact, standing, language) if is_prose else [fact]
        facts += runs if _stays_cut(runs, standing, language) else [fact]
    left_out: list[Fact] = []
    for fact in _checking(read.left_out, check):
        for run in _runs(fact, standing, language):
            (facts if run.key in standing else left_out).append(run)
    return tuple(facts), tuple(left_out)


def _checking(facts: Iterable[Fact], check: Callable[[], None]) -> Iterator[Fact]:
    checked = time.monotonic()
    for fact in facts:
        if time.monotonic() - checked >= CHECK_SECONDS:
            check()
            checked = time.monotonic()
        yield fact


def _runs(fact: Fact, standing: Collection[str], language: str) -> list[Fact]:
    """Cut a fact into the longest runs of sentences that are entries, and the rest."""
    if fact.key in standing or not standing:
        return [fact]
    said = sentences_of(fact.text, language)
    found: list[Fact] = []
    at = 0
    while at < len(said):
        ends = range(min(at + _MAX_RUN, len(said)), at, -1)
        runs = ((end, replace(fact, text=" ".join(said[at:end]))) for end in ends)
        alone = at + 1, replace(fact, text=said[at])
        at, run = next((each for each in runs if each[1].key in standing), alone)
        found.append(run)
    return found


def _stays_cut(runs: Sequence[Fact], standing: Collection[str], language: str) -> bool:
    """Return whether several entries hold most sentences and the rest stands alone."""
    stand = [run for run in runs if run.key in standing]
    new = [run.text for run in runs if run.key not in standing]
    number = sum(len(sentences_of(run.text, language)) for run in stand)
    return len(stand) > 1 and number > len(new) and not any(map(leans, new))


def pieces(
    of: Import,
    stream: IO[bytes],
    check: Callable[[], None] = lambda: None,
    note: Callable[[str], None] = lambda _: None,
) -> Generator[Piece | BadRow]:
    """Yield every fact of the file with its document, in the same order each time.

    `check` is called about twice a second while the file is read; an exception from it
    ends the reading. `note` receives notes on the file as a whole.
    """
    title = of.document_title or _readable(of.file_name)
    rows = Source(name=of.source, title=title, headings=None, pairs={})
    met: set[str] = set()
    notes = _Notes()
    has_rows = False
    language = of.knowledge_base.language
    found = read_in_child(
        stream, of.format, language=language, limits=limits(), check=check
    )
    with closing(found):
        for item in found:
            if isinstance(item, Fact):
                has_rows = True
                yield Piece(rows, item)
            elif isinstance(item, SourceDocument):
                if has_rows and not item.source:  # articles in another sheet
                    item = replace(item, source=f"{rows.name} (articles)")
                yield from _of_document(of, item, rows, met, notes.lines, check)
            elif isinstance(item, BadRow):
                yield item
            else:
                notes.take(item, of.audience)
    for said in notes.said():
        note(said)


@dataclass(slots=True)
class _Notes:
    """Collects notes on a file as a whole, and on what makes no entry."""

    lines: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)

    def take(
        self, item: UnreadColumns | Withdrawn | GuessedEncoding, audience: Audience
    ) -> None:
        if isinstance(item, Withdrawn):
            self.withdrawn.append(item.place)
        elif isinstance(item, GuessedEncoding):
            self.first.append(
                f"It declares no encoding and is read as {item.name}; if letters are "
                "wrong, save it as UTF-8."
            )
        else:
            if item.understood:
                named = ", ".join(item.understood)
                self.first.append(f"Columns read by other names: {named}.")
            if item.names:
                self.first.append(_left_out(item.names, audience))

    def said(self) -> Iterator[str]:
        yield from self.first
        if self.lines:
            yield _about_itself(self.lines)
        if self.withdrawn:
            is_one = len(self.withdrawn) == 1
            what = "row is a draft or" if is_one else "rows are drafts or"
            named = first_of(self.withdrawn, _MAX_NAMED)
            yield f"{len(self.withdrawn)} {what} withdrawn, and left out: {named}."


def _readable(file_name: str) -> str:
    """Return a readable title: "Faq renamed" for "faq_renamed.csv"."""
    words = PurePath(file_name).stem.replace("_", " ").split()
    title = " ".join(words) or file_name
    return title[:1].upper() + title[1:]


def _about_itself(left_out: Sequence[str]) -> str:
    named = first_of([f"{line!r}" for line in left_out], _MAX_LEFT_OUT)
    what = "line" if len(left_out) == 1 else "lines"
    return (
        f"{len(left_out)} {what} about the document itself, or beside its text, made no "
        f"entry: {named}."
    )


def _left_out(names: Sequence[str], audience: Audience) -> str:
    note = f"Columns that are not read: {first_of(names, _MAX_NAMED)}."
    if "audience" in names:
        note += (
            f" All entries get the audience {audience.slug!r}, whatever the column "
            "audience says."
        )
    return note


def _of_document(
    of: Import,
    item: SourceDocument,
    rows: Source,
    met: set[str],
    left_out: list[str],
    check: Callable[[], None],
) -> Iterator[Piece | BadRow]:
    name = item.source or rows.name
    if name in met:
        yield BadRow(
            item.place,
            f"The document {name!r} appears above; give it a source of its own.",
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
    if not item.source:  # the file's only document, whose title may be overridden
        title = of.document_title or title
    document = find_document(of, name)
    audiences = visible_audiences(of.created_by)
    facts, gone, pairs = item.facts, item.left_out, dict[str, int]()
    if document:
        facts, gone = as_it_stands(item, document, of.knowledge_base.language, check)
        pairs = reworded(facts, document, audiences)
    source = Source(name=name, title=title, headings=item.headings, pairs=pairs)
    left_out += (line for fact in gone for line in fact.text.splitlines())
    for fact in facts:
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
    """Raise if the user may not use the audience, or the document has another one."""
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
