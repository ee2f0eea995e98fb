"""Another embedding model, or the same one again: in the background and without a gap.

The old vectors answer until one transaction finds nothing left to embed while it keeps
writers out: they hold the active model's row for share.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from jobs.run import JobRun
from kb.embedding import vector_index
from kb.embedding.embedder import Embedder, get_embedder, load_embedder
from kb.embedding.models import EmbeddingModel, EntryEmbedding
from kb.embedding.services import text_sha256
from kb.entries.models import Entry
from kb.exceptions import InvalidKnowledgeError

KIND = "kb.embed"
TIDY_KIND = "kb.tidy_vectors"
# `kb.embedding.services.embedding_text` in SQL, for an entry `e`.
EMBEDDED_TEXT_SQL = "CASE WHEN e.question <> '' THEN e.question ELSE e.text END"

_STEP_ENTRIES = 64  # a fifth of a second on one core: what a killed worker does again
_TIDY_ROWS = 2_000

_BATCH = f"""
SELECT e.id, {EMBEDDED_TEXT_SQL}
FROM kb_entry e
LEFT JOIN kb_entryembedding v ON v.entry_id = e.id AND v.model_id = %(model)s
WHERE e.id > %(after)s AND (
    %(everything)s OR v.id IS NULL
    OR v.text_sha256 <>
        encode(sha256(convert_to({EMBEDDED_TEXT_SQL}, 'UTF8')), 'hex')
)
ORDER BY e.id LIMIT %(limit)s
"""  # noqa: S608  # own constants


@dataclass(frozen=True, slots=True)
class _Cursor:
    """How far the work is; kept with the job between attempts."""

    model: int
    after: int = 0  # entries up to this id are done in this pass
    everything: bool = False  # whether this pass embeds what is up to date as well
    found: bool = False  # whether this pass found any; the last finds none


_Texts = Sequence[tuple[int, str]]  # ids of entries with what is embedded of each


def embed_and_switch(run: JobRun) -> dict[str, object]:
    """Embed every entry with the model `name` and let it answer from then on.

    The job's parameter `again` embeds also what is up to date. Under the model that is
    active already, missing and outdated vectors are made and nothing is switched. Any
    number of attempts come to the same end.
    """
    name = run.parameters.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidKnowledgeError("name", f"{name!r} names no embedding model.")
    embedder, model = _candidate(run, name)
    while True:
        _embed_pending(run, embedder, model)
        vector_index.build_where_it_pays(model)
        switched = _switch(run, embedder, model)
        if switched is not None:
            break
    return {
        "model": model.name,
        "fingerprint": model.fingerprint,
        "entries": EntryEmbedding.objects.filter(model=model).count(),
        "switched": switched,
    }


def tidy_vectors(run: JobRun) -> dict[str, object]:
    """Delete the vectors and the indexes of retired models, piece by piece.

    Nothing searches them any more; they are kept until now so that switching back
    needs no embedding.
    """
    deleted = run.done
    for model in EmbeddingModel.objects.filter(state=EmbeddingModel.State.RETIRED):
        vector_index.drop(model)
        while True:
            with run.step() as step:
                # A job that makes it a candidate again waits, and embeds what is gone.
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


def _candidate(run: JobRun, name: str) -> tuple[Embedder, EmbeddingModel]:
    if "model" in run.cursor:
        model = EmbeddingModel.objects.get(pk=_cursor(run).model)
        return get_embedder(model), model
    embedder = load_embedder(name, reload=True)
    with run.step() as step:
        model, is_new = EmbeddingModel.objects.select_for_update(
            no_key=True
        ).get_or_create(
            fingerprint=embedder.fingerprint,
            defaults={"name": name, "dimensions": embedder.dimensions},
        )
        if not is_new:
            model.name = name
            if model.state == EmbeddingModel.State.RETIRED:
                model.state = EmbeddingModel.State.CANDIDATE
            model.save(update_fields=["name", "state"])
        again = run.parameters.get("again") is True
        step.advance(
            done=0,
            total=Entry.objects.count() if again else _count_pending(model),
            cursor=asdict(_Cursor(model.pk, everything=again)),
        )
    return embedder, model


def _embed_pending(run: JobRun, embedder: Embedder, model: EmbeddingModel) -> None:
    """Go over the entries until a whole pass finds none that wants embedding."""
    while True:
        at = _cursor(run)
        texts = _pending(model, after=at.after, everything=at.everything)
        if not texts:
            if not at.found:
                return
            with run.step() as step:
                step.advance(cursor=asdict(_Cursor(model.pk)))
            continue
        vectors = embedder.encode([text for _, text in texts])
        with run.step() as step:
            written = _write(texts, vectors, model=model)
            done = step.done + written
            step.advance(
                done=done,
                total=max(step.total or 0, done),
                cursor=asdict(replace(at, after=texts[-1][0], found=True)),
            )


def _switch(run: JobRun, embedder: Embedder, model: EmbeddingModel) -> bool | None:
    """Let `model` answer, if nothing is left to embed while writers are kept out.

    Returns whether it was another one before; None if too much was written meanwhile.
    """
    with run.step() as step:
        locked = EmbeddingModel.objects.select_for_update(no_key=True).order_by("pk")
        is_active = Q(state=EmbeddingModel.State.ACTIVE)
        rows = {row.pk: row for row in locked.filter(is_active | Q(pk=model.pk))}
        texts = _pending(model, after=0, everything=False)
        if len(texts) >= _STEP_ENTRIES:
            step.advance(cursor=asdict(_Cursor(model.pk)))
            return None
        if texts:
            vectors = embedder.encode([text for _, text in texts])
            done = step.done + _write(texts, vectors, model=model)
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


def _pending(model: EmbeddingModel, *, after: int, everything: bool) -> _Texts:
    parameters = {"model": model.pk, "after": after, "everything": everything}
    with connection.cursor() as cursor:
        cursor.execute(_BATCH, {**parameters, "limit": _STEP_ENTRIES})
        rows: _Texts = cursor.fetchall()
    return rows


def _count_pending(model: EmbeddingModel) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*) FROM ({_BATCH}) pending",  # noqa: S608  # own constants
            {"model": model.pk, "after": 0, "everything": False, "limit": None},
        )
        return int(cursor.fetchone()[0])


def _write(texts: _Texts, vectors: np.ndarray, *, model: EmbeddingModel) -> int:
    """Write the vectors of those entries that still say what was embedded.

    The entries are locked against edits until the step commits; one that changed since
    is found by the next pass.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT e.id, {EMBEDDED_TEXT_SQL} FROM kb_entry e"  # noqa: S608  # own constants
            " WHERE e.id = ANY(%s) ORDER BY e.id FOR SHARE",
            [[entry_id for entry_id, _ in texts]],
        )
        current = dict(cursor.fetchall())
    rows = [
        EntryEmbedding(
            entry_id=entry_id, model=model, vector=vector, text_sha256=text_sha256(text)
        )
        for (entry_id, text), vector in zip(texts, vectors, strict=True)
        if current.get(entry_id) == text
    ]
    EntryEmbedding.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["entry", "model"],
        update_fields=["vector", "text_sha256"],
    )
    return len(rows)


def _cursor(run: JobRun) -> _Cursor:
    return _Cursor(**run.cursor)
