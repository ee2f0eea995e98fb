"""What an import does about each fact, and how that is counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from django.contrib.auth.models import User
from django.db.models import Prefetch, QuerySet

from kb.audiences.models import Audience
from kb.documents.models import Document
from kb.entries.models import Entry
from kb.entries.wordings import Wording
from kb.imports.models import Import, ImportedKey, PlannedEntry
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


WRITTEN = (Action.CREATED, Action.CHANGED, Action.RESTORED)


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The document that facts belong to."""

    name: str
    title: str
    headings: tuple[tuple[str, ...], ...] | None  # every path; None for a table
    pairs: Mapping[str, int]  # entries whose fact was reworded, by the new key


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A fact with its document; once decided, also its action and its earlier entry."""

    source: Source
    fact: Fact
    action: Action | None = None
    entry: Entry | None = None


Seen = dict[tuple[str, str], str]
"""The digest of what was met before, by the document's source and the fact's key."""


def visible_audiences(user: User | None) -> frozenset[int] | None:
    """Return the audiences whose entries may be touched; None for all."""
    if user is None or user.is_superuser:
        return None
    return frozenset(Audience.objects.ids_visible_to(user))


def seen_before(of: Import, batch: Sequence[Piece]) -> Seen:
    rows = ImportedKey.objects.filter(
        import_run=of,
        source__in={each.source.name for each in batch},
        key__in=[each.fact.key for each in batch],
    ).values_list("source", "key", "digest")
    return {(source, key): digest for source, key, digest in rows}


def known_entries(
    batch: Sequence[Piece],
    documents: Mapping[str, Document],
    audiences: frozenset[int] | None,
) -> dict[tuple[str, str], Entry]:
    """Return the entries that facts are about, by the document's source and the fact's key."""
    names = {document.pk: name for name, document in documents.items()}
    paired = {
        entry: (each.source.name, each.fact.key)
        for each in batch
        if (entry := each.source.pairs.get(each.fact.key)) is not None
    }
    rows = Entry.objects.filter(document__in=names).only(
        "document", "own_key", "source_key", "source_digest", "question", "text", "place",
        "section", "state", "audience",
    )  # fmt: skip
    rows = rows.prefetch_related(
        Prefetch("wordings", Wording.objects.filter(answers=True))
    )
    found = [
        *(rows.filter(pk__in=paired) if paired else ()),
        *rows.filter(source_key__in=[each.fact.key for each in batch]),
    ]
    known = {
        paired.get(entry.pk, (names[entry.document_id or 0], entry.source_key)): entry
        for entry in found
    }
    if audiences is not None:
        # By its words nobody learns of an entry that they may not see.
        rows = rows.filter(audience__in=audiences)
    return _saying_the_same(batch, rows, names, known) | known


def _saying_the_same(
    batch: Sequence[Piece],
    rows: QuerySet[Entry],
    names: Mapping[int, str],
    known: Mapping[tuple[str, str], Entry],
) -> dict[tuple[str, str], Entry]:
    """Return entries by the facts without an id that say word for word the same.

    They were written or edited here, so their key is none of the facts'; as an exported
    table brings them.
    """
    of_row = [each for each in batch if each.source.headings is None]
    keys = {
        (each.source.name, each.fact.question, each.fact.text): each.fact.key
        for each in of_row
        if not each.fact.id and (each.source.name, each.fact.key) not in known
    }
    if not keys:
        return {}
    said = rows.filter(own_key="", text__in=[text for _, _, text in keys])
    found: dict[tuple[str, str], Entry] = {}
    for entry in said.order_by("pk"):
        name = names[entry.document_id or 0]
        if key := keys.get((name, entry.question, entry.text)):
            found.setdefault((name, key), entry)
    return found


def decide(
    batch: Sequence[Piece],
    known: Mapping[tuple[str, str], Entry],
    seen: Seen,
    audiences: frozenset[int] | None,
) -> tuple[list[Piece], list[BadRow]]:
    """Return the facts with what is to be done about each, and those that cannot be kept.

    Args:
        seen: What the file held before; what the batch holds is added.
    """
    decided: list[Piece] = []
    bad: list[BadRow] = []
    for each in batch:
        fact = each.fact
        at = (each.source.name, fact.key)
        before = seen.get(at)
        if before is None:
            seen[at] = fact.digest
            entry = known.get(at)
            if entry and audiences is not None and entry.audience_id not in audiences:
                # What who imports may not see is left alone.
                decided.append(replace(each, action=Action.UNCHANGED))
            else:
                action = _action(fact, entry)
                decided.append(replace(each, action=action, entry=entry))
        elif before == fact.digest:
            decided.append(replace(each, action=Action.REPEATED))
        else:
            what = f"id {fact.id!r}" if fact.id else "question"
            bad.append(
                BadRow(
                    fact.place,
                    f"Its {what} is above already with another text; keep one of them.",
                )
            )
    return decided, bad


def _action(fact: Fact, entry: Entry | None) -> Action:
    if entry is None:
        return Action.CREATED
    if entry.source_digest == fact.digest:
        return Action.UNCHANGED
    if entry.state != Entry.State.RETIRED:
        return Action.UNCHANGED if _says(entry, fact) else Action.CHANGED
    # What a curator retired stays retired whatever its source says.
    was_gone = entry.source_key and not entry.source_digest
    return Action.RESTORED if was_gone else Action.UNCHANGED


def _says(entry: Entry, fact: Fact) -> bool:
    wordings = {wording.text for wording in entry.wordings.all()}
    said = (entry.question, entry.text, wordings)
    return said == (fact.question, fact.text, {*fact.wordings})


MAX_EXAMPLES = 5
MAX_BAD_ROWS = 100
_EXAMPLE_CHARACTERS = 300

COUNTS = ("read", *(action.value for action in Action))


def add(
    to: Import,
    *,
    read: int = 0,
    decided: Sequence[Piece] = (),
    bad: Sequence[BadRow] = (),
) -> None:
    """Count decided facts and bad rows into the import's row, with examples."""
    counts: dict[str, int] = {**dict.fromkeys(COUNTS, 0), **to.counts}
    counts["read"] += read
    counts[Action.BAD] += len(bad)
    examples: dict[str, list[dict[str, str]]] = {**to.examples}
    for each in decided:
        action = str(each.action)
        counts[action] += 1
        kept = examples.setdefault(action, [])
        if len(kept) < MAX_EXAMPLES:
            kept.append(_example(each))
    room = MAX_BAD_ROWS - len(to.bad_rows)
    to.bad_rows = [
        *to.bad_rows,
        *({"place": row.place, "reason": row.reason} for row in bad[: max(room, 0)]),
    ]
    to.counts, to.examples = counts, examples


def add_retired(to: Import, number: int, texts: Sequence[str]) -> None:
    counts: dict[str, int] = to.counts
    to.counts = {**counts, Action.RETIRED: counts[Action.RETIRED] + number}
    kept = to.examples.get(Action.RETIRED, [])
    room = max(MAX_EXAMPLES - len(kept), 0)
    shown = [{"text": text[:_EXAMPLE_CHARACTERS]} for text in texts[:room]]
    to.examples = {**to.examples, Action.RETIRED: [*kept, *shown]}


def planned(of: Import, decided: Sequence[Piece]) -> list[PlannedEntry]:
    """Return what would be written, all of each."""
    return [
        PlannedEntry(
            import_run=of,
            action=each.action,
            place=each.fact.place,
            entry=each.entry,
            own_key=each.fact.id,
            question=each.fact.question,
            text=each.fact.text,
            also_asked="\n".join(each.fact.wordings),
            before=_before(each),
        )
        for each in decided
        if each.action in WRITTEN
    ]


def _before(piece: Piece) -> str:
    is_changed = piece.action is Action.CHANGED
    return piece.entry.text if is_changed and piece.entry else ""


def _example(piece: Piece) -> dict[str, str]:
    fact = piece.fact
    shown = {"place": fact.place, "text": fact.text[:_EXAMPLE_CHARACTERS]}
    if fact.question:
        shown["question"] = fact.question[:_EXAMPLE_CHARACTERS]
    if fact.wordings:
        shown["also_asked"] = "; ".join(fact.wordings)[:_EXAMPLE_CHARACTERS]
    if before := _before(piece):
        shown["before"] = before[:_EXAMPLE_CHARACTERS]
    return shown
