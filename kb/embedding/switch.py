"""Switching the embedding model or embedding again, in the background without a gap.

The old vectors serve until one transaction finds nothing left to embed while it keeps
writers out: they hold the active model's row for share.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from accounts.acting import unrestricted
from accounts.prepared import execute
from jobs.run import JobRun
from jobs.services import enqueue
from kb.embedding import vector_index
from kb.embedding.embedder import get_embedder, load_embedder
from kb.embedding.models import EmbeddingModel, EntryEmbedding
from kb.embedding.services import (
    DIGEST_SQL,
    PLACE_SQL,
    PreparedVectors,
    active_model,
    embedded,
    prepare_vectors,
    write_vectors,
)
from kb.entries.models import Entry
from kb.exceptions import InvalidKnowledgeError

KIND = "kb.embed"
TIDY_KIND = "kb.tidy_vectors"
_REFRESHES = "refreshes"
_STEP_ENTRIES = 64  # 0.2 s on one core: the work a killed worker repeats
_TIDY_ROWS = 2_000
# No worker is down for longer than this while documents are edited.
_LOOKED_BACK = timedelta(days=7)

_BATCH = f"""
SELECT e.id FROM kb_entry e {PLACE_SQL}
WHERE e.id > %(after)s AND (
    %(since)s::timestamptz IS NULL OR e.updated_at >= %(since)s
    OR e.document_id IN (SELECT id FROM kb_document WHERE updated_at >= %(since)s)
) AND (%(everything)s OR NOT EXISTS (
    SELECT FROM kb_entryembedding v
    WHERE v.entry_id = e.id AND v.model_id = %(model)s AND v.text_sha256 = {DIGEST_SQL}
))
ORDER BY e.id LIMIT %(limit)s
"""  # noqa: S608  # own constants


@dataclass(frozen=True, slots=True)
class _Cursor:
    """The progress of the work, kept with the job between attempts."""

    model: int
    after: int = 0  # entries up to this id are done in this pass
    everything: bool = False  # whether this pass embeds up-to-date entries too
    found: bool = False  # whether this pass found any; the last one finds none


def embed_and_switch(run: JobRun) -> dict[str, object]:
    """Embed every entry with the model `name`, then make it the active one.

    With the job's parameter `again`, up-to-date entries are embedded too. If the model
    is already active, missing and outdated vectors are made and nothing is switched.
    With `refreshes`, a model's fingerprint, nothing else is done, and only while that
    model is active. Any number of attempts give the same result.
    """
    model = _refreshed(run) if _REFRESHES in run.parameters else _candidate(run)
    switched: bool | None = None
    while switched is None and _embed_pending(run, model):
        vector_index.build_where_it_pays(model)
        switched = _switch(run, model)
    return {
        "model": model.name,
        "fingerprint": model.fingerprint,
        "entries": model.embeddings.values("entry").distinct().count(),
        "switched": switched is True,
    }


def enqueue_where_stale() -> None:
    """Enqueue embedding of entries whose title, heading or parts have changed.

    Edits of an entry itself embed it at once. Only recent changes are looked at here,
    with their documents; the job then looks through everything.
    """
    model = active_model()
    since = timezone.now() - _LOOKED_BACK
    with unrestricted("outdated vectors"):
        if not _pending(model, after=0, everything=False, since=since):
            return
    get_embedder(model)  # the name may now stand for files nobody switched to
    parameters = {"name": model.name, _REFRESHES: model.fingerprint}
    # Not the key of a switch: a switch back to this model must not be taken for this
    # job.
    enqueue(KIND, parameters, idempotency_key=f"{KIND}:{model.fingerprint}:refresh")


def tidy_vectors(run: JobRun) -> dict[str, object]:
    """Delete the vectors and indexes of retired models, piece by piece.

    Nothing searches them any more; they were kept so that switching back needs no
    embedding.
    """
    deleted = run.done
    for model in EmbeddingModel.objects.filter(state=EmbeddingModel.State.RETIRED):
        vector_index.drop(model)
        while True:
            with run.step() as step:
                # A job that makes it a candidate again waits, then embeds what was
                # deleted.
                still = EmbeddingModel.objects.select_for_update(no_key=True).filter(
                    pk=model.pk, state=EmbeddingModel.State.RETIRED
                )
                rows = EntryEmbedding.objects.filter(model__in=list(still))
                ids = list(rows.values_list("pk", flat=True)[:_TIDY_ROWS])
                EntryEmbedding.objects.filter(pk__in=ids).delete()
                deleted += len(ids)
                step.advance(done=deleted)
            if not ids:
                break
    return {"deleted": deleted}


def _refreshed(run: JobRun) -> EmbeddingModel:
    model = EmbeddingModel.objects.get(fingerprint=run.parameters[_REFRESHES])
    if "model" not in run.cursor:
        with run.step() as step:
            cursor = asdict(_Cursor(model.pk))
            step.advance(done=0, total=count_pending(model), cursor=cursor)
    return model


def _is_over(run: JobRun, model: EmbeddingModel) -> bool:
    """Return whether the model that a refresh is for is no longer active."""
    active = EmbeddingModel.objects.filter(state=EmbeddingModel.State.ACTIVE)
    return _REFRESHES in run.parameters and not active.filter(pk=model.pk).exists()


def _candidate(run: JobRun) -> EmbeddingModel:
    if "model" in run.cursor:
        return EmbeddingModel.objects.get(pk=_cursor(run).model)
    name = run.parameters.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidKnowledgeError("name", f"{name!r} is not an embedding model.")
    embedder = load_embedder(name, reload=True)
    with run.step() as step:
        model, is_new = EmbeddingModel.objects.select_for_update(
            no_key=True
        ).get_or_create(
            fingerprint=embedder.fingerprint,
            defaults={
                "name": name,
                "dimensions": embedder.dimensions,
                "sample": embedder.sample,
            },
        )
        if not is_new:
            model.name = name
            if model.state == EmbeddingModel.State.RETIRED:
                model.state = EmbeddingModel.State.CANDIDATE
            model.save(update_fields=["name", "state"])
        again = run.parameters.get("again") is True
        step.advance(
            done=0,
            total=Entry.objects.count() if again else count_pending(model),
            cursor=asdict(_Cursor(model.pk, everything=again)),
        )
    return model


def _embed_pending(run: JobRun, model: EmbeddingModel) -> bool:
    """Go over the entries until a whole pass finds none left to embed.

    Returns False, at once, if a refresh is for a model that is no longer active.
    """
    while not _is_over(run, model):
        at = _cursor(run)
        ids = _pending(model, after=at.after, everything=at.everything)
        if not ids:
            if not at.found:
                return True
            with run.step() as step:
                step.advance(cursor=asdict(_Cursor(model.pk)))
            continue
        said = embedded(_entries(ids))
        texts = [text for each in said for text in each.parts.values()]
        prepared = prepare_vectors(texts, model)
        with run.step() as step:
            done = step.done + _write(ids, prepared, model=model)
            step.advance(
                done=done,
                total=max(step.total or 0, done),
                cursor=asdict(replace(at, after=ids[-1], found=True)),
            )
    return False


def _switch(run: JobRun, model: EmbeddingModel) -> bool | None:
    """Activate `model` if nothing is left to embed while writers are kept out.

    Returns whether another model was active before; None if too much was written
    meanwhile.
    """
    with run.step() as step:
        locked = EmbeddingModel.objects.select_for_update(no_key=True).order_by("pk")
        is_active = Q(state=EmbeddingModel.State.ACTIVE)
        rows = {row.pk: row for row in locked.filter(is_active | Q(pk=model.pk))}
        if _is_over(run, model):
            return False
        ids = _pending(model, after=0, everything=False)
        if len(ids) >= _STEP_ENTRIES:
            step.advance(cursor=asdict(_Cursor(model.pk)))
            return None
        if ids:
            done = step.done + _write(ids, None, model=model)
            step.advance(done=done, total=max(step.total or 0, done))
        if rows[model.pk].state == EmbeddingModel.State.ACTIVE:
            return False
        EmbeddingModel.objects.filter(state=EmbeddingModel.State.ACTIVE).update(
            state=EmbeddingModel.State.RETIRED
        )
        EmbeddingModel.objects.filter(pk=model.pk).update(
            state=EmbeddingModel.State.ACTIVE, activated_at=timezone.now()
        )
    return True


def _pending(
    model: EmbeddingModel,
    *,
    after: int,
    everything: bool,
    since: datetime | None = None,
) -> list[int]:
    parameters = {"model": model.pk, "after": after, "everything": everything}
    limits = {"since": since, "limit": _STEP_ENTRIES}
    return [pk for (pk,) in execute(_BATCH, {**parameters, **limits})]


def count_pending(model: EmbeddingModel) -> int:
    """Return how many entries lack vectors by `model` of their current text."""
    every = {"after": 0, "everything": False, "since": None, "limit": None}
    statement = f"SELECT count(*) FROM ({_BATCH}) pending"  # noqa: S608  # own constants
    return int(execute(statement, {"model": model.pk, **every})[0][0])


def _entries(ids: Sequence[int]) -> list[Entry]:
    return list(Entry.objects.filter(pk__in=ids).defer("search_vector"))


def _write(
    ids: Sequence[int], prepared: PreparedVectors | None, *, model: EmbeddingModel
) -> int:
    """Write the vectors of those entries that still have the content that was embedded.

    The entries are locked against edits until the step commits; one that has changed
    since is found by the next pass.
    """
    execute(
        "SELECT id FROM kb_entry WHERE id = ANY(%s) ORDER BY id FOR SHARE", [list(ids)]
    )
    entries = _entries(ids)
    if prepared is not None:
        known = prepared.by_text.keys()
        said = zip(entries, embedded(entries), strict=True)
        entries = [entry for entry, each in said if known >= {*each.parts.values()}]
    write_vectors(entries, model=model, prepared=prepared)
    return len(entries)


def _cursor(run: JobRun) -> _Cursor:
    return _Cursor(**run.cursor)
