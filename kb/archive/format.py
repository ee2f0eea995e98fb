"""What an archive holds: for each model its file and, field by field, how a value is kept.

A row is a JSON object of the model's fields by name. Users stand by username, knowledge
bases, audiences and tags by slug, groups by name; documents, sections and entries by their
number in the archive, 1-based in the order of their ids: so what was restored elsewhere,
under other ids, makes the same archive again.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Field, Model

from kb.audiences.models import Audience
from kb.conflicts.models import Conflict
from kb.documents.models import Document, KnowledgeBase, Section
from kb.enrichment.models import Proposal
from kb.entries.models import Entry, Revision
from kb.exceptions import InvalidArchiveError
from kb.tags.models import Tag


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a table.

    Attributes:
        field: Its name, in the model and in the archive.
        by: For a reference, what names the row referred to: its "username" or "slug".
        table: For a reference by number, the table that it leads to.
        since: The version of the format that brought it.
        is_list: Of pairs of such a reference and a number.
    """

    field: str
    by: str = ""
    table: str = ""
    since: int = 1
    is_list: bool = False

    @property
    def path(self) -> str:
        """What a query reads it by."""
        if self.is_list or not (self.by or self.table):
            return self.field
        return f"{self.field}__{self.by or 'pk'}"


@dataclass(frozen=True, slots=True)
class Table:
    """One file of an archive.

    Attributes:
        left_out: Fields that are made anew.
        since: The version of the format that brought it.
        named: The column, if any, that holds a list of the names of users or groups.
    """

    name: str
    model: type[Model]
    columns: tuple[Column, ...]
    left_out: frozenset[str] = frozenset({"id"})
    since: int = 1
    named: str = ""

    @property
    def file(self) -> str:
        """Its name in the archive."""
        return f"{self.name}.jsonl"

    def field(self, column: Column) -> "Field[Any, Any]":
        field = self.model._meta.get_field(column.field)
        if not isinstance(field, Field):
            raise TypeError(f"{column.field} of {self.name} is no field of its own")
        return field


_KNOWLEDGE_BASE = Column("knowledge_base", by="slug")
_AUDIENCE = Column("audience", by="slug")
_DOCUMENT = Column("document", table="documents")
_SECTION = Column("section", table="sections")
_OWNER = Column("owner", by="username")
_TAGS = tuple(Column(facet, by="slug", since=2) for facet in Tag.Facet.values)
_VERIFIER = Column("verified_by", by="username")


def _plain(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name) for name in names)


KNOWLEDGE_BASES = Table(
    "knowledge_bases",
    KnowledgeBase,
    _plain(
        "slug",
        "name",
        "language",
        "review_interval_days",
        "when_overdue",
        "overdue_grace_days",
        "created_at",
    ),
)
AUDIENCES = Table(
    "audiences",
    Audience,
    _plain("slug", "name", "everyone", "groups"),
    named="groups",
)
TAGS = Table(
    "tags",
    Tag,
    _plain("slug", "name", "facet", "experts"),
    since=2,
    named="experts",
)
DOCUMENTS = Table(
    "documents",
    Document,
    (
        _KNOWLEDGE_BASE,
        *_plain("title", "source"),
        _AUDIENCE,
        Column("created_by", by="username"),
        *_plain("created_at", "updated_at"),
    ),
)
SECTIONS = Table(
    "sections",
    Section,
    (_DOCUMENT, Column("parent", table="sections"), *_plain("heading", "position")),
)
ENTRIES = Table(
    "entries",
    Entry,
    (
        _KNOWLEDGE_BASE,
        _DOCUMENT,
        _SECTION,
        *_plain("place", "source_key", "source_digest"),
        *_plain("question", "text", "state", "origin", "confidence"),
        _AUDIENCE,
        *_plain("language", "valid_until"),
        _OWNER,
        *_TAGS,
        _VERIFIER,
        *_plain("verified_at", "review_interval_days", "created_at", "updated_at"),
    ),
    left_out=frozenset({"id", "search_vector"}),
)
REVISIONS = Table(
    "revisions",
    Revision,
    (
        Column("entry", table="entries"),
        *_plain("number", "question", "text", "state", "confidence"),
        *_plain("valid_until", "language"),
        _AUDIENCE,
        _DOCUMENT,
        _SECTION,
        _OWNER,
        *_TAGS,
        _VERIFIER,
        *_plain("verified_at", "review_interval_days"),
        Column("author", by="username"),
        *_plain("reason", "database_user", "created_at"),
    ),
)
CONFLICTS = Table(
    "conflicts",
    Conflict,
    (
        Column("first", table="entries"),
        Column("second", table="entries"),
        *_plain("first_revision", "second_revision", "texts_sha256", "kind", "score"),
        *_plain("distance", "reasons", "model", "state"),
        Column("kept", table="entries"),
        Column("resolved_by", by="username"),
        *_plain("resolved_at", "reason", "found_at"),
    ),
)
PROPOSALS = Table(
    "proposals",
    Proposal,
    (
        _KNOWLEDGE_BASE,
        Column("entry", table="entries"),
        *_plain("seed_question", "question", "question_sha256", "answer", "sentence"),
        *_plain("stated", "agreement", "likelihood", "confidence"),
        *_plain("model_name", "model_fingerprint", "prompt_version", "random_seed"),
        Column("nearest", table="entries", is_list=True),
        Column("state"),
        Column("decided_by", by="username"),
        *_plain("decided_at", "reason", "created_at"),
    ),
    left_out=frozenset({"id", "job"}),
    since=2,
)

TABLES = (
    KNOWLEDGE_BASES,
    AUDIENCES,
    TAGS,
    DOCUMENTS,
    SECTIONS,
    ENTRIES,
    REVISIONS,
    CONFLICTS,
    PROPOSALS,
)
"""In the order in which they are written and read: what is referred to comes first."""


# The first thing that is read of an archive: what it is, and what each file must
# hold.


FILE = "manifest.json"
FORMAT = "nescio-knowledge"
VERSION = 2
_READ = (1, VERSION)
_NOTHING = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a file of the archive must be: lines, bytes before compression, digest."""

    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive says of itself.

    Attributes:
        complete: Whether it holds everything of its knowledge bases, and not only what
            one user may see.
        files: By table; one that an earlier version has not is empty.
        version: Of the format.
    """

    complete: bool
    knowledge_bases: tuple[str, ...]
    files: Mapping[str, FileFacts]
    version: int = VERSION

    def to_json(self) -> str:
        """Return it as it stands in the archive; the same facts give the same bytes."""
        values = {
            "format": FORMAT,
            "version": self.version,
            "complete": self.complete,
            "knowledge_bases": list(self.knowledge_bases),
            "files": {name: asdict(facts) for name, facts in self.files.items()},
        }
        return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def parse_manifest(text: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        InvalidArchiveError: It is none, or one of another version.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArchiveError(f"{FILE} is no JSON: {error}.") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise InvalidArchiveError(
            f"{FILE} is not that of a knowledge archive; take a file that "
            "export_knowledge wrote."
        )
    if values.get("version") not in _READ:
        raise InvalidArchiveError(
            f"The archive has version {values.get('version')!r} of the format and this "
            f"installation reads 1 to {VERSION}; export it again with this version, or "
            "upgrade."
        )
    return _manifest(values)


def _manifest(values: dict[str, Any]) -> Manifest:
    try:
        files = {
            table.name: FileFacts(**values["files"][table.name])
            if table.since <= values["version"]
            else FileFacts(rows=0, bytes=0, sha256=_NOTHING)
            for table in TABLES
        }
        manifest = Manifest(
            complete=values["complete"],
            knowledge_bases=tuple(values["knowledge_bases"]),
            files=files,
            version=values["version"],
        )
    except (KeyError, TypeError) as error:
        raise InvalidArchiveError(
            f"{FILE} lacks what it should say: {error}."
        ) from error
    for name, facts in files.items():
        numbers = (facts.rows, facts.bytes)
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise InvalidArchiveError(
                f"{FILE} gives {name} no counts of rows and bytes."
            )
    return manifest
