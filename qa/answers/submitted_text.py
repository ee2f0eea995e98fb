"""Texts that people submit: checked, and stored as entries if experts choose to."""

from dataclasses import dataclass
from typing import NotRequired, TypedDict, Unpack

from django.contrib.auth.models import User

from accounts.exceptions import NescioError
from accounts.roles import Role, has_role_in
from kb.audiences.models import Audience
from kb.conflicts.background import enqueue_entries
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from kb.entries.services import create_entry
from kb.tags.models import Tag


def checked_text(name: str, text: str, limit: int, error: type[NescioError]) -> str:
    """Return `text` trimmed.

    Raises:
        NescioError: As `error`: it is too long, or contains invalid characters.
    """
    text = text.strip()
    if len(text) > limit:
        raise error(
            f"The {name} has {len(text)} characters and may have {limit}; shorten it."
        )
    if "\x00" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise error(f"The {name} contains a NUL or half a surrogate pair; remove it.")
    return text


class _EntryValues(TypedDict):
    knowledge_base: KnowledgeBase
    question: str
    text: str
    reason: str
    product_line: NotRequired[Tag | None]
    line_of_business: NotRequired[Tag | None]


@dataclass(frozen=True, slots=True)
class EntryOptions:
    """How an expert's words become an entry of the knowledge base that was asked.

    With `verify`, its author, a curator, verifies it at once; else it waits for review.
    """

    audience: Audience
    verify: bool = False


def create_reviewed_entry(
    options: EntryOptions,
    *,
    author: User,
    error: type[NescioError],
    **values: Unpack[_EntryValues],
) -> Entry:
    """Store an expert's answer as a question-and-answer entry, owned by its author.

    An author who is not a curator does not own it: it waits for every curator.

    Raises:
        NescioError: As `error`: it is to be verified, and `author` is not a curator.
    """
    curates = has_role_in(author, Role.CURATOR, values["knowledge_base"].pk)
    if options.verify and not curates:
        raise error(
            "Only curators verify; leave it unverified, and it waits for review."
        )
    entry = create_entry(
        audience=options.audience,
        verify=options.verify,
        author=author,
        least=Role.SME,
        owner=author if curates else None,
        origin=Entry.Origin.REVIEW,
        state=Entry.State.IN_REVIEW,
        **values,
    )
    enqueue_entries([entry.pk])
    return entry
