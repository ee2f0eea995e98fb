"""A batch's decisions carried out, inside the transaction of its step."""

from collections.abc import Mapping, Sequence

from kb.models import Entry, Import, Section
from kb.services.entries import (
    EntryChanges,
    NewEntry,
    create_entries,
    edit_entry,
)
from kb.services.entry_revisions import record
from kb.services.entry_states import restore_entry, verify_entry
from kb.services.vectors import PreparedVectors

from .documents import Path, locked_documents, sections_of
from .values import Action, Decision, Known

Sections = Mapping[str, Mapping[Path, Section]]


def carry_out(
    of: Import, decisions: Sequence[Decision], prepared: PreparedVectors
) -> None:
    """Create, change and restore entries as decided; those that moved are told so.

    Args:
        prepared: The vectors of what is new.

    Raises:
        InvalidKnowledgeError: A fact or heading that may not be written.
    """
    sources = {each.located.source.name: each.located.source for each in decisions}
    documents = locked_documents(of, sources.values())
    sections = {
        name: sections_of(of, documents[name], source.headings)
        for name, source in sources.items()
    }
    create_entries(
        [
            NewEntry(
                knowledge_base=of.knowledge_base,
                audience=of.audience,
                document=documents[each.located.source.name],
                section=_section(each, sections),
                question=each.located.fact.question,
                text=each.located.fact.text,
                origin=Entry.Origin.IMPORTED,
                state=Entry.State.IN_REVIEW,
                verify=of.verify_as is not None,
                place=each.located.fact.place,
                source_key=each.located.fact.key,
                source_digest=each.located.fact.digest,
                product_line=of.product_line,
                line_of_business=of.line_of_business,
                reason=_reason(of),
            )
            for each in decisions
            if each.action is Action.CREATED
        ],
        author=of.verify_as or of.created_by,
        prepared=prepared,
    )
    for each in decisions:
        if each.known and each.action in (Action.CHANGED, Action.RESTORED):
            _change(of, each, each.known, _section(each, sections), prepared)
    _move(of, [each for each in decisions if each.action is Action.UNCHANGED], sections)


def _change(
    of: Import,
    decision: Decision,
    known: Known,
    section: Section | None,
    prepared: PreparedVectors,
) -> None:
    author = of.verify_as or of.created_by
    located = decision.located
    fact = located.fact
    if decision.action is Action.RESTORED:
        restore_entry(entry_id=known.id, by=author, reason=_reason(of))
    changes: EntryChanges = {
        "text": fact.text,
        "question": fact.question,
        "place": fact.place,
        "source_key": fact.key,
        "source_digest": fact.digest,
    }
    # A table knows of no sections: an entry stays in the one that a curator gave it.
    if located.source.headings is not None:
        changes["section"] = section
    entry = edit_entry(
        entry_id=known.id,
        author=author,
        may_verify=of.verify_as is not None,
        reason=_reason(of),
        prepared=prepared,
        **changes,
    )
    if of.verify_as is not None and entry.state != Entry.State.VERIFIED:
        verify_entry(entry_id=entry.pk, by=of.verify_as, reason=_reason(of))


def _move(of: Import, decisions: Sequence[Decision], sections: Sections) -> None:
    """Keep where unchanged entries stand now; another section is another revision."""
    places: dict[int, tuple[str, int | None]] = {}
    for each in decisions:
        known = each.known
        if known is None or not known.is_visible:
            continue
        section_id = known.section_id
        if each.located.source.headings is not None:
            section = _section(each, sections)
            section_id = section.pk if section else None
        if (known.place, known.section_id) != (each.located.fact.place, section_id):
            places[known.id] = (each.located.fact.place, section_id)
    rows = Entry.objects.select_for_update(of=("self",), no_key=True).defer(
        "search_vector"
    )
    moved = list(rows.filter(pk__in=places).order_by("pk")) if places else []
    elsewhere = [entry for entry in moved if entry.section_id != places[entry.pk][1]]
    for entry in moved:
        entry.place, entry.section_id = places[entry.pk]
    Entry.objects.bulk_update(moved, ["place", "section"], batch_size=500)
    record(elsewhere, author=of.verify_as or of.created_by, reason=_reason(of))


def _section(decision: Decision, sections: Sections) -> Section | None:
    located = decision.located
    return sections[located.source.name].get(located.fact.headings)


def _reason(of: Import) -> str:
    return f"Import {of.pk} of {of.file_name}"[:300]
