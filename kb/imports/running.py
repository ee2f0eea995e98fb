"""Runs an import to its end, in batches; a plan does the same without writing.

While one batch is written, the next one is read and embedded, so that the embedder
never waits for the database.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from itertools import islice

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from accounts.exceptions import ConflictError
from kb.conflicts.background import enqueue_comparison
from kb.documents.models import Document
from kb.embedding.models import EmbeddingModel
from kb.embedding.services import (
    Embedded,
    PreparedVectors,
    active_model,
    prepare_vectors,
)
from kb.entries.bulk import verified_in_bulk
from kb.entries.models import Entry, EntryQuerySet
from kb.entries.states import retire_entry
from kb.exceptions import InvalidKnowledgeError
from kb.imports.models import Import, ImportedKey, PlannedEntry
from kb.imports.readers import BadRow
from kb.upkeep.retirement import propose_retirement, withdraw_retirement

from . import decisions as tally
from .decisions import (
    WRITTEN,
    Action,
    Piece,
    decide,
    known_entries,
    seen_before,
    visible_audiences,
)
from .pieces import batches, pieces
from .writing import carry_out, edited_by_people, find_document

BATCH = 256
"""Facts written in one transaction, which is what a killed worker repeats."""

_RETIRED_AT_ONCE = 200
_TURN_SECONDS = 0.0002

Writing = Callable[[int, int | None], AbstractContextManager[None]]
"""Opens a transaction; takes the number of facts done with it, and their total."""


@dataclass(frozen=True, slots=True)
class _Step:
    import_id: int
    applies: bool
    audiences: frozenset[int] | None
    model: EmbeddingModel | None
    writing: Writing
    check: Callable[[], None]
    total: int | None


def run_import(
    import_id: int,
    *,
    apply: bool,
    writing: Writing,
    check: Callable[[], None] = lambda: None,
) -> Import:
    """Plan or apply an import from where it stopped, and return its row.

    `writing` opens the transaction of each batch; `check` is called during reading, and
    ends it by raising an exception.
    """
    row = Import.objects.select_related("created_by").get(pk=import_id)
    total = row.counts.get("read") if row.state == Import.State.PLANNED else None
    total = row.cursor.get("total", total)
    with writing(0, total):
        row = _begin(import_id, apply=apply, total=total)
    step = _Step(
        import_id=row.pk,
        applies=apply,
        audiences=visible_audiences(row.created_by),
        model=active_model() if apply else None,
        writing=writing,
        check=check,
        total=total,
    )
    try:
        taken, notes = _go_over(row, step)
        return _finish(step, taken, notes)
    except InvalidKnowledgeError as error:  # among them a file that cannot be read
        Import.objects.filter(pk=row.pk).update(
            state=Import.State.FAILED, error=str(error)
        )
        raise


def _begin(import_id: int, *, apply: bool, total: int | None) -> Import:
    """Resume the import, or start it again."""
    row = _locked(import_id)
    if row.state == Import.State.APPLIED:
        raise ConflictError(
            f"Import {row.pk} is applied already; upload the file again."
        )
    mode = "apply" if apply else "plan"
    if row.state == Import.State.APPLYING and not apply:
        raise ConflictError(f"Import {row.pk} is being applied.")
    if apply:
        refuse_overtaken(row)
    if row.cursor.get("mode") != mode:
        row.keys.all().delete()
        row.planned.all().delete()
        row.cursor = {"mode": mode, "taken": 0, "total": total}
        row.counts, row.examples, row.bad_rows, row.notes = {}, {}, [], []
        row.error = ""
        tally.add(row)
        row.planned_at = None if apply else timezone.now()
    if apply:
        row.state = Import.State.APPLYING
    row.save()
    return row


def refuse_overtaken(row: Import) -> None:
    if row.is_overtaken:
        raise ConflictError(
            f"Entries of {row.source!r} were changed after import {row.pk} was checked, so "
            "that applying it would do something else than its plan says; upload "
            f"{row.file_name} again to check it again."
        )


def _locked(import_id: int) -> Import:
    return (
        Import.objects.select_for_update(of=("self",), no_key=True)
        .select_related("knowledge_base", "audience", "created_by", "verify_as")
        .get(pk=import_id)
    )


def _own(step: _Step, taken: int) -> Import:
    """Lock and return the row; raise if another run has continued the import."""
    row = _locked(step.import_id)
    mode = "apply" if step.applies else "plan"
    if (row.cursor.get("mode"), row.cursor.get("taken")) != (mode, taken):
        raise ConflictError(f"Import {row.pk} was continued by another run.")
    return row


def _go_over(row: Import, step: _Step) -> tuple[int, list[str]]:
    """Return how many items of the file are done, and the notes on the file."""
    taken: int = row.cursor["taken"]
    # A resumed run reads what is done again, and so collects its notes too.
    notes: list[str] = []
    with (
        row.file.open("rb") as stream,
        closing(pieces(row, stream, step.check, notes.append)) as found,
        _short_turns(),
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed") as pool,
    ):
        left = islice(found, taken, None)
        waiting: tuple[list[Piece | BadRow], Future[PreparedVectors]] | None = None
        for batch in batches(left, BATCH):
            vectors = pool.submit(_embed, _texts(row, batch, step), step.model)
            if waiting:
                taken = _write(waiting[0], waiting[1].result(), taken, step)
            waiting = (batch, vectors)
        if waiting:
            taken = _write(waiting[0], waiting[1].result(), taken, step)
    return taken, notes


@contextmanager
def _short_turns() -> Iterator[None]:
    """Give the embedding thread the interpreter sooner.

    It asks for it between any two of the model's operations, hundreds of times a batch.
    By default the thread that writes keeps it for 5 ms, which costs a tenth of the
    embedder's rate.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _texts(row: Import, batch: Sequence[Piece | BadRow], step: _Step) -> list[str]:
    """Return the texts of a batch that need a vector, by the current entries."""
    if not step.applies:
        return []
    decided, _ = _decide(row, batch, step)
    said = (
        Embedded(
            each.source.title,
            (each.fact.headings or ("",))[-1],
            each.fact.question,
            each.fact.text,
            each.fact.wordings,
        )
        for each in decided
        if each.action in WRITTEN
    )
    return list({text: None for each in said for text in each.parts.values()})


def _embed(texts: Sequence[str], model: EmbeddingModel | None) -> PreparedVectors:
    if model is None or not texts:
        return PreparedVectors("", {})
    return prepare_vectors(texts, model)


def _decide(
    row: Import, batch: Sequence[Piece | BadRow], step: _Step
) -> tuple[list[Piece], list[BadRow]]:
    facts = [each for each in batch if isinstance(each, Piece)]
    names = {each.source.name for each in facts}
    found = {name: find_document(row, name) for name in names}
    documents = {name: document for name, document in found.items() if document}
    known = known_entries(facts, documents, step.audiences)
    return decide(facts, known, seen_before(row, facts), step.audiences)


def _write(
    batch: Sequence[Piece | BadRow], prepared: PreparedVectors, taken: int, step: _Step
) -> int:
    bad = [each for each in batch if isinstance(each, BadRow)]
    after = taken + len(batch)
    with step.writing(after, step.total):
        row = _own(step, taken)
        if step.applies:
            active_model(for_share=True)
        decided, unfit = _decide(row, batch, step)
        met = {each.entry: each.action for each in decided if each.entry}
        edited = edited_by_people(met)
        if step.applies:
            carry_out(row, decided, prepared)
        else:
            PlannedEntry.objects.bulk_create(tally.planned(row, decided, edited))
        # An entry that was matched by its words may also have been matched by its key.
        ImportedKey.objects.bulk_create(_keys(row, decided), ignore_conflicts=True)
        tally.add(row, read=len(batch), decided=decided, bad=[*bad, *unfit])
        lost = sum(met[entry] is Action.CHANGED for entry in met if entry.pk in edited)
        row.cursor = {
            **row.cursor,
            "taken": after,
            "overwritten": row.cursor.get("overwritten", 0) + lost,
            "kept": row.cursor.get("kept", 0) + len(edited) - lost,
        }
        for each in decided[-1:]:  # a table has no title of its own
            is_text = each.source.headings is not None
            row.cursor["title"] = each.source.title if is_text else ""
        row.save(update_fields=["cursor", "counts", "examples", "bad_rows"])
    return after


def _keys(row: Import, decided: Sequence[Piece]) -> list[ImportedKey]:
    """Return the keys in the batch: an entry with one of them is not gone.

    An entry whose rewording is only planned still has the key of its old wording.
    """
    return [
        ImportedKey(
            import_run=row, source=each.source.name, key=key, digest=each.fact.digest
        )
        for each in decided
        if each.action is not Action.REPEATED
        for key in {each.fact.key, each.entry.source_key if each.entry else ""} - {""}
    ]


def _finish(step: _Step, taken: int, notes: Sequence[str]) -> Import:
    while step.applies and _retire(step, taken):
        pass
    with step.writing(taken, taken):
        row = _own(step, taken)
        overwritten = row.cursor.get("overwritten", 0)
        row.notes = [
            *notes,
            *tally.edit_notes(overwritten, row.cursor.get("kept", 0)),
            *tally.found_elsewhere(row, row.cursor.get("title", "")),
        ]
        gone = _gone(row, step.audiences)
        if row.counts[Action.BAD] and gone.exists():
            row.notes.append(
                "Nothing was retired: what is missing may be in the bad rows."
            )
        elif not step.applies:
            _plan_retirement(row, gone)
        row.keys.all().delete()
        row.cursor = {}
        row.state = Import.State.PLANNED
        if step.applies:
            row.state, row.applied_at = Import.State.APPLIED, timezone.now()
            enqueue_comparison(f"import {row.pk}")
            if row.verify_as_id is not None:
                verified_in_bulk.send(Import)
        row.save()
    return row


def _plan_retirement(row: Import, gone: EntryQuerySet) -> None:
    fields = ("question", "text", "place", "own_key")
    rows = (
        PlannedEntry(
            import_run=row,
            action=Action.RETIRED,
            entry_id=entry_id,
            **dict(zip(fields, said, strict=True)),
        )
        for entry_id, *said in gone.values_list("pk", *fields).iterator()
    )
    while some := list(islice(rows, BATCH)):
        PlannedEntry.objects.bulk_create(some)
        said = {each.entry_id: each.text for each in some if each.entry_id is not None}
        tally.add_retired(row, len(some), said)


def _retire(step: _Step, taken: int) -> bool:
    """Retire some missing entries, if every row could be read; return whether any were.

    A followed document only proposes it, since nobody has seen what it would do.
    """
    with step.writing(taken, taken):
        row = _own(step, taken)
        if row.followed_id is not None:
            _propose(row, step.audiences, row.followed_id)
            return False
        if row.counts[Action.BAD]:
            return False
        some = dict(
            _gone(row, step.audiences).values_list("pk", "text")[:_RETIRED_AT_ONCE]
        )
        for entry_id in some:
            retire_entry(
                entry_id=entry_id,
                by=row.verify_as or row.created_by,
                reason=f"No longer in {row.file_name}: import {row.pk}"[:300],
            )
        Entry.objects.filter(pk__in=some).update(source_digest="")
        tally.add_retired(row, len(some), some)
        row.save(update_fields=["counts", "examples"])
    return bool(some)


def _propose(row: Import, audiences: frozenset[int] | None, followed_id: int) -> None:
    """Propose to retire missing entries, if every row could be read.

    In any case, withdraw the proposals for entries that are back.
    """
    gone = _gone(row, audiences)
    there = Entry.objects.filter(document__in=_documents(row)).exclude(
        pk__in=gone.values("pk")
    )
    withdraw_retirement(there, source_id=followed_id)
    if row.counts[Action.BAD]:
        return
    note = f"No longer in {row.source}. Retire it, unless it is still true."
    number = propose_retirement(gone, source_id=followed_id, note=note)
    tally.add_retired(row, number, {})
    row.save(update_fields=["counts", "examples"])


def _documents(row: Import) -> QuerySet[Document]:
    keys = ImportedKey.objects.filter(import_run=row)
    return Document.objects.filter(
        knowledge_base_id=row.knowledge_base_id,
        audience_id=row.audience_id,
        source__in=keys.values("source"),
    )


def _gone(row: Import, audiences: frozenset[int] | None) -> EntryQuerySet:
    keys = ImportedKey.objects.filter(import_run=row)
    documents = _documents(row)
    brought = keys.filter(
        source=OuterRef("document__source"), key=OuterRef("source_key")
    )
    gone = (
        Entry.objects.filter(~Exists(brought), document__in=documents)
        .exclude(source_key="")
        .exclude(source_digest="")
        .exclude(state=Entry.State.RETIRED)
        .order_by("pk")
    )
    return gone if audiences is None else gone.filter(audience__in=audiences)
