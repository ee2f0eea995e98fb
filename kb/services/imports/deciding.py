"""What is to be done about the facts of a batch; reads only."""

from collections.abc import Mapping, Sequence

from django.contrib.auth.models import User

from kb.importing import BadRow
from kb.models import Audience, Document, Entry, Import, ImportedKey

from .values import Action, Decision, Known, Located

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
