"""The archive format: the file of each model, and how each field's value is stored.

Rows refer to users by username, to groups by name, to models with a slug by it, and to
other rows by their 1-based number in the order of ids, so writing a restored archive
again gives the same rows.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from django.db.models import Field, Model
from pydantic import BaseModel, ConfigDict, StrictBool, ValidationError
from pydantic import Field as Checked

from kb.audiences.models import Audience
from kb.conflicts.models import Conflict
from kb.documents.models import Document, KnowledgeBase, Section
from kb.enrichment.models import Proposal
from kb.entries.models import Entry, Revision
from kb.entries.wordings import Wording
from kb.exceptions import InvalidArchiveError
from kb.interface.api import NAMED_BY
from kb.synonyms.models import Synonym
from kb.tags.models import Tag


@dataclass(frozen=True, slots=True)
class Column:
    field: str
    by: str = ""  # for a reference: the field that names the row, "username" or "slug"
    table: str = ""  # for a reference by number: the table it points to
    since: int = 1  # the format version that introduced it
    is_list: bool = False  # a list of pairs of such a reference and a number

    @property
    def path(self) -> str:
        if self.is_list or not (self.by or self.table):
            return self.field
        return f"{self.field}__{self.by or 'pk'}"


@dataclass(frozen=True)
class Table:
    """One file of an archive: a model's fields, except those created on restoring."""

    name: str
    model: type[Model]
    left_out: frozenset[str] = frozenset({"id"})  # fields created on restoring
    since: int = 1  # the format version that introduced it
    named: str = ""  # the column with names of users or groups
    pairs: str = ""  # the column with pairs of an entry and a number

    @property
    def file(self) -> str:
        return f"{self.name}.jsonl"

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        fields = [
            field.name
            for field in self.model._meta.concrete_fields
            if field.name not in self.left_out
        ]
        return tuple(self._column(name) for name in fields) + (
            (Column(self.named),) if self.named else ()
        )

    def field(self, column: Column) -> "Field[Any, Any]":
        field = self.model._meta.get_field(column.field)
        if not isinstance(field, Field):
            raise TypeError(f"{column.field} is not a concrete field of {self.name}")
        return field

    def _column(self, name: str) -> Column:
        if name == self.pairs:
            return Column(name, table="entries", is_list=True)
        referred = self.model._meta.get_field(name).related_model
        since = _SINCE.get((self.name, name), 1)
        if referred is None:
            return Column(name, since=since)
        if by := NAMED_BY.get(referred):
            return Column(name, by=by, since=since)
        return Column(name, table=_NUMBERED[referred], since=since)


_SINCE = (
    {
        (table, facet): 2
        for table in ("entries", "revisions")
        for facet in Tag.Facet.values
    }
    | {("wordings", name): 4 for name in ("answers", "is_imported")}
    | {("entries", "own_key"): 6, ("knowledge_bases", "archived_at"): 7}
)
"""The format version that introduced a column, where its table is older."""
_NUMBERED: Mapping[Any, str] = {
    Document: "documents", Section: "sections", Entry: "entries",
}  # fmt: skip

KNOWLEDGE_BASES = Table("knowledge_bases", KnowledgeBase)
AUDIENCES = Table("audiences", Audience, named="groups")
TAGS = Table("tags", Tag, since=2, named="experts")
DOCUMENTS = Table("documents", Document)
SECTIONS = Table("sections", Section)
ENTRIES = Table("entries", Entry, left_out=frozenset({"id", "search_vector"}))
REVISIONS = Table("revisions", Revision)
WORDINGS = Table("wordings", Wording, since=3)
SYNONYMS = Table("synonyms", Synonym, since=5)
CONFLICTS = Table("conflicts", Conflict)
PROPOSALS = Table(
    "proposals", Proposal, left_out=frozenset({"id", "job"}), since=2, pairs="nearest"
)

TABLES = (
    KNOWLEDGE_BASES, AUDIENCES, TAGS, DOCUMENTS, SECTIONS, ENTRIES, REVISIONS, CONFLICTS,
    PROPOSALS, WORDINGS, SYNONYMS,
)  # fmt: skip
"""In the order of writing and reading: a table comes after those it refers to."""


FILE = "manifest.json"
FORMAT: Final = "nescio-knowledge"
VERSION = 7


_Count = Annotated[int, Checked(ge=0, strict=True)]


class FileFacts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: _Count
    bytes: _Count
    sha256: str


class Manifest(BaseModel):
    """The description of an archive; `complete` means not limited to one reader."""

    model_config = ConfigDict(frozen=True)

    format: Literal["nescio-knowledge"] = FORMAT
    version: int = VERSION
    complete: StrictBool
    knowledge_bases: tuple[str, ...]
    files: dict[str, FileFacts]

    def to_json(self) -> str:
        return json.dumps(self.model_dump(), indent=2, ensure_ascii=False) + "\n"


_EMPTY = FileFacts(rows=0, bytes=0, sha256=hashlib.sha256(b"").hexdigest())


def parse_manifest(text: bytes) -> Manifest:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArchiveError(f"{FILE} is not JSON: {error}.") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise InvalidArchiveError(
            f"{FILE} does not belong to a knowledge archive; use a file that "
            "export_knowledge wrote."
        )
    if values.get("version") not in range(1, VERSION + 1):
        raise InvalidArchiveError(
            f"The archive has version {values.get('version')!r} of the format and this "
            f"installation reads 1 to {VERSION}; export it again with this version, or "
            "upgrade."
        )
    try:
        manifest = Manifest.model_validate(values)
        files = {
            table.name: manifest.files[table.name]
            if table.since <= manifest.version
            else _EMPTY
            for table in TABLES
        }
    except (KeyError, ValidationError) as error:
        found = str(error)
        if isinstance(error, ValidationError):
            found = "; ".join(
                f"{'.'.join(map(str, each['loc']))}: {each['msg']}"
                for each in error.errors()
            )
        raise InvalidArchiveError(
            f"{FILE} is missing or has invalid values: {found}."
        ) from error
    return manifest.model_copy(update={"files": files})
