"""Creating and changing entries: each function is one transaction.

An entry, its revision and its vector under the active embedding model are written
together, so what is answered changes with the entry and never before or after it. Locks
are taken in one order everywhere: the active model (shared), then entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict, Unpack

from django.contrib.auth.models import User
from django.db import transaction

from kb.audiences.models import Audience
from kb.conflicts.finding import refresh_conflicts_of
from kb.documents.models import Document, KnowledgeBase, Section
from kb.embedding.services import PreparedVectors, active_model, write_vectors
from kb.entries.models import Entry, Revision
from kb.exceptions import InvalidKnowledgeError
from kb.tags.models import Tag

from .revisions import doubt, lock, refuse_retired, revision_of, save, vouch
from .values import (
    UNVERIFIED_CONFIDENCE,
    check_choice,
    check_confidence,
    check_interval,
    check_moment,
    check_place,
    check_state,
    check_tag,
    clean_reason,
    clean_said,
)

# What a verification vouches for: a change of one of these needs a new one.
_VOUCHED = frozenset({"text", "question", "valid_until"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """What an entry is to be; the fields are those of `create_entry`."""

    knowledge_base: KnowledgeBase
    audience: Audience | None
    text: str
    question: str = ""
    document: Document | None = None
    section: Section | None = None
    origin: str = Entry.Origin.MANUAL
    confidence: float = UNVERIFIED_CONFIDENCE
    verify: bool = False
    state: str = Entry.State.DRAFT
    language: str | None = None
    valid_until: datetime | None = None
    owner: User | None = None
    product_line: Tag | None = None
    line_of_business: Tag | None = None
    review_interval_days: int | None = None
    reason: str = ""
    place: str = ""
    source_key: str = ""
    source_digest: str = ""


class EntryChanges(TypedDict, total=False):
    """What an edit may change; a key that is absent stays as it is."""

    text: str
    question: str
    document: Document | None
    section: Section | None
    audience: Audience
    language: str
    valid_until: datetime | None
    owner: User | None
    product_line: Tag | None
    line_of_business: Tag | None
    review_interval_days: int | None
    state: str
    confidence: float
    place: str
    source_key: str
    source_digest: str


class _NewEntryOptions(TypedDict, total=False):
    question: str
    document: Document | None
    section: Section | None
    origin: str
    confidence: float
    verify: bool
    state: str
    language: str | None
    valid_until: datetime | None
    owner: User | None
    product_line: Tag | None
    line_of_business: Tag | None
    review_interval_days: int | None
    reason: str


def create_entry(
    *,
    knowledge_base: KnowledgeBase,
    audience: Audience | None,
    text: str,
    author: User | None,
    **options: Unpack[_NewEntryOptions],
) -> Entry:
    """Write one entry with its first revision and its vector.

    Args:
        audience: Who may see it; None takes the document's.
        author: Who wrote it; None for the system itself.
        options: `question` makes it a question-and-answer entry; `document` and
            `section` say where it stands (a section brings its document); `confidence`
            in (0, 1), by default 0.8; `verify` makes it verified by `author` with
            confidence 1; `state` is draft (the default), in_review or needs_review;
            `language` is by default the knowledge base's; `reason` goes into the
            revision.
    """
    new = NewEntry(
        knowledge_base=knowledge_base, audience=audience, text=text, **options
    )
    return create_entries([new], author=author)[0]


@transaction.atomic
def create_entries(
    new_entries: Sequence[NewEntry],
    *,
    author: User | None,
    prepared: PreparedVectors | None = None,
) -> tuple[Entry, ...]:
    """Write many entries as `create_entry` does, in one transaction and in bulk.

    Args:
        prepared: Vectors made before the transaction; the others are made in it.
    """
    entries = [_build(new, author=author) for new in new_entries]
    model = active_model(for_share=True)
    Entry.objects.bulk_create(entries, batch_size=500)
    Revision.objects.bulk_create(
        [
            revision_of(entry, number=1, author=author, reason=clean_reason(new.reason))
            for entry, new in zip(entries, new_entries, strict=True)
        ],
        batch_size=500,
    )
    write_vectors(entries, model=model, prepared=prepared)
    return tuple(entries)


@transaction.atomic
def edit_entry(
    *,
    entry_id: int,
    author: User | None,
    may_verify: bool,
    expected_revision: int | None = None,
    reason: str = "",
    prepared: PreparedVectors | None = None,
    **changes: Unpack[EntryChanges],
) -> Entry:
    """Change an entry and write what it says now as its next revision.

    A changed text, question or expiry of a verified entry needs a new verification: it
    is `author`'s own where `may_verify`, otherwise the entry goes back to
    needs_review with `UNVERIFIED_CONFIDENCE`. Changes that change nothing write nothing.

    Args:
        expected_revision: The revision number the change was made on; None overwrites
            whatever is there.
        prepared: Vectors made before the transaction.
    """
    model = active_model(for_share=True)
    entry, number = lock(entry_id, expected_revision)
    refuse_retired(entry)
    changed = _apply(entry, changes)
    if "document" in changes or "section" in changes:
        _settle_place(entry, changes)
    if not changed:
        return entry
    _settle_verification(entry, changed, changes, author if may_verify else None)
    save(
        entry,
        number=number + 1,
        author=author,
        reason=clean_reason(reason) or f"Changed {', '.join(sorted(changed))}.",
    )
    if changed & {"text", "question"}:
        write_vectors([entry], model=model, prepared=prepared)
        refresh_conflicts_of(entry.pk)
    return entry


def _build(new: NewEntry, *, author: User | None) -> Entry:
    section = new.section
    document = new.document or (section.document if section else None)
    audience = new.audience or (document.audience if document else None)
    if audience is None:
        raise InvalidKnowledgeError(
            "audience", "audience is missing; name one, or a document that has one."
        )
    entry = Entry(
        knowledge_base=new.knowledge_base,
        document=document,
        section=section,
        audience=audience,
        question=clean_said("question", new.question),
        text=clean_said("text", new.text),
        origin=check_choice("origin", new.origin, Entry.Origin.values),
        language=check_choice(
            "language",
            new.language or new.knowledge_base.language,
            KnowledgeBase.Language.values,
        ),
        valid_until=check_moment(new.valid_until),
        owner=new.owner,
        product_line=check_tag(Tag.Facet.PRODUCT_LINE, new.product_line),
        line_of_business=check_tag(Tag.Facet.LINE_OF_BUSINESS, new.line_of_business),
        review_interval_days=check_interval(new.review_interval_days),
        place=new.place,
        source_key=new.source_key,
        source_digest=new.source_digest,
    )
    check_place(entry)
    if new.verify:
        if author is None:
            raise InvalidKnowledgeError(
                "verify", "verify needs an author: only a person verifies."
            )
        vouch(entry, author)
    else:
        entry.state = _first_state(new)
        entry.confidence = check_confidence(new.confidence)
    return entry


def _first_state(new: NewEntry) -> str:
    """Return the state that an entry begins in; only a model's is ever proposed."""
    is_enriched = new.origin == Entry.Origin.ENRICHED
    if is_enriched and new.state == Entry.State.PROPOSED:
        return Entry.State.PROPOSED
    return check_state(new.state)


def _apply(entry: Entry, changes: EntryChanges) -> set[str]:
    """Set the changed fields but state and confidence; return the names of all changes."""
    cleaned: dict[str, object] = {**changes}
    for name in ("text", "question"):
        if name in changes:
            cleaned[name] = clean_said(name, str(cleaned[name]))
    if "language" in changes:
        check_choice("language", changes["language"], KnowledgeBase.Language.values)
    if "valid_until" in changes:
        check_moment(changes["valid_until"])
    if "review_interval_days" in changes:
        check_interval(changes["review_interval_days"])
    if "product_line" in changes:
        check_tag(Tag.Facet.PRODUCT_LINE, changes["product_line"])
    if "line_of_business" in changes:
        check_tag(Tag.Facet.LINE_OF_BUSINESS, changes["line_of_business"])
    changed = {name for name, value in cleaned.items() if getattr(entry, name) != value}
    for name in changed - {"state", "confidence"}:
        setattr(entry, name, cleaned[name])
    return changed


def _settle_place(entry: Entry, changes: EntryChanges) -> None:
    if "document" not in changes and entry.section is not None:
        entry.document = entry.section.document
    elif "section" not in changes and (
        entry.section is not None and entry.section.document_id != entry.document_id
    ):
        entry.section = None
    check_place(entry)


def _settle_verification(
    entry: Entry, changed: set[str], changes: EntryChanges, verifier: User | None
) -> None:
    """Bring state, confidence and verification in step with what changed."""
    was_verified = entry.state == Entry.State.VERIFIED
    if "state" in changed:
        doubt(entry, state=check_state(changes["state"]))
    elif was_verified and changed & _VOUCHED:
        if verifier is not None:
            vouch(entry, verifier)
        else:
            doubt(entry, state=Entry.State.NEEDS_REVIEW)
    if "confidence" not in changed:
        return
    if entry.state == Entry.State.VERIFIED:
        raise InvalidKnowledgeError(
            "confidence",
            f"confidence {changes['confidence']} is not that of a verified entry, "
            "which is 1; give it another state too.",
        )
    entry.confidence = check_confidence(changes["confidence"])
