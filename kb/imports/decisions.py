"""What an import does with each fact, and how the outcomes are counted."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Prefetch, Q, QuerySet

from accounts.people import AnyUser
from kb.audiences.models import Audience
from kb.documents.models import Document
from kb.entries.models import Entry
from kb.entries.wordings import Wording
from kb.imports.models import Import, ImportedKey, PlannedEntry
from kb.imports.readers import BadRow, Fact


class Action(StrEnum):
    """The outcome of a fact; also the names of the counts."""

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
    pairs: Mapping[str, int]  # ids of entries whose fact was reworded, by the new key


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A fact with its document; once decided, also its action and its earlier entry."""

    source: Source
    fact: Fact
    action: Action | None = None
    entry: Entry | None = None


Seen = dict[tuple[str, str], str]
"""Digests of facts read before, by the document's source and the fact's key, and by its
source and the digest itself."""


def visible_audiences(user: User | None) -> frozenset[int] | None:
    """Return the ids of audiences whose entries the user may change; None for all."""
    if user is None or user.is_superuser:
        return None
    return frozenset(Audience.objects.ids_visible_to(user))


def seen_before(of: Import, batch: Sequence[Piece]) -> Seen:
    keys = Q(key__in=[each.fact.key for each in batch])
    asked = [each.fact.digest for each in batch if _is_asked_below(each.fact)]
    rows = ImportedKey.objects.filter(
        keys | Q(digest__in=asked) if asked else keys,
        import_run=of,
        source__in={each.source.name for each in batch},
    ).values_list("source", "key", "digest")
    return {
        (source, known): digest
        for source, key, digest in rows
        for known in (key, digest)
    }


def known_entries(
    batch: Sequence[Piece],
    documents: Mapping[str, Document],
    audiences: frozenset[int] | None,
) -> dict[tuple[str, str], Entry]:
    """Return the facts' existing entries, by document source and fact key."""
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
        # Matching by words must not reveal an entry that the user may not see.
        rows = rows.filter(audience__in=audiences)
    return _saying_the_same(batch, rows, names, known) | known


def _saying_the_same(
    batch: Sequence[Piece],
    rows: QuerySet[Entry],
    names: Mapping[int, str],
    known: Mapping[tuple[str, str], Entry],
) -> dict[tuple[str, str], Entry]:
    """Return entries with the same words as facts without an id.

    They were written or edited in Nescio, so none of the facts has their key; this is
    the case when an exported table is imported.
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
    """Return the facts with the action for each, and the rows that must be refused.

    Args:
        seen: Facts earlier in the file; those of the batch are added.
    """
    decided: list[Piece] = []
    bad: list[BadRow] = []
    for each in batch:
        fact = each.fact
        at = (each.source.name, fact.key)
        before = seen.get(at)
        is_same = (each.source.name, fact.digest) in seen and _is_asked_below(fact)
        if before is None and is_same:
            decided.append(replace(each, action=Action.REPEATED))
        elif before is None:
            seen[at] = seen[each.source.name, fact.digest] = fact.digest
            entry = known.get(at)
            if entry and audiences is not None and entry.audience_id not in audiences:
                # Entries that the importing user may not see are left alone.
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
                    f"Its {what} appears above with another text; keep one of them.",
                )
            )
    return decided, bad


def _is_asked_below(fact: Fact) -> bool:
    """Return whether only its headings distinguish a question from others worded alike.

    Repeated with the same answer under several headings, it is one entry.
    """
    return bool(fact.question and fact.headings and not fact.id)


def _action(fact: Fact, entry: Entry | None) -> Action:
    if entry is None:
        return Action.CREATED
    if entry.source_digest == fact.digest:
        return Action.UNCHANGED
    if entry.state != Entry.State.RETIRED:
        return Action.UNCHANGED if _says(entry, fact) else Action.CHANGED
    # What a curator retired stays retired, even if it is still in its source.
    was_gone = entry.source_key and not entry.source_digest
    return Action.RESTORED if was_gone else Action.UNCHANGED


def _says(entry: Entry, fact: Fact) -> bool:
    wordings = {wording.text for wording in entry.wordings.all()}
    said = (entry.question, entry.text, wordings)
    return said == (fact.question, fact.text, {*fact.wordings})


_MIN_IN_COMMON = 3  # some systems export each fact as a document of its own


def found_elsewhere(of: Import, title: str) -> Iterator[str]:
    """Yield a note if a new document may be another version of an existing one.

    Called at the end of an import, while its keys are still stored. A file with several
    documents names their sources itself, so it is not checked.
    """
    brought = of.keys.all()
    sources = set(brought.values_list("source", flat=True).distinct()[:2])
    known = (Action.CHANGED, Action.UNCHANGED, Action.RESTORED, Action.RETIRED)
    if len(sources) != 1 or any(of.counts[action] for action in known):
        return
    others = Document.objects.filter(
        knowledge_base_id=of.knowledge_base_id, audience_id=of.audience_id
    ).exclude(source__in=[*sources, ""])
    same = (
        Entry.objects.filter(
            document__in=others, source_key__in=brought.values("key").distinct()
        )
        .exclude(state=Entry.State.RETIRED)
        .values_list("document")
        .annotate(number=Count("pk"))
        .order_by("-number", "document")
        .first()
    )
    number = brought.count()
    twin: Document | None
    if same and same[1] >= _MIN_IN_COMMON and same[1] * 2 > number:
        twin, what = others.get(pk=same[0]), f"{same[1]} of {number} are already in"
    elif title and (twin := others.filter(title__iexact=title).first()):
        what = "There is already a document titled"
    else:
        return
    yield (
        f"{what} {twin.title!r} ({twin.source}): to import a new version of it, give its "
        "source."
    )


MAX_EXAMPLES = 5
MAX_BAD_ROWS = 100
_EXAMPLE_CHARACTERS = 300

Example = dict[str, Any]
"""Texts of one fact, and the id of its existing entry, if any."""

COUNTS = ("read", *(action.value for action in Action))


def add(
    to: Import,
    *,
    read: int = 0,
    decided: Sequence[Piece] = (),
    bad: Sequence[BadRow] = (),
) -> None:
    """Add decided facts and bad rows to the import's counts and examples."""
    counts: dict[str, int] = {**dict.fromkeys(COUNTS, 0), **to.counts}
    counts["read"] += read
    counts[Action.BAD] += len(bad)
    examples: dict[str, list[Example]] = {**to.examples}
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


def edit_notes(overwritten: int, kept: int) -> list[str]:
    """Return notes on entries that people edited since they were last imported."""
    notes = []
    if overwritten:
        notes.append(
            f"Changed, although edited by people: {overwritten}. The file's words "
            "replace theirs, which the entries' histories keep."
        )
    if kept:
        notes.append(
            f"Unchanged and edited by people: {kept}. These stay as they are, because "
            "their text in the file is the same as before."
        )
    return notes


def add_retired(to: Import, number: int, some: Mapping[int, str]) -> None:
    """Count retired entries and add the texts of some, by entry id, to the examples."""
    counts: dict[str, int] = to.counts
    to.counts = {**counts, Action.RETIRED: counts[Action.RETIRED] + number}
    kept = to.examples.get(Action.RETIRED, [])
    room = max(MAX_EXAMPLES - len(kept), 0)
    shown = [
        {"text": text[:_EXAMPLE_CHARACTERS], "entry": entry_id}
        for entry_id, text in islice(some.items(), room)
    ]
    to.examples = {**to.examples, Action.RETIRED: [*kept, *shown]}


def planned(
    of: Import, decided: Sequence[Piece], edited: Collection[int]
) -> list[PlannedEntry]:
    """Return the entries that would be written, in full."""
    return [
        PlannedEntry(
            import_run=of,
            entry=each.entry,
            action=each.action,
            place=each.fact.place,
            own_key=each.fact.id,
            section=" > ".join(each.fact.headings),
            question=each.fact.question,
            text=each.fact.text,
            also_asked="\n".join(each.fact.wordings),
            before=_before(each),
            is_edited=each.entry is not None and each.entry.pk in edited,
        )
        for each in decided
        if each.action in WRITTEN
    ]


def _before(piece: Piece) -> str:
    is_changed = piece.action is Action.CHANGED
    return piece.entry.text if is_changed and piece.entry else ""


def _example(piece: Piece) -> Example:
    fact = piece.fact
    shown: Example = {"place": fact.place, "text": fact.text[:_EXAMPLE_CHARACTERS]}
    if fact.question:
        shown["question"] = fact.question[:_EXAMPLE_CHARACTERS]
    if fact.wordings:
        shown["also_asked"] = "; ".join(fact.wordings)[:_EXAMPLE_CHARACTERS]
    if before := _before(piece):
        shown["before"] = before[:_EXAMPLE_CHARACTERS]
    if piece.entry:
        shown["entry"] = piece.entry.pk
    return shown


def examples_for(
    rows: Sequence[Import], user: AnyUser
) -> dict[int, dict[str, list[Example]]]:
    """Return the examples of imports by their ids, without texts of entries hidden now.

    The importer may see the file's texts; an entry's own text only if they may see it.
    """
    all_of_them = (
        each for row in rows for some in row.examples.values() for each in some
    )
    ids = {each["entry"] for each in all_of_them if "entry" in each}
    entries = Entry.objects.visible_to(user).filter(pk__in=ids)
    seen = frozenset(entries.values_list("pk", flat=True)) if ids else frozenset()
    return {
        row.pk: {
            action: _without_hidden(action, some, seen)
            for action, some in row.examples.items()
        }
        for row in rows
    }


def _without_hidden(
    action: str, some: Sequence[Example], seen: Collection[int]
) -> list[Example]:
    if action == Action.RETIRED:
        return [each for each in some if each.get("entry") in seen]
    return [
        {
            name: value
            for name, value in each.items()
            if name != "before" or each.get("entry") in seen
        }
        for each in some
    ]
