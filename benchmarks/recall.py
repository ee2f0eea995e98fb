"""Measure recall and latency of search against exact search, at 100,000 entries.

    python -m benchmarks.recall [--entries 100000] [--questions 200] [--real]

Creates a separate database beside the configured one, fills it by COPY, builds the
index with the product's own code, searches through `kb.search`, and drops the database.
Recall is measured with vectors alone, latencies also with words. The reference is
computed in numpy from the same vectors. Every line shows the scope, the route taken,
recall@4 with its limit, and latencies; the exit status is 1 if a recall is below its
limit.

Vectors are drawn from Gaussian clusters with the falling spectrum of sentence
embeddings; `--real` embeds generated sentences with the bundled model instead, which
takes five minutes per 100,000.
"""

# ruff: noqa: E402  # imports that need Django come after its setup
import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")

import django

django.setup()

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.backends.utils import CursorWrapper

from accounts.acting import acting_for, as_owner
from kb.embedding import vector_index
from kb.embedding.embedder import load_embedder
from kb.models import Audience, EmbeddingModel, KnowledgeBase
from kb.search import search
from kb.types import QuestionVector, Scope, SearchResult
from nescio.embedded import postgres

DIMENSIONS = 384
CLUSTERS = 500
TOP_K = 4
RECALL_LIMIT = 0.99
SHARES = {"one_percent": 0.01, "few_percent": 0.06, "third": 0.34, "rest": 0.59}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Unit vectors and texts of entries, and of questions drawn alike."""

    entries: np.ndarray
    texts: list[str]
    questions: np.ndarray
    question_texts: list[str]


@dataclass(frozen=True, slots=True)
class Line:
    """The results for one scope; times are (median, p99) in milliseconds."""

    name: str
    visible: int
    route: str
    recall: float
    fewest: int
    vectors: tuple[float, float]
    words: tuple[float, float]


def make_corpus(entries: int, questions: int, *, is_real: bool) -> Corpus:
    """Draw sentences and their vectors; the last of them are the questions."""
    rng = np.random.default_rng(7)
    total = entries + questions
    texts = make_texts(rng, total)
    if is_real:
        vectors = load_embedder("bundled").encode(texts)
    else:
        centres = draw(rng, CLUSTERS)
        noise = draw(rng, total)
        vectors = centres[rng.integers(0, CLUSTERS, total)] + 0.5 * noise
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Corpus(
        vectors[:entries], texts[:entries], vectors[entries:], texts[entries:]
    )


def draw(rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw vectors with a falling spectrum like that of sentence embeddings."""
    spectrum = np.arange(1, DIMENSIONS + 1, dtype=np.float32) ** -0.5
    return rng.standard_normal((count, DIMENSIONS), dtype=np.float32) * spectrum


def make_words(rng: np.random.Generator) -> list[str]:
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    return ["".join(rng.choice(syllables, 3)) for _ in range(20_000)]


def make_texts(
    rng: np.random.Generator, count: int, words: Sequence[str] = ()
) -> list[str]:
    """Make sentences of invented words with a Zipf-like frequency distribution."""
    words = words or make_words(rng)
    ranks = np.arange(1, len(words) + 1, dtype=np.float64)
    shares = 1 / (ranks + 5)
    picks = rng.choice(len(words), size=(count, 14), p=shares / shares.sum())
    return [" ".join(words[at] for at in row) for row in picks]


@contextmanager
def own_database() -> Iterator[None]:
    """Create a separate, migrated database for the block, and drop it afterwards."""
    if settings.DATABASE_IS_EMBEDDED:
        postgres.start(settings.PLACES)
    before = settings.DATABASES["default"]["NAME"]
    connection.settings_dict["TEST"]["NAME"] = "nescio_recall"
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        yield
    finally:
        connection.creation.destroy_test_db(before, verbosity=0)


def fill(corpus: Corpus) -> tuple[Scope, np.ndarray]:
    """Load the corpus; return the scope that sees all, and each entry's audience id."""
    knowledge_base = KnowledgeBase.objects.create(slug="bench", name="Benchmark")
    audiences = [Audience.objects.create(slug=name, name=name) for name in SHARES]
    model = EmbeddingModel.objects.create(
        name="benchmark", fingerprint="0" * 64, dimensions=DIMENSIONS, state="active"
    )
    ids = np.array([audience.pk for audience in audiences])
    rng = np.random.default_rng(11)
    owners = rng.choice(ids, size=len(corpus.texts), p=list(SHARES.values()))
    with connection.cursor() as cursor:
        copy_entries(cursor, corpus.texts, owners, knowledge_base.pk)
        copy_vectors(cursor, corpus.entries, model.pk)
        cursor.execute("VACUUM (ANALYZE)")
    scope = Scope(knowledge_base.pk, tuple(ids.tolist()), 0.5, NOW)
    return scope, owners


def copy_entries(
    cursor: CursorWrapper, texts: list[str], owners: np.ndarray, knowledge_base_id: int
) -> None:
    """Write one unverified entry per text, ids from 1; a trigger adds its revision."""
    columns = (
        "id, knowledge_base_id, question, text, state, origin, confidence,"
        " audience_id, language, created_at, updated_at"
    )
    with cursor.copy(f"COPY kb_entry ({columns}) FROM STDIN") as copy:
        for at, (text, owner) in enumerate(zip(texts, owners.tolist(), strict=True)):
            copy.write_row(
                (at + 1, knowledge_base_id, "", text, "in_review", "imported", 0.9,
                 owner, "en", NOW, NOW)
            )  # fmt: skip


def copy_vectors(
    cursor: CursorWrapper,
    vectors: np.ndarray,
    model_id: int,
    *,
    first: int = 1,
    each: int = 1,
) -> None:
    """Write the vectors by COPY BINARY, `each` per entry, for entry ids from `first`.

    A tuple is its number of fields, then each field's length and bytes, all big-endian;
    a vector is its number of dimensions, an unused word and its floats.
    """
    count, dimensions = vectors.shape
    rows = np.zeros(
        count,
        dtype=np.dtype(
            [
                ("fields", ">i2"),
                ("entry_length", ">i4"), ("entry", ">i8"),
                ("model_length", ">i4"), ("model", ">i8"),
                ("part_length", ">i4"), ("part", ">i2"),
                ("vector_length", ">i4"), ("dimensions", ">i2"), ("unused", ">i2"),
                ("vector", ">f4", (dimensions,)),
                ("digest_length", ">i4"), ("digest", "S64"),
            ]
        ),
    )  # fmt: skip
    rows["fields"] = 5
    rows["entry_length"] = rows["model_length"] = 8
    rows["entry"] = first + np.arange(count) // each
    rows["model"] = model_id
    rows["part_length"] = 2
    rows["part"] = 1 + np.arange(count) % each
    rows["vector_length"] = 4 + 4 * dimensions
    rows["dimensions"] = dimensions
    rows["vector"] = vectors
    rows["digest_length"] = 64
    rows["digest"] = b"0" * 64
    columns = "entry_id, model_id, part, vector, text_sha256"
    with cursor.copy(
        f"COPY kb_entryembedding ({columns}) FROM STDIN WITH (FORMAT BINARY)"
    ) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
        for start in range(0, count, 5_000):
            copy.write(rows[start : start + 5_000].tobytes())
        copy.write(b"\xff\xff")


def ask(
    corpus: Corpus, scope: Scope, at: int, *, deep: bool, with_words: bool = False
) -> SearchResult:
    """Ask question `at` of the corpus through the product's search."""
    vector = QuestionVector(
        "", corpus.questions[at], EmbeddingModel.objects.get().pk, "0" * 64, 0.0
    )
    text = corpus.question_texts[at] if with_words else ""
    return search(vector, text, scope=scope, top_k=TOP_K, deep=deep)


def measure(
    name: str, corpus: Corpus, scope: Scope, truth: np.ndarray, *, deep: bool
) -> Line:
    """Ask every question; return recall@4 against `truth`, and latencies."""
    result = ask(corpus, scope, 0, deep=deep)
    found, fewest = 0, TOP_K
    for at in range(len(corpus.questions)):
        hits = [hit.entry_id for hit in ask(corpus, scope, at, deep=deep).hits]
        found += len(set(hits) & set(truth[at].tolist()))
        fewest = min(fewest, len(hits))
    vectors = take_times(corpus, scope, deep=deep, with_words=False)
    words = take_times(corpus, scope, deep=deep, with_words=True)
    return Line(
        name, result.visible, result.route, found / truth.size, fewest, vectors, words
    )


def take_times(
    corpus: Corpus, scope: Scope, *, deep: bool, with_words: bool
) -> tuple[float, float]:
    """Return the median and the 99th percentile of a search, in milliseconds."""
    milliseconds = []
    for at in range(len(corpus.questions)):
        begun = time.perf_counter()
        ask(corpus, scope, at, deep=deep, with_words=with_words)
        milliseconds.append((time.perf_counter() - begun) * 1000)
    return (
        float(np.percentile(milliseconds, 50)),
        float(np.percentile(milliseconds, 99)),
    )


def nearest(corpus: Corpus, rows: np.ndarray) -> np.ndarray:
    """Return by exact search the ids of the 4 nearest of `rows` (0-based)."""
    similarity = corpus.questions @ corpus.entries[rows].T
    best = np.argpartition(-similarity, TOP_K, axis=1)[:, :TOP_K]
    return rows[best] + 1


def reader_of(audience_ids: tuple[int, ...]) -> User:
    """Return a user who is in these audiences and no others."""
    name = f"reader {len(audience_ids)} {audience_ids[0]}"
    user, _ = User.objects.get_or_create(username=name)
    group, _ = Group.objects.get_or_create(name=name)
    group.user_set.add(user)
    for audience in Audience.objects.filter(pk__in=audience_ids):
        audience.groups.add(group)
    return user


def run(entries: int, questions: int, *, is_real: bool) -> bool:
    """Measure and print everything; return whether every recall reached its limit."""
    corpus = make_corpus(entries, questions, is_real=is_real)
    with own_database():
        begun = time.perf_counter()
        everyone, owners = fill(corpus)
        print(f"{entries} entries loaded in {time.perf_counter() - begun:.1f} s")
        begun = time.perf_counter()
        vector_index.build(EmbeddingModel.objects.get())
        size = vector_index.size_bytes(EmbeddingModel.objects.get()) / 2**20
        print(f"index built in {time.perf_counter() - begun:.1f} s, {size:.0f} MiB\n")
        lines = []
        few, some, third, _ = everyone.audience_ids
        for name, ids in (
            ("unfiltered", everyone.audience_ids),
            ("audience of 34 %", (third,)),
            ("audience of 6 %", (some,)),
            ("audience of 1 %", (few,)),
        ):
            rows = np.flatnonzero(np.isin(owners, ids))
            truth = nearest(corpus, rows)
            scope = Scope(everyone.knowledge_base_id, ids, 0.5, NOW)
            with acting_for(reader_of(ids)):
                for deep in (False, True):
                    title = f"{name}, second look" if deep else name
                    lines.append(measure(title, corpus, scope, truth, deep=deep))
    print(
        f"{'scope':32} {'visible':>8} {'route':>6} {'recall@4':>9} {'limit':>6}"
        f" {'fewest':>7}   {'vectors p50/p99 ms':>20} {'+ 14 words p50/p99':>20}"
    )
    for line in lines:
        more = "+" if line.route == "hnsw" else " "
        print(
            f"{line.name:32} {line.visible:7}{more} {line.route:>6} {line.recall:9.4f}"
            f" {RECALL_LIMIT:6.2f} {line.fewest:7}"
            f"   {line.vectors[0]:12.2f} /{line.vectors[1]:6.2f}"
            f" {line.words[0]:12.2f} /{line.words[1]:6.2f}"
        )
    return all(line.recall >= RECALL_LIMIT for line in lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--real", action="store_true")
    arguments = parser.parse_args()
    with as_owner("benchmarks"):
        reached = run(arguments.entries, arguments.questions, is_real=arguments.real)
    sys.exit(0 if reached else 1)
