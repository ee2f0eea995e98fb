"""Drawing, loading and exact search of `benchmarks.million`'s entries, in chunks."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from django.contrib.auth.models import User
from django.db import connection, transaction

from benchmarks.recall import (
    DIMENSIONS,
    NOW,
    SHARES,
    TOP_K,
    copy_vectors,
    make_texts,
)
from kb.models import Audience, EmbeddingModel, KnowledgeBase

CHUNK = 10_000
VECTORS = 3  # per entry
VERIFIED_ONE_IN = 500
CONFIDENCES = (0.8, 0.9, 0.95)  # of unverified entries
WRITTEN_FROM = 1_000_000_000  # first id of entries written while questions are asked


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Entries with ids from `first`; unit vectors (entries * VECTORS, DIMENSIONS)."""

    first: int
    vectors: np.ndarray
    owners: np.ndarray  # index of each entry's audience in SHARES
    confidences: np.ndarray  # 1 for a verified entry


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """The result of exact search for each question.

    Attributes:
        nearest: Ids of the 4 nearest entries; 0 where there are fewer.
        ratio: The least ratio of distance to confidence.
        deciding: Id of the entry that has it.
    """

    nearest: np.ndarray
    ratio: np.ndarray
    deciding: np.ndarray


def make_foundations() -> None:
    """Create the rows that entries refer to, if missing.

    Ids that the database assigns start at `WRITTEN_FROM`, after those of loaded
    entries.
    """
    KnowledgeBase.objects.get_or_create(slug="bench", defaults={"name": "Benchmark"})
    User.objects.get_or_create(username="author")
    for name in SHARES:
        Audience.objects.get_or_create(slug=name, defaults={"name": name})
    _, is_new = EmbeddingModel.objects.get_or_create(
        name="benchmark",
        defaults={
            "fingerprint": "0" * 64, "dimensions": DIMENSIONS, "state": "active",
        },
    )  # fmt: skip
    if is_new:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT setval(pg_get_serial_sequence('kb_entry', 'id'), %s)",
                [WRITTEN_FROM],
            )


def count_loaded() -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM kb_entry WHERE id < {WRITTEN_FROM}")
        return int(cursor.fetchone()[0])


# Chosen so that nearest neighbors are as far away, and as hard for an index to find, as
# with the bundled model on 57,000 sentences of public data sets. There the nearest (and
# fourth) neighbor of a question about known topics is at 0.73 (0.88), of others at 1.04
# (1.10); here they are at 0.72 (0.76) and 1.10 (1.13).
_OF_A_TOPIC = 20  # entries per topic
_FROM_ITS_MIDDLE = 0.7
_SPECTRUM = np.arange(1, DIMENSIONS + 1, dtype=np.float32) ** -0.35
_SPECTRUM[250:] /= 4
_SPECTRUM /= np.linalg.norm(_SPECTRUM)


def _draw(rng: np.random.Generator, count: int) -> np.ndarray:
    drawn = rng.standard_normal((count, DIMENSIONS), dtype=np.float32)
    return np.asarray(drawn * _SPECTRUM)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _topics(first: int, size: int) -> np.ndarray:
    return _draw(np.random.default_rng([7, first]), max(1, size // _OF_A_TOPIC))


def make_chunk(first: int, size: int) -> Chunk:
    rng = np.random.default_rng([11, first])
    topics = _topics(first, size)
    middle = topics[rng.integers(0, len(topics), size)]
    middle += 0.8 * _FROM_ITS_MIDDLE * _draw(rng, size)
    vectors = np.repeat(middle, VECTORS, axis=0)
    vectors += 0.6 * _FROM_ITS_MIDDLE * _draw(rng, size * VECTORS)
    confidences = rng.choice(CONFIDENCES, size)
    confidences[rng.random(size) < 1 / VERIFIED_ONE_IN] = 1
    owners = rng.choice(len(SHARES), size, p=list(SHARES.values()))
    return Chunk(first, _unit(vectors), owners, confidences)


def chunks(entries: int, begin: int = 0) -> Iterator[Chunk]:
    for start in range(begin, entries, CHUNK):
        yield make_chunk(start + 1, min(CHUNK, entries - start))


def make_questions(count: int, entries: int) -> np.ndarray:
    """Draw questions, alternately about topics of the entries and about others."""
    rng = np.random.default_rng(23)
    middle = _draw(rng, count)
    starts = [*range(0, entries, CHUNK)]
    for at in range(0, count, 2):
        start = starts[rng.integers(len(starts))]
        topics = _topics(start + 1, min(CHUNK, entries - start))
        middle[at] = topics[rng.integers(len(topics))]
    return _unit(middle + _FROM_ITS_MIDDLE * _draw(rng, count))


def load(entries: int, words: list[str]) -> None:
    """Write the missing entries, a chunk per transaction; triggers add related rows."""
    base = KnowledgeBase.objects.get()
    model = EmbeddingModel.objects.get(state="active")
    author = User.objects.get(username="author")
    audiences = [Audience.objects.get(slug=name).pk for name in SHARES]
    loaded = count_loaded()
    columns = (
        "id, knowledge_base_id, question, text, state, origin, confidence, audience_id,"
        " language, created_at, updated_at, verified_by_id, verified_at"
    )
    with connection.cursor() as cursor:
        begun = time.perf_counter()
        for chunk in chunks(entries, loaded):
            size = len(chunk.owners)
            texts = make_texts(np.random.default_rng([13, chunk.first]), size, words)
            with transaction.atomic():
                with cursor.copy(f"COPY kb_entry ({columns}) FROM STDIN") as copy:
                    for at, text in enumerate(texts):
                        sure = float(chunk.confidences[at])
                        state = "verified" if sure == 1 else "in_review"
                        by = (author.pk, NOW) if sure == 1 else (None, None)
                        copy.write_row(
                            (chunk.first + at, base.pk, "", text, state, "imported", sure,
                             audiences[chunk.owners[at]], "en", NOW, NOW, *by)
                        )  # fmt: skip
                copy_vectors(
                    cursor, chunk.vectors, model.pk, first=chunk.first, each=VECTORS
                )
            done = chunk.first - 1 + size
            if done % (10 * CHUNK) == 0 or done == entries:
                rate = (done - loaded) / (time.perf_counter() - begun)
                print(f"loaded {done} of {entries}, {rate:.0f} a second", flush=True)
        if loaded < entries:
            begun = time.perf_counter()
            cursor.execute("VACUUM (ANALYZE)")
            print(
                f"vacuum and analyze: {time.perf_counter() - begun:.0f} s", flush=True
            )


def find_truths(questions: np.ndarray, entries: int, cases: int) -> list[Truth]:
    """Return what exact search finds in each of the first `cases` cases.

    The cases are all entries, those of the first audience, the verified ones, and those
    of all other audiences.
    """
    count = len(questions)
    best = [np.full((count, TOP_K), -2.0, np.float32) for _ in range(cases)]
    ids = [np.zeros((count, TOP_K), np.int64) for _ in range(cases)]
    ratio = [np.full(count, np.inf) for _ in range(cases)]
    deciding = [np.zeros(count, np.int64) for _ in range(cases)]
    for chunk in chunks(entries):
        first = chunk.owners == 0
        masks = (slice(None), first, chunk.confidences == 1, ~first)
        own = chunk.first + np.arange(len(chunk.owners))
        for start in range(0, count, 1_000):
            at = slice(start, start + 1_000)
            near = (
                (questions[at] @ chunk.vectors.T).reshape(-1, len(own), VECTORS).max(2)
            )
            for case, mask in enumerate(masks[:cases]):
                some, mine = near[:, mask], own[mask]
                if not len(mine):
                    continue
                least = np.sqrt(np.maximum(0, 2 - 2 * some)) / chunk.confidences[mask]
                place = least.argmin(1)
                value = least[np.arange(len(some)), place]
                better = value < ratio[case][at]
                ratio[case][at][better] = value[better]
                deciding[case][at][better] = mine[place[better]]
                if len(mine) > TOP_K:
                    top = np.argpartition(-some, TOP_K, axis=1)[:, :TOP_K]
                else:
                    top = np.tile(np.arange(len(mine)), (len(some), 1))
                all_near = np.hstack([best[case][at], np.take_along_axis(some, top, 1)])
                all_ids = np.hstack([ids[case][at], mine[top]])
                order = np.argsort(-all_near, axis=1)[:, :TOP_K]
                best[case][at] = np.take_along_axis(all_near, order, 1)
                ids[case][at] = np.take_along_axis(all_ids, order, 1)
    return [Truth(*each) for each in zip(ids, ratio, deciding, strict=True)]
