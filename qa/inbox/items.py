"""How the inbox describes each row: title, note, why it is here, where to handle it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.text import Truncator

from accounts.people import person_name
from kb.conflicts.models import Conflict
from kb.documents.models import KnowledgeBase
from kb.enrichment.models import Proposal
from kb.entries.models import Entry
from kb.imports.models import Import
from qa.answers.models import Answer
from qa.gaps.escalation_models import Escalation
from qa.gaps.models import Gap
from qa.inbox.models import InboxMark, Kind
from qa.inbox.waiting import Reader
from qa.reviews.models import Review

_TITLE = 160
_NOTE = 200


@dataclass(frozen=True, slots=True)
class Item:
    """One item; `why` is the reason that it is in this person's inbox."""

    kind: Kind
    subject: int
    title: str
    note: str
    why: str
    since: datetime
    knowledge_base: KnowledgeBase
    address: str
    assignee: User | None
    snoozed_until: datetime | None
    ends: datetime | None  # if it is due because it ends: `since` means nothing then


@dataclass(frozen=True, slots=True)
class _Said:
    """A kind's description of one of its rows; `why` is empty if it is for anybody."""

    title: str
    note: str
    why: str = ""
    ends: datetime | None = None


def _said_of_escalation(row: Escalation, reader: Reader) -> _Said:
    is_refused = row.answer.outcome == Answer.Outcome.REFUSED
    sent = "a refused question" if is_refused else "an answer that may be wrong"
    note = f"“{row.note}”" if row.note else f"An agent sent {sent}."
    return _Said(row.answer.question, note, _expertise(row.answer, reader))


def _said_of_import(row: Import, reader: Reader) -> _Said:
    notes = {
        Import.State.PLANNED: "Read, and not applied yet.",
        Import.State.APPLIED: "Applied.",
        Import.State.FAILED: f"Failed: {row.error}",
    }
    if row.is_unreadable:
        notes[Import.State.PLANNED] = "No row could be read; correct the file."
    note = notes.get(Import.State(row.state), row.get_state_display())
    return _Said(row.file_name, note, "you imported it")


def _said_of_review(row: Review, reader: Reader) -> _Said:
    note = f"{row.answer.get_outcome_display().capitalize()}; judge it."
    if row.round > 1:
        note = f"{note} A second opinion."
    if row.locked_by_id == reader.user.pk:
        return _Said(row.answer.question, note, "you have begun it")
    tag = row.tag
    why = f"you are an expert for {tag}" if tag and tag.pk in reader.tags else ""
    return _Said(row.answer.question, note, why)


def _said_of_conflict(row: Conflict, reader: Reader) -> _Said:
    is_own = reader.user.pk in (row.first.owner_id, row.second.owner_id)
    note = f"{row.get_kind_display().capitalize()}: “{row.second.said}”"
    return _Said(row.first.said, note, "you own one of the entries" if is_own else "")


def _said_of_entry(row: Entry, reader: Reader) -> _Said:
    due = ", ".join(each.label for each in row.upkeep.reasons(reader.at))
    used = row.upkeep.uses
    note = f"{due.capitalize()}; used in {used} answer{'' if used == 1 else 's'}."
    is_own = row.owner_id == reader.user.pk
    why = "you own it" if is_own else _expertise(row, reader)
    # It is due from some time before its end, possibly before that end was set.
    is_for_its_end = row.upkeep.due_at == row.upkeep.expiry_notice_at
    ends = row.upkeep.valid_until if is_for_its_end else None
    return _Said(row.said, note, why, ends)


def _said_of_proposal(row: Proposal, reader: Reader) -> _Said:
    note = f"Proposed by {row.model_name}, confidence {row.confidence:.2f}."
    is_own = row.entry.owner_id == reader.user.pk
    return _Said(row.sentence, note, "you own it" if is_own else "")


def _said_of_gap(row: Gap, reader: Reader) -> _Said:
    times = f"{row.questions} time{'' if row.questions == 1 else 's'}"
    people = f"{row.askers} {'person' if row.askers == 1 else 'people'}"
    return _Said(row.question, f"Asked {times} by {people}, and not answered.")


def _expertise(row: Any, reader: Reader) -> str:
    tags = (row.product_line, row.line_of_business)
    own = [tag.name for tag in tags if tag and tag.pk in reader.tags]
    return f"you are an expert for {' and '.join(own)}" if own else ""


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a kind's rows are loaded and described, and the page that handles one."""

    rows: QuerySet[Any]
    said: Callable[[Any, Reader], _Said]
    page: str
    anybody: str


_ANSWERED = ("answer__product_line", "answer__line_of_business")
_KINDS: Mapping[Kind, _Kind] = {
    Kind.ESCALATION: _Kind(
        Escalation.objects.select_related(*_ANSWERED),
        _said_of_escalation,
        "admin:qa_escalation_change",
        "any expert",
    ),
    Kind.IMPORT: _Kind(
        Import.objects.defer("examples", "bad_rows", "notes"),
        _said_of_import,
        "admin:kb_import_change",
        "any curator",
    ),
    Kind.REVIEW: _Kind(
        Review.objects.select_related("answer", "tag"),
        _said_of_review,
        "admin:qa_review_change",
        "any expert",
    ),
    Kind.CONFLICT: _Kind(
        Conflict.objects.select_related("first", "second").defer(
            "first__search_vector", "second__search_vector"
        ),
        _said_of_conflict,
        "admin:kb_conflict_change",
        "any curator",
    ),
    Kind.ENTRY: _Kind(
        Entry.objects.select_related(
            "upkeep", "product_line", "line_of_business"
        ).defer("search_vector"),
        _said_of_entry,
        "entry",
        "any curator",
    ),
    Kind.PROPOSAL: _Kind(
        Proposal.objects.select_related("entry").defer("entry__search_vector"),
        _said_of_proposal,
        "admin:kb_proposal_change",
        "any curator",
    ),
    Kind.GAP: _Kind(
        Gap.objects.defer("vector"), _said_of_gap, "admin:qa_gap_change", "any expert"
    ),
}


def described(rows: Sequence[Mapping[str, Any]], reader: Reader) -> tuple[Item, ...]:
    """Return the items of rows of `waiting.COLUMNS`, in their order.

    One query for each kind among them, and at most three more. A row that was deleted
    meanwhile is left out.
    """
    found = {
        kind: _KINDS[kind].rows.in_bulk(_subjects(rows, kind))
        for kind in {Kind(row["inbox_kind"]) for row in rows}
    }
    bases = KnowledgeBase.objects.in_bulk({row["inbox_base"] for row in rows})
    people = {row["inbox_assignee"] for row in rows} - {None, reader.user.pk}
    users = {reader.user.pk: reader.user}
    if people:
        users |= User.objects.in_bulk(people)
    until = _snoozed(rows, reader)
    items = []
    for each in rows:
        kind, subject = Kind(each["inbox_kind"]), each["inbox_subject"]
        row = found[kind].get(subject)
        if row is None:
            continue
        said = _KINDS[kind].said(row, reader)
        assignee = users.get(each["inbox_assignee"])
        items.append(
            Item(
                kind,
                subject,
                Truncator(said.title).chars(_TITLE),
                Truncator(said.note).chars(_NOTE),
                _why(said, assignee, reader, _KINDS[kind].anybody),
                each["inbox_since"],
                bases[each["inbox_base"]],
                reverse(_KINDS[kind].page, args=[subject]),
                assignee,
                until.get((kind, subject)),
                said.ends,
            )
        )
    return tuple(items)


def _subjects(rows: Iterable[Mapping[str, Any]], kind: Kind) -> list[int]:
    return [row["inbox_subject"] for row in rows if row["inbox_kind"] == kind]


def _why(said: _Said, assignee: User | None, reader: Reader, anybody: str) -> str:
    if assignee is not None and assignee.pk != reader.user.pk:
        return f"Assigned to {person_name(assignee)}"
    if said.why:
        return said.why[:1].upper() + said.why[1:]
    return f"For {anybody}" if assignee is None else "Assigned to you"


def _snoozed(
    rows: Sequence[Mapping[str, Any]], reader: Reader
) -> Mapping[tuple[Kind, int], datetime]:
    """Return the time until which the reader has snoozed each snoozed row."""
    marks = InboxMark.objects.snoozed_by(reader.user, reader.at).filter(
        subject__in=[row["inbox_subject"] for row in rows]
    )
    return {
        (Kind(mark.kind), mark.subject): mark.snoozed_until
        for mark in marks
        if mark.snoozed_until is not None
    }
