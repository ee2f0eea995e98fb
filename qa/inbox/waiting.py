"""What waits for a person: one query set for each kind, all with the same columns.

With the columns of `COLUMNS`, the kinds can be joined, ordered and counted by one
statement, and only the rows of a page are loaded in full.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.contrib.auth.models import User
from django.db.models import (
    Case,
    CharField,
    Exists,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from accounts.roles import Role, bases_of_role, where_holder
from kb.audiences.models import where_belongs
from kb.conflicts.models import Conflict
from kb.documents.models import of_base_in_use
from kb.enrichment.models import Proposal
from kb.entries.models import Entry
from kb.imports.models import Import
from kb.tags.models import Tag
from qa.answers.evidence_models import where_withheld_from
from qa.gaps.escalation_models import Escalation
from qa.gaps.models import Gap
from qa.inbox.models import InboxMark, Kind
from qa.reviews.services import judgeable_by

IMPORT_NEWS = timedelta(days=14)
"""How long an import stays in the inbox after it was applied, or else created."""

COLUMNS = (
    "inbox_rank", "inbox_order", "inbox_since", "inbox_subject", "inbox_kind",
    "inbox_assignee", "inbox_base",
)  # fmt: skip
_ORDER = {kind: place for place, kind in enumerate(Kind)}


class Scope(StrEnum):
    """Which part of what a person may see and act on."""

    WAITING = "waiting"  # for them: everything not assigned to somebody else
    MINE = "mine"  # assigned to them, or theirs by ownership or as an expert
    OTHERS = "others"  # assigned to somebody else
    SNOOZED = "snoozed"  # hidden by them for a time


Bases = frozenset[int] | None
"""Ids of knowledge bases; None: all."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The user whose inbox it is, and what makes a row theirs."""

    user: User
    judges: Bases  # where they are an expert
    curates: Bases
    tags: tuple[int, ...]
    at: datetime


def reader_of(user: User, at: datetime) -> Reader:
    tags = Tag.objects.of_expert(user).values_list("pk", flat=True)
    judges, curates = (bases_of_role(user, role) for role in (Role.SME, Role.CURATOR))
    return Reader(user, judges, curates, tuple(tags), at)


@dataclass(frozen=True, slots=True)
class _Source:
    """A kind's rows: which wait, since when, in which knowledge base, and whose they are.

    `assignee` is the row's own field; without one, a mark assigns the row. `mine` is
    the condition for a row to be the reader's without being assigned. `seen` is the
    condition that the user in a field of the row may see it by the audiences of what it
    shows; the role is checked separately.
    """

    rows: Callable[[Reader], QuerySet[Any]]
    since: str
    base: str
    mine: Callable[[Reader], Q]
    assignee: str = ""
    curators: bool = False
    seen: Callable[[str], Q] = lambda _user: Q()

    @property
    def least(self) -> Role:
        """The role that an assignee needs in the row's knowledge base."""
        return Role.CURATOR if self.curators else Role.SME


def _tagged(prefix: str = "") -> Callable[[Reader], Q]:
    def tagged(reader: Reader) -> Q:
        return Q(**{f"{prefix}product_line__in": reader.tags}) | Q(
            **{f"{prefix}line_of_business__in": reader.tags}
        )

    return tagged


def _due(reader: Reader) -> QuerySet[Entry]:
    """Return due entries; where the reader may not verify, only their own."""
    rows = Entry.objects.readable_by(reader.user).due(reader.at)
    if reader.curates is None:
        return rows
    assigned = InboxMark.objects.filter(
        kind=Kind.ENTRY, subject=OuterRef("pk"), user=reader.user, is_assigned=True
    )
    theirs = Q(owner=reader.user) | Q(knowledge_base__in=reader.curates)
    return rows.filter(theirs | _tagged()(reader) | Exists(assigned))


def _imports(reader: Reader) -> QuerySet[Import]:
    """Return the reader's recent imports: to be applied, failed, or with bad rows."""
    waits = Q(state__in=(Import.State.PLANNED, Import.State.FAILED))
    waits |= Q(state=Import.State.APPLIED) & ~Q(bad_rows=[])
    rows = Import.objects.visible_to(reader.user).filter(waits, created_by=reader.user)
    return rows.annotate(ended_at=Coalesce("applied_at", "created_at")).filter(
        ended_at__gt=reader.at - IMPORT_NEWS
    )


_SOURCES: Mapping[Kind, _Source] = {
    Kind.ESCALATION: _Source(
        lambda reader: Escalation.objects.visible_to(reader.user).waiting(),
        since="created_at",
        base="answer__knowledge_base",
        mine=_tagged("answer__"),
        assignee="assignee",
    ),
    Kind.IMPORT: _Source(
        _imports,
        since="ended_at",
        base="knowledge_base",
        mine=lambda reader: Q(created_by=reader.user),
        curators=True,
    ),
    Kind.REVIEW: _Source(
        lambda reader: judgeable_by(reader.user),
        since="created_at",
        base="answer__knowledge_base",
        mine=lambda reader: Q(locked_by=reader.user) | Q(tag__in=reader.tags),
        assignee="assignee",
        seen=lambda user: ~where_withheld_from(user, "answer"),
    ),
    Kind.CONFLICT: _Source(
        lambda reader: Conflict.objects.visible_to(reader.user).open(),
        since="found_at",
        base="first__knowledge_base",
        mine=lambda reader: Q(first__owner=reader.user) | Q(second__owner=reader.user),
        curators=True,
        seen=lambda user: (
            where_belongs(user, "first__audience")
            & where_belongs(user, "second__audience")
        ),
    ),
    Kind.ENTRY: _Source(
        _due,
        since="upkeep__due_at",
        base="knowledge_base",
        mine=_tagged(),
        assignee="owner",
        seen=lambda user: where_belongs(user, "audience"),
    ),
    Kind.PROPOSAL: _Source(
        lambda reader: Proposal.objects.visible_to(reader.user).undecided(),
        since="created_at",
        base="knowledge_base",
        mine=lambda reader: Q(entry__owner=reader.user),
        curators=True,
        seen=lambda user: where_belongs(user, "entry__audience"),
    ),
    Kind.GAP: _Source(
        lambda reader: Gap.objects.visible_to(reader.user).filter(state=Gap.State.OPEN),
        since="first_seen",
        base="knowledge_base",
        mine=lambda reader: Q(pk__in=()),
        assignee="owner",
    ),
}
OWN_ASSIGNEE = (Kind.ESCALATION, Kind.REVIEW, Kind.GAP)
"""Kinds that store their assignee themselves; all others are assigned by a mark."""


def kinds_of(reader: Reader) -> tuple[Kind, ...]:
    """Return the kinds that the reader's role lets them handle."""
    return tuple(
        kind
        for kind in Kind
        if reader.curates != frozenset() or not _SOURCES[kind].curators
    )


def waiting(kind: Kind, reader: Reader, scope: Scope | None) -> QuerySet[Any]:
    """Return a kind's rows with `COLUMNS` annotated; all of them if `scope` is None."""
    source = _SOURCES[kind]
    order = Value(_ORDER[kind], output_field=IntegerField())
    bases = reader.curates if source.curators else reader.judges
    rows: QuerySet[Any] = source.rows(reader).filter(of_base_in_use(source.base))
    if bases is not None:
        rows = rows.filter(**{f"{source.base}__in": bases})
    marks = _marks(kind, rows)
    rows = rows.annotate(
        inbox_kind=Value(kind.value, output_field=CharField()),
        inbox_order=order,
        inbox_since=F(source.since),
        inbox_subject=F("pk"),
        inbox_base=F(source.base),
        inbox_assignee=_assignee(kind, marks),
        inbox_rank=Case(
            When(_is_held(kind, marks, reader), then=Value(0)),
            When(source.mine(reader), then=Value(1)),
            default=Value(2),
            output_field=IntegerField(),
        ),
    )
    if scope is None:
        return rows
    own_marks = InboxMark.objects.snoozed_by(reader.user, reader.at)
    is_snoozed = _is_subject_of(own_marks.filter(kind=kind))
    if scope is Scope.SNOOZED:
        return rows.filter(is_snoozed)
    rows = rows.filter(~is_snoozed)
    if scope is Scope.OTHERS:
        return rows.filter(_is_others(kind, marks, reader))
    rows = _without_others(rows, kind, marks, reader)
    return rows.filter(inbox_rank__lt=2) if scope is Scope.MINE else rows


def _marks(kind: Kind, rows: QuerySet[Any]) -> QuerySet[InboxMark]:
    """Return marks that assign the kind's rows to users who may still handle them."""
    source = _SOURCES[kind]
    row = rows.model._base_manager.filter(pk=OuterRef("subject"))
    marks = InboxMark.objects.filter(kind=kind, is_assigned=True)
    based = marks.annotate(base=Subquery(row.values(source.base)[:1]))
    seen = row.annotate(reader=OuterRef("user")).filter(source.seen("reader"))
    return based.filter(Exists(seen), where_holder(source.least, "user", "base"))


def _is_subject_of(marks: QuerySet[InboxMark]) -> Q:
    """Return the condition that a row has one of the marks, read once, not per row."""
    return Q(pk__in=marks.values("subject"))


def _assignee(kind: Kind, marks: QuerySet[InboxMark]) -> Any:
    """Return the id of the assignee: by a mark, or else the row's own.

    For the rows of a page only: `_is_held` and `_is_others` filter all rows, as the
    database evaluates them as joins instead of once per row.
    """
    source = _SOURCES[kind]
    mark = marks.filter(subject=OuterRef("pk"))
    marked = Subquery(mark.values("user")[:1], output_field=IntegerField())
    if not source.assignee:
        return marked
    own = Case(
        When(_has_holder(source), then=F(f"{source.assignee}_id")),
        output_field=IntegerField(),
    )
    return own if kind in OWN_ASSIGNEE else Coalesce(marked, own)


def _has_holder(source: _Source) -> Q:
    """Return the condition that the row's own assignee may still handle it."""
    holds = where_holder(source.least, source.assignee, source.base)
    return holds & source.seen(source.assignee)


def _is_held(kind: Kind, marks: QuerySet[InboxMark], reader: Reader) -> Q:
    """Return the condition that a row is assigned to the reader."""
    source = _SOURCES[kind]
    marked = _is_subject_of(marks.filter(user=reader.user))
    if not source.assignee:
        return marked
    own = Q(**{source.assignee: reader.user.pk})
    if kind in OWN_ASSIGNEE:
        return own
    return marked | own & ~_is_subject_of(marks.exclude(user=reader.user))


def _is_others(kind: Kind, marks: QuerySet[InboxMark], reader: Reader) -> Q:
    """Return the condition that a row is assigned to somebody else."""
    source = _SOURCES[kind]
    marked = _is_subject_of(marks.exclude(user=reader.user))
    if not source.assignee:
        return marked
    own = _is_owned_by_others(source, reader)
    if kind in OWN_ASSIGNEE:
        return own
    return marked | own & ~_is_subject_of(marks.filter(user=reader.user))


def _without_others(
    rows: QuerySet[Any], kind: Kind, marks: QuerySet[InboxMark], reader: Reader
) -> QuerySet[Any]:
    """Leave out the rows of `_is_others`, by conditions that are joined one by one."""
    source = _SOURCES[kind]
    if kind not in OWN_ASSIGNEE:
        rows = rows.filter(~_is_subject_of(marks.exclude(user=reader.user)))
    if not source.assignee:
        return rows
    is_free = ~_is_owned_by_others(source, reader)
    if kind not in OWN_ASSIGNEE:
        is_free |= _is_subject_of(marks.filter(user=reader.user))
    return rows.filter(is_free)


def _is_owned_by_others(source: _Source, reader: Reader) -> Q:
    return _has_holder(source) & ~Q(**{source.assignee: reader.user.pk})


def waiting_by_kind(reader: Reader, scope: Scope) -> Mapping[Kind, QuerySet[Any]]:
    """Return `waiting` of each of the reader's kinds."""
    return {kind: waiting(kind, reader, scope) for kind in kinds_of(reader)}


def together(
    rows: Iterable[QuerySet[Any]], *, limit: int
) -> QuerySet[Any, dict[str, Any]]:
    """Return the first `limit` rows of each kind as one query, in the inbox's order.

    The reader's own come first, then by kind, each from the longest waiting.
    """
    order = COLUMNS[:4]
    first, *others = (each.order_by(*order).values(*COLUMNS)[:limit] for each in rows)
    joined = first.union(*others, all=True) if others else first
    return joined.order_by(*order) if others else joined


def counted(
    rows: Iterable[QuerySet[Any]], *, limit: int
) -> QuerySet[Any, tuple[Any, ...]]:
    """Return the kind of each row, at most `limit` of each, as one query."""
    first, *others = (
        each.order_by().values_list("inbox_kind")[:limit] for each in rows
    )
    return first.union(*others, all=True) if others else first
