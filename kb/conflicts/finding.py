"""Finding duplicates and contradictions among the nearest entries.

A person's decision holds until one of the texts changes.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from django.db import transaction

from accounts.prepared import execute
from kb.conflicts import values
from kb.conflicts.judgement import MODEL, judge
from kb.conflicts.models import Conflict, JudgedEntry
from kb.conflicts.values import Kind
from kb.embedding.models import EmbeddingModel
from kb.embedding.services import active_model
from kb.entries.models import Entry
from kb.exceptions import ConflictOpenError
from kb.search.evidence import prepare_index_scan
from kb.search.sql import Parameter
from kb.text.terms import same_numbers_and_denial

APART: Final = (Entry.State.DRAFT, Entry.State.RETIRED)  # never compared
NEIGHBOURS = 8  # nearest entries that each entry is compared with
MAX_DISTANCE = 1.0  # no labelled pair on the same subject is farther apart
_STEP_ENTRIES = 50

# The cast matches that of the model's index, which is used if there is one.
_NEIGHBOURS = """
WITH own AS MATERIALIZED (
    SELECT v.vector FROM kb_entryembedding v
    WHERE v.entry_id = %(entry)s AND v.model_id = %(model)s AND v.part = 1
),
near AS MATERIALIZED (
    SELECT v.entry_id, v.vector <-> (SELECT vector FROM own) AS distance
    FROM kb_entryembedding v JOIN kb_entry e ON e.id = v.entry_id
    WHERE v.model_id = %(model)s AND v.part = 1 AND e.knowledge_base_id = %(knowledge_base)s
      AND e.state <> 'draft' AND e.state <> 'retired' AND e.id <> %(entry)s
      AND (SELECT vector FROM own) IS NOT NULL
    ORDER BY v.vector::vector({dimensions}) <-> (SELECT vector FROM own)::vector({dimensions})
    LIMIT {neighbours}
)
SELECT entry_id, distance FROM near WHERE distance <= {farthest}
UNION
SELECT v.entry_id, v.vector <-> (SELECT vector FROM own)
FROM kb_entryembedding v JOIN kb_entry e ON e.id = v.entry_id
WHERE v.model_id = %(model)s AND v.part = 1 AND v.entry_id = ANY(%(known)s)
  AND e.state <> 'draft' AND e.state <> 'retired'
  AND (SELECT vector FROM own) IS NOT NULL
"""
_IS_PENDING = """
FROM kb_entry e
JOIN kb_knowledgebase b ON b.id = e.knowledge_base_id AND b.archived_at IS NULL
LEFT JOIN kb_judgedentry j ON j.entry_id = e.id
WHERE e.id > %(after)s AND e.state <> 'draft' AND (
    j.entry_id IS NULL
    OR NOT (j.model = %(judge)s OR %(any_judge)s AND starts_with(j.model, %(judge)s))
    OR j.revision < (SELECT max(r.number) FROM kb_revision r WHERE r.entry_id = e.id)
)
"""


_NONE_ASKED = values.Opinions()


@dataclass(frozen=True, slots=True)
class JudgedPair:
    first: Entry
    second: Entry
    distance: float
    judgement: values.Judgement

    @property
    def digest(self) -> str:
        return texts_digest(self.first, self.second)

    def is_judged_by(self, opinions: values.Opinions) -> bool:
        opinion = self.judgement.opinion
        if opinion is not None:
            return opinion.fingerprint == opinions.fingerprint
        is_unsure = opinions.asked_about.holds(self.judgement)
        return self.digest in opinions.by_digest or not is_unsure


def texts_digest(first: Entry, second: Entry) -> str:
    """Return a digest of both entries' words, the entry with the lower id first."""
    said = chain.from_iterable((e.question, e.text) for e in (first, second))
    return hashlib.sha256("\0".join(said).encode()).hexdigest()


def judge_version(model: EmbeddingModel, judge_fingerprint: str = "") -> str:
    version = f"{MODEL.version}/{model.fingerprint[:12]}"
    return f"{version}/{judge_fingerprint[:12]}" if judge_fingerprint else version


@transaction.atomic
def find_entry_conflicts(
    entry_id: int, *, is_complete: bool = True, opinions: values.Opinions = _NONE_ASKED
) -> tuple[Conflict, ...]:
    """Judge an entry against its nearest ones and bring its conflicts up to date.

    New conflicts are opened, those settled by an edit become outdated, and those a
    person decided stay while the texts do. Returns the open conflicts, contradictions
    first.

    Args:
        is_complete: Whether all entries are visible; only then is this one marked as
            judged.
        opinions: Used where the signals are unsure; an opinion stored with a conflict
            between the same texts is reused.
    """
    model = active_model(for_share=True)
    entry = Entry.objects.with_revision_number().locked().filter(pk=entry_id).first()
    if entry is None:
        return ()
    known = list(Conflict.objects.of_entry(entry_id))
    judged = (
        _judge_neighbours(entry, model, known, opinions)
        if _is_comparable(entry)
        else []
    )
    # An entry with a pair that the judge was not asked about stays pending for it.
    is_judged_by = all(each.is_judged_by(opinions) for each in judged)
    version = judge_version(model, opinions.fingerprint if is_judged_by else "")
    _write(entry, judged, known, version)
    if is_complete:
        JudgedEntry.objects.update_or_create(
            entry_id=entry.pk, defaults={"revision": _revision(entry), "model": version}
        )
    found = Conflict.objects.open().of_entry(entry_id).select_related("first", "second")
    return tuple(
        sorted(found, key=lambda c: (c.kind != values.Kind.CONTRADICTION, -c.score))
    )


def refresh_conflicts(entry_id: int) -> None:
    """Judge again an entry whose text has changed, if it is in an open conflict."""
    if Conflict.objects.open().of_entry(entry_id).exists():
        find_entry_conflicts(entry_id, is_complete=False)


def outdate_conflicts(*entry_ids: int) -> None:
    rows = Conflict.objects.open().of_entry(*entry_ids)
    rows.update(state=Conflict.State.OUTDATED)


def pending_entries(after: int = 0, *, judge_fingerprint: str = "") -> list[int]:
    """Return ids above `after`, ascending, of entries that have yet to be judged."""
    rows = execute(
        f"SELECT e.id {_IS_PENDING} ORDER BY e.id LIMIT %(limit)s",
        {**_pending_of(after, judge_fingerprint), "limit": _STEP_ENTRIES},
    )
    return [row[0] for row in rows]


def count_pending(after: int = 0, judge_fingerprint: str = "") -> int:
    parameters = _pending_of(after, judge_fingerprint)
    return int(execute(f"SELECT count(*) {_IS_PENDING}", parameters)[0][0])


def _pending_of(after: int, judge_fingerprint: str) -> dict[str, Parameter]:
    return {
        "after": after,
        "judge": judge_version(active_model(), judge_fingerprint),
        "any_judge": not judge_fingerprint,
    }


@transaction.atomic
def unjudged_pairs(entry_id: int, said: values.Opinions) -> list[JudgedPair]:
    entry = Entry.objects.with_revision_number().filter(pk=entry_id).first()
    if entry is None or not _is_comparable(entry):
        return []
    known = list(Conflict.objects.of_entry(entry_id))
    judged = _judge_neighbours(entry, active_model(), known, _NONE_ASKED)
    return [each for each in judged if not each.is_judged_by(said)]


def _is_comparable(entry: Entry) -> bool:
    return entry.state not in APART


def _judge_neighbours(
    entry: Entry,
    model: EmbeddingModel,
    known: Sequence[Conflict],
    opinions: values.Opinions,
) -> list[JudgedPair]:
    """Judge the entry against its nearest ones and those it was in conflict with."""
    statement = _NEIGHBOURS.format(
        dimensions=model.dimensions, neighbours=NEIGHBOURS, farthest=MAX_DISTANCE
    )
    prepare_index_scan()
    rows = execute(
        statement,
        {
            "entry": entry.pk,
            "model": model.pk,
            "knowledge_base": entry.knowledge_base_id,
            "known": [other_entry(conflict, entry.pk) for conflict in known],
        },
    )
    distances = {entry_id: float(distance) for entry_id, distance in rows}
    others = (
        Entry.objects.with_revision_number()
        .defer("search_vector")
        .filter(pk__in=distances)
    )
    said = {c.texts_sha256: values.opinion_in(c.reasons) for c in known}
    said |= {digest: o for digest, o in opinions.by_digest.items() if o is not None}
    return [_judged(entry, other, distances[other.pk], said) for other in others]


def _judged(
    one: Entry, other: Entry, distance: float, said: Mapping[str, values.Opinion | None]
) -> JudgedPair:
    first, second = sorted((one, other), key=lambda entry: entry.pk)
    judgement = judge(to_statement(first), to_statement(second), distance=distance)
    found = JudgedPair(first, second, distance, judgement)
    opinion = said.get(found.digest)
    if opinion is None:
        return found
    return replace(found, judgement=values.with_opinion(judgement, opinion))


def to_statement(entry: Entry) -> values.Statement:
    return values.Statement(
        entry.text, entry.question, entry.language, entry.document_id
    )


def other_entry(conflict: Conflict, entry_id: int) -> int:
    is_first = conflict.first_id == entry_id
    return conflict.second_id if is_first else conflict.first_id


def contradicted(entry_id: int, conflict: Conflict) -> ConflictOpenError:
    """Return the error for verifying an entry with this open contradiction."""
    return ConflictOpenError(
        f"Entry {entry_id} contradicts entry {other_entry(conflict, entry_id)}; decide "
        f"conflict {conflict.pk} first."
    )


def _write(
    entry: Entry, judged: Sequence[JudgedPair], known: Sequence[Conflict], version: str
) -> None:
    by_pair = {(conflict.first_id, conflict.second_id): conflict for conflict in known}
    # A conflict the writer may not see could not be compared and stays as it is.
    settled = []
    for each in judged:
        before = by_pair.get((each.first.pk, each.second.pk))
        if each.judgement.kind is values.Kind.DIFFERENT:
            settled += [before.pk] if before else []
            continue
        if before is None or _is_to_be_opened(before, each):
            _open(each, version)
    stale = Conflict.objects.open().filter(pk__in=settled)
    if not _is_comparable(entry):
        stale = Conflict.objects.open().of_entry(entry.pk)
    if settled or not _is_comparable(entry):
        stale.update(state=Conflict.State.OUTDATED)


def _is_to_be_opened(before: Conflict, now: JudgedPair) -> bool:
    if before.state in (Conflict.State.OPEN, Conflict.State.OUTDATED):
        return True
    return before.texts_sha256 != now.digest


def _open(judged: JudgedPair, version: str) -> None:
    judgement = judged.judgement
    Conflict.objects.update_or_create(
        first=judged.first,
        second=judged.second,
        defaults={
            "first_revision": _revision(judged.first),
            "second_revision": _revision(judged.second),
            "texts_sha256": judged.digest,
            "kind": judgement.kind.value,
            "score": judgement.score,
            "distance": judged.distance,
            "reasons": values.reasons_as_json(judgement),
            "model": version,
            "state": Conflict.State.OPEN,
            "kept": None,
            "resolved_by": None,
            "resolved_at": None,
            "reason": "",
        },
    )


def _revision(entry: Entry) -> int:
    return int(getattr(entry, "revision_number", None) or 0)


# Two texts this close are the same in other words, if they have the same numbers and
# both or neither contain a negation.
_SAME_WORDS: Final = 0.2

_DISTANCES = """
SELECT other.entry_id, own.vector <-> other.vector
FROM kb_entryembedding own
JOIN kb_entryembedding other ON other.model_id = own.model_id AND other.part = own.part
WHERE own.entry_id = %(entry)s AND own.model_id = %(model)s AND own.part = 1
      AND other.entry_id = ANY(%(among)s)
"""


def duplicates_among(entry: Entry, among: Collection[int]) -> frozenset[int]:
    """Return which of these entries duplicate `entry` as it is now; nothing is stored.

    They have its text, or are close enough and judged to be duplicates. An entry that
    contradicts it is not one.
    """
    others = [other for other in among if other != entry.pk]
    parameters = {"entry": entry.pk, "model": active_model().pk, "among": others}
    distances: dict[int, float] = dict(execute(_DISTANCES, parameters))
    rows = Entry.objects.defer("search_vector").in_bulk(distances)
    return frozenset(
        pk for pk, other in rows.items() if _says_same(entry, other, distances[pk])
    )


def _says_same(entry: Entry, other: Entry, distance: float) -> bool:
    if _plain(entry.text) == _plain(other.text):
        return True
    if distance > MAX_DISTANCE:
        return False
    if distance <= _SAME_WORDS and same_numbers_and_denial(entry.text, other.text):
        return True
    judged = judge(to_statement(entry), to_statement(other), distance=distance)
    return judged.kind is Kind.DUPLICATE


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
