"""What may be written into an entry: each function returns it or says what is wrong.

All raise `InvalidKnowledgeError` with the field, the value and the remedy.
"""

from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone

from kb.documents.models import REVIEW_INTERVAL_MOST
from kb.entries.models import Entry
from kb.exceptions import InvalidKnowledgeError
from kb.tags.models import Tag
from kb.text.cleaning import clean_line, clean_text

TEXT_LIMIT = 8000
QUESTION_LIMIT = 1000
REASON_LIMIT = 300
UNVERIFIED_CONFIDENCE = 0.8
"""What a hand-written entry gets until a person verified it."""

_WRITABLE_STATES = (
    Entry.State.DRAFT,
    Entry.State.IN_REVIEW,
    Entry.State.NEEDS_REVIEW,
)


def check_place(entry: Entry) -> None:
    """Refuse a document of another knowledge base, or a section of another document."""
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


def clean_said(name: str, value: str) -> str:
    """Return `text` or `question` (by `name`) as it may be kept."""
    if name == "question":
        return clean_line(value, field=name, limit=QUESTION_LIMIT, required=False)
    return clean_text(value, field=name, limit=TEXT_LIMIT)


def clean_reason(value: str) -> str:
    """Return the reason of a revision as it may be kept."""
    return clean_line(value, field="reason", limit=REASON_LIMIT, required=False)


def check_state(value: str) -> str:
    """Return a state that may be written; verified and retired are reached otherwise."""
    if value == Entry.State.VERIFIED:
        raise InvalidKnowledgeError(
            "state", "state verified is not written; verify the entry instead."
        )
    if value == Entry.State.RETIRED:
        raise InvalidKnowledgeError(
            "state", "state retired is not written; retire the entry instead."
        )
    return check_choice("state", value, [state.value for state in _WRITABLE_STATES])


def check_confidence(value: float) -> float:
    """Return the confidence of what nobody verified, in (0, 1)."""
    if value == 1:
        raise InvalidKnowledgeError(
            "confidence",
            "confidence 1 is for what a person verified; verify the entry, or give a "
            "number below 1.",
        )
    # Written so that "not a number" fails it.
    if not 0 < value < 1:
        raise InvalidKnowledgeError(
            "confidence", f"confidence {value} is not in (0, 1]; give a number in it."
        )
    return value


def check_interval(value: int | None) -> int | None:
    """Return a review interval in days, or None for the knowledge base's."""
    if value is not None and not 1 <= value <= REVIEW_INTERVAL_MOST:
        raise InvalidKnowledgeError(
            "review_interval_days",
            f"review_interval_days {value} is not in 1 to {REVIEW_INTERVAL_MOST}; give "
            "a number of days in it, or none for the knowledge base's.",
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


def check_choice(field: str, value: str, values: Sequence[str]) -> str:
    if value not in values:
        raise InvalidKnowledgeError(
            field, f"{field} {value!r} is unknown; take one of {', '.join(values)}."
        )
    return value


def check_moment(value: datetime | None) -> datetime | None:
    """Return a moment that has a time zone, or None."""
    if value is not None and timezone.is_naive(value):
        raise InvalidKnowledgeError(
            "valid_until", f"valid_until {value} has no time zone; give it one."
        )
    return value
