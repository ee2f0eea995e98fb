import hashlib
import uuid
from dataclasses import dataclass
from pathlib import PurePath
from typing import IO

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files import File
from django.db import transaction

from kb.audiences.models import Audience
from kb.documents.models import Document, KnowledgeBase
from kb.documents.services import SOURCE_LIMIT, TITLE_LIMIT
from kb.entries.values import check_tag
from kb.exceptions import AudienceNotFoundError, InvalidKnowledgeError
from kb.imports.models import Import
from kb.imports.readers import Limits, detect_format
from kb.tags.models import Tag
from kb.text.cleaning import clean_line

_NAME_LIMIT = 200
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file and how it is to be read.

    Attributes:
        name: The file's name; a path's last part.
        source: Names the document; empty takes the name. A file with the source of one
            that was imported before is a new version of it.
        title: Of the document; empty takes its own, or the name without its ending.
        verify: Whether who imports it vouches for what it says.
        product_line: What new entries are about, and so `line_of_business`.
    """

    file: IO[bytes]
    name: str
    knowledge_base: KnowledgeBase
    audience: Audience
    source: str = ""
    title: str = ""
    verify: bool = False
    product_line: Tag | None = None
    line_of_business: Tag | None = None


def limits() -> Limits:
    return Limits(
        file_bytes=settings.IMPORT_MAX_MIB * _MIB,
        unpacked_bytes=settings.IMPORT_MAX_UNPACKED_MIB * _MIB,
    )


@transaction.atomic
def start_import(upload: Upload, *, by: User | None) -> Import:
    """Keep a file that is to be planned or applied; nothing of it is read yet.

    Args:
        by: Who imports it, and only into what he may see; None for the system itself.

    Raises:
        InvalidKnowledgeError: A value that may not be written.
    """
    name, source, title = _named(upload)
    if upload.verify and by is None:
        raise InvalidKnowledgeError(
            "verify", "verify needs an author: only a person verifies."
        )
    file_format = detect_format(name, upload.file, limits())
    check_audience(upload.knowledge_base, source, upload.audience, by)
    begun = Import(
        knowledge_base=upload.knowledge_base,
        audience=upload.audience,
        file_name=name,
        file_sha256=hashlib.file_digest(upload.file, "sha256").hexdigest(),  # type: ignore[arg-type]  # any binary file will do
        format=file_format,
        source=source,
        document_title=title,
        verify_as=by if upload.verify else None,
        created_by=by,
        product_line=check_tag(Tag.Facet.PRODUCT_LINE, upload.product_line),
        line_of_business=check_tag(Tag.Facet.LINE_OF_BUSINESS, upload.line_of_business),
    )
    upload.file.seek(0)
    kept = f"{uuid.uuid4().hex}{PurePath(name).suffix.lower()}"
    begun.file.save(kept, File(upload.file), save=False)
    begun.save()
    return begun


def unfinished_import(upload: Upload, *, by: User | None) -> Import | None:
    """Return the import of the same file in the same way that was broken off, if any.

    One that a job works on is left to that.
    """
    _, source, title = _named(upload)
    digest = hashlib.file_digest(upload.file, "sha256").hexdigest()  # type: ignore[arg-type]  # any binary file will do
    upload.file.seek(0)
    return Import.objects.filter(
        file_sha256=digest,
        knowledge_base=upload.knowledge_base,
        audience=upload.audience,
        source=source,
        document_title=title,
        created_by=by,
        verify_as=by if upload.verify else None,
        product_line=upload.product_line,
        line_of_business=upload.line_of_business,
        state=Import.State.APPLYING,
        job_id=None,
    ).first()


def _named(upload: Upload) -> tuple[str, str, str]:
    tail = PurePath(upload.name).name[-_NAME_LIMIT:]
    name = clean_line(tail, field="file", limit=_NAME_LIMIT)
    source = clean_line(upload.source or name, field="source", limit=SOURCE_LIMIT)
    title = clean_line(upload.title, field="title", limit=TITLE_LIMIT, required=False)
    return name, source, title


def check_audience(
    knowledge_base: KnowledgeBase, source: str, audience: Audience, by: User | None
) -> None:
    """Refuse an audience that `by` is not in, and a second copy of a document for another.

    Raises:
        AudienceNotFoundError: `by` is not in it.
        InvalidKnowledgeError: The document is there already, for another audience that
            `by` is in.
    """
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
