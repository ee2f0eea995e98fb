"""What passes between the steps of an import."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.contrib.auth.models import User

from kb.audiences.models import Audience
from kb.documents.models import Document
from kb.entries.models import Entry
from kb.imports.models import Import, ImportedKey
from kb.imports.readers import BadRow, Fact


class Action(StrEnum):
    """What comes of a fact; also the names of the counts."""

    CREATED = "created"
    CHANGED = "changed"
    RESTORED = "restored"
    RETIRED = "retired"
    UNCHANGED = "unchanged"
    REPEATED = "repeated"
    BAD = "bad"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The document that facts belong to.

    Attributes:
        headings: The path of every heading; None for a table, which has no tree.
        pairs: Entries whose fact was reworded, by the key that it has now.
    """

    name: str
    title: str
    headings: tuple[tuple[str, ...], ...] | None
    pairs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Located:
    """A fact with its document."""

    source: Source
    fact: Fact


@dataclass(frozen=True, slots=True)
class Known:
    """An entry that an earlier version of the document brought.

    Attributes:
        digest: Of what its source said last; empty once it no longer did.
        is_visible: Whether who imports may see it; what he may not is left alone.
    """

    id: int
    key: str
    digest: str
    text: str
    place: str
    section_id: int | None
    is_retired: bool
    is_visible: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done about one fact."""

    action: Action
    located: Located
    known: Known | None = None


Piece = Located | BadRow
"""What a file is a row of, after its documents were taken apart."""


# What is to be done about the facts of a batch; reads only.


Seen = dict[tuple[str, str], str]
"""The digest of what was met before, by the document's source and the fact's key."""


def visible_audiences(user: User | None) -> frozenset[int] | None:
    """Return the audiences whose entries may be touched; None for all."""
    if user is None or user.is_superuser:
        return None
    return frozenset(Audience.objects.visible_to(user).values_list("pk", flat=True))


def seen_before(of: Import, batch: Sequence[Located]) -> Seen:
    """Return what of the batch stands in the file before it."""
    rows = ImportedKey.objects.filter(
        import_run=of,
        source__in={each.source.name for each in batch},
        key__in=[each.fact.key for each in batch],
    ).values_list("source", "key", "digest")
    return {(source, key): digest for source, key, digest in rows}


def known_entries(
    batch: Sequence[Located],
    documents: Mapping[str, Document],
    audiences: frozenset[int] | None,
) -> dict[tuple[str, str], Known]:
    """Return the entries that stand for facts of the batch, by source and key."""
    names = {document.pk: name for name, document in documents.items()}
    paired = {
        entry: (each.source.name, each.fact.key)
        for each in batch
        if (entry := each.source.pairs.get(each.fact.key)) is not None
    }
    rows = Entry.objects.filter(document__in=names).values_list(
        "pk", "document_id", "source_key", "source_digest", "text", "place",
        "section_id", "state", "audience_id",
    )  # fmt: skip
    found: dict[tuple[str, str], Known] = {}
    for pk, document_id, key, digest, text, place, section, state, audience in [
        *(rows.filter(pk__in=paired) if paired else ()),
        *rows.filter(source_key__in=[each.fact.key for each in batch]),
    ]:
        by_key = (names[document_id or 0], key)
        found[paired.get(pk, by_key)] = Known(
            id=pk,
            key=key,
            digest=digest,
            text=text,
            place=place,
            section_id=section,
            is_retired=state == Entry.State.RETIRED,
            is_visible=audiences is None or audience in audiences,
        )
    return found


def decide(
    batch: Sequence[Located], known: Mapping[tuple[str, str], Known], seen: Seen
) -> tuple[list[Decision], list[BadRow]]:
    """Return what is to be done about each fact, and those that can not be kept.

    Args:
        seen: What the file held before; what the batch holds is added.
    """
    decisions: list[Decision] = []
    bad: list[BadRow] = []
    for each in batch:
        at = (each.source.name, each.fact.key)
        before = seen.get(at)
        if before is None:
            seen[at] = each.fact.digest
            decisions.append(
                Decision(_action(each, known.get(at)), each, known.get(at))
            )
        elif before == each.fact.digest:
            decisions.append(Decision(Action.REPEATED, each))
        else:
            what = f"id {each.fact.id!r}" if each.fact.id else "question"
            bad.append(
                BadRow(
                    each.fact.place,
                    f"Its {what} stands above already and says something else; keep "
                    "one of them.",
                )
            )
    return decisions, bad


def _action(located: Located, known: Known | None) -> Action:
    if known is None:
        return Action.CREATED
    if not known.is_visible or known.digest == located.fact.digest:
        return Action.UNCHANGED
    if not known.is_retired:
        return Action.CHANGED
    # What a curator retired stays so whatever its source says.
    return Action.UNCHANGED if known.digest else Action.RESTORED


# What came of an import so far, as it is kept in its row.


MOST_EXAMPLES = 5
MOST_BAD_ROWS = 100
_EXAMPLE_CHARACTERS = 300

COUNTS = ("read", *(action.value for action in Action))


def add(
    to: Import,
    *,
    read: int = 0,
    decisions: Sequence[Decision] = (),
    bad: Sequence[BadRow] = (),
) -> None:
    """Count decisions and bad rows into the import's row, with the first as examples.

    Args:
        read: Facts and bad rows that they came from.
    """
    counts: dict[str, int] = {**dict.fromkeys(COUNTS, 0), **to.counts}
    counts["read"] += read
    counts[Action.BAD] += len(bad)
    examples: dict[str, list[dict[str, str]]] = {**to.examples}
    for each in decisions:
        counts[each.action] += 1
        kept = examples.setdefault(each.action, [])
        if len(kept) < MOST_EXAMPLES:
            kept.append(_example(each))
    room = MOST_BAD_ROWS - len(to.bad_rows)
    to.bad_rows = [
        *to.bad_rows,
        *({"place": row.place, "reason": row.reason} for row in bad[: max(room, 0)]),
    ]
    to.counts, to.examples = counts, examples


def add_retired(to: Import, number: int, texts: Sequence[str]) -> None:
    """Count entries that the source no longer holds, the first texts as examples."""
    counts: dict[str, int] = to.counts
    to.counts = {**counts, Action.RETIRED: counts[Action.RETIRED] + number}
    kept = to.examples.get(Action.RETIRED, [])
    room = max(MOST_EXAMPLES - len(kept), 0)
    shown = [{"text": text[:_EXAMPLE_CHARACTERS]} for text in texts[:room]]
    to.examples = {**to.examples, Action.RETIRED: [*kept, *shown]}


def _example(decision: Decision) -> dict[str, str]:
    fact = decision.located.fact
    shown = {"place": fact.place, "text": fact.text[:_EXAMPLE_CHARACTERS]}
    if fact.question:
        shown["question"] = fact.question[:_EXAMPLE_CHARACTERS]
    if decision.action is Action.CHANGED and decision.known:
        shown["before"] = decision.known.text[:_EXAMPLE_CHARACTERS]
    return shown
