"""The fields of an entry, and the check of each.

The fields are declared only here and in the model. Every check returns the value as it
can be stored, or raises `InvalidKnowledgeError` with field, value and remedy.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from functools import partial
from typing import Any, Required, TypedDict

from django.contrib.auth.models import User
from django.utils import timezone

from kb.audiences.models import Audience
from kb.documents.models import MAX_REVIEW_INTERVAL, Document, KnowledgeBase, Section
from kb.entries.models import Entry, Revision
from kb.exceptions import InvalidKnowledgeError
from kb.tags.models import Tag
from kb.text.cleaning import clean_line, clean_said

REASON_LIMIT = 300
MIN_CONFIDENCE = 0.001  # distances are divided by it
UNVERIFIED_CONFIDENCE = 0.8  # of a manual entry until a person verifies it

INTERNAL = frozenset({"id", "place", "source_key", "source_digest", "search_vector"})
"""Fields that are never shown."""

SHOWN = tuple(
    field.name for field in Entry._meta.concrete_fields if field.name not in INTERNAL
)

_DERIVED = {"knowledge_base", "own_key", "state", "origin", "confidence", "verified_by",
            "verified_at", "created_at", "updated_at"}  # fmt: skip
EDITABLE = tuple(name for name in SHOWN if name not in _DERIVED)
"""Fields that an editor sets."""

REVISED = tuple(
    field.name
    for field in Revision._meta.concrete_fields
    if field.name in SHOWN and field.name != "created_at"
)
"""Fields that a revision stores."""

NEEDS_NEW_VERIFICATION = frozenset({"text", "question", "valid_until"})
"""What a verification confirms: changing one of these requires a new verification."""

WRITABLE_STATES = (Entry.State.DRAFT, Entry.State.IN_REVIEW, Entry.State.NEEDS_REVIEW)


class _EntryValues(TypedDict, total=False):
    question: str
    document: Document | None
    section: Section | None
    valid_until: datetime | None
    owner: User | None
    product_line: Tag | None
    line_of_business: Tag | None
    review_interval_days: int | None
    state: str
    confidence: float
    place: str
    own_key: str
    source_key: str
    source_digest: str


class EntryChanges(_EntryValues, total=False):
    text: str
    audience: Audience
    language: str


class NewEntry(_EntryValues, total=False):
    """The content of a new entry.

    A question makes it a question-and-answer entry; a section implies its document. By
    default the audience is the document's, the language the knowledge base's, the
    confidence 0.8 and the state draft. With `verify` its author verifies it, so its
    confidence is 1; `reason` is stored with the revision.
    """

    knowledge_base: Required[KnowledgeBase]
    audience: Required[Audience | None]
    text: Required[str]
    language: str | None
    origin: str
    verify: bool
    reason: str


def clean_reason(value: str) -> str:
    return clean_line(value, field="reason", limit=REASON_LIMIT, required=False)


def check_confidence(value: float) -> float:
    if value == 1:
        raise InvalidKnowledgeError(
            "confidence",
            "confidence 1 means that a person verified it; verify the entry, or give a "
            "number below 1.",
        )
    # Written this way so that NaN fails too.
    if not MIN_CONFIDENCE <= value < 1:
        raise InvalidKnowledgeError(
            "confidence",
            f"confidence {value} is not at least {MIN_CONFIDENCE} and below "
            "1; give a number in that range.",
        )
    return value


def check_interval(value: int | None) -> int | None:
    if value is not None and not 1 <= value <= MAX_REVIEW_INTERVAL:
        raise InvalidKnowledgeError(
            "review_interval_days",
            f"review_interval_days {value} is not in 1 to {MAX_REVIEW_INTERVAL}; give "
            "a number of days in that range, or none for the knowledge base's.",
        )
    return value


def check_tag(facet: Tag.Facet, value: Tag | None) -> Tag | None:
    if value is not None and value.facet != facet:
        raise InvalidKnowledgeError(
            facet,
            f"{facet} {value.slug!r} is a {value.get_facet_display()}; name a "
            f"{facet.label}.",
        )
    return value


def check_state(value: str) -> str:
    for state, verb in (("verified", "verify"), ("retired", "retire")):
        if value == state:
            raise InvalidKnowledgeError(
                "state", f"state {state} cannot be set; {verb} the entry instead."
            )
    return _check_choice("state", [state.value for state in WRITABLE_STATES], value)


def _check_choice(field: str, values: Sequence[str], value: str) -> str:
    if value not in values:
        raise InvalidKnowledgeError(
            field, f"{field} {value!r} is unknown; take one of {', '.join(values)}."
        )
    return value


def _check_moment(value: datetime | None) -> datetime | None:
    if value is not None and timezone.is_naive(value):
        raise InvalidKnowledgeError(
            "valid_until", f"valid_until {value} has no time zone; give it one."
        )
    try:
        return value and value.astimezone(UTC)
    except OverflowError as error:
        raise InvalidKnowledgeError(
            "valid_until",
            f"valid_until {value} is not in the years 1 to 9999; change or remove it.",
        ) from error


def end_of_day(day: date) -> datetime:
    """Return the last second of a day in the deployment's time zone.

    A validity given as a date ends then.
    """
    return timezone.make_aware(datetime.combine(day, time(23, 59, 59)))


def read_validity(day: str) -> datetime | None:
    """Return the end of a day such as 2027-03-31, or None (no end) for ""."""
    try:
        return end_of_day(date.fromisoformat(day)) if day else None
    except ValueError as error:
        raise InvalidKnowledgeError(
            "valid_until",
            f"{day[:20]!r} is not a date; give one such as 2027-03-31, or none.",
        ) from error


_CHECKS: Mapping[str, Callable[[Any], object]] = {
    "question": partial(clean_said, "question"),
    "text": partial(clean_said, "text"),
    "origin": partial(_check_choice, "origin", Entry.Origin.values),
    "language": partial(_check_choice, "language", KnowledgeBase.Language.values),
    "valid_until": _check_moment,
    "review_interval_days": check_interval,
    **{facet.value: partial(check_tag, facet) for facet in Tag.Facet},
}


def checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values checked and as stored; state and confidence are unchecked."""
    return {
        name: _CHECKS[name](value) if name in _CHECKS else value
        for name, value in values.items()
    }


def check_place(entry: Entry) -> None:
    document, section = entry.document, entry.section
    if document and document.knowledge_base_id != entry.knowledge_base_id:
        raise InvalidKnowledgeError(
            "document",
            f"document {document.pk} belongs to another knowledge base; take one of "
            f"{entry.knowledge_base.slug}.",
        )
    if section and (document is None or section.document_id != document.pk):
        raise InvalidKnowledgeError(
            "section",
            f"section {section.pk} belongs to another document; take one of the "
            "entry's document.",
        )
