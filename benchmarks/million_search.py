"""The search measurements of `benchmarks.million`, and concurrent writes."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from django.contrib.auth.models import User
from django.db import connection, transaction

from accounts.acting import acting_for
from benchmarks.clients import quantile
from benchmarks.loop_knowledge import Drawn
from benchmarks.million_rows import WRITTEN_FROM, Truth
from benchmarks.recall import DIMENSIONS, RECALL_LIMIT, SHARES, TOP_K
from benchmarks.row_security import served_seconds
from kb.embedding.services import PreparedVectors
from kb.entries.services import create_entries
from kb.entries.values import NewEntry
from kb.models import Audience, EmbeddingModel, KnowledgeBase
from kb.search import nearest_excluded, search
from kb.types import QuestionVector, Scope
from qa.answers.sources import KnowledgeRetriever
from qa.pipeline.hard_gate import passes
from qa.pipeline.policy import Policy
from qa.pipeline.retrieve import retrieve
from qa.pipeline.values import Question

LATENCY_LIMIT = 20.0  # milliseconds
WRITES_A_SECOND = 5
_SAME = 1e-4


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    reader: User
    scope: Scope
    deep: bool = False  # the second search that the product makes before it refuses


class Given(KnowledgeRetriever):
    """The product's retriever, with the vectors of its questions given."""

    def __init__(self, scope: Scope, vectors: dict[str, QuestionVector]) -> None:
        super().__init__(scope)
        self._vectors = vectors


def vector_of(values: np.ndarray) -> QuestionVector:
    model = EmbeddingModel.objects.get(state="active")
    return QuestionVector("", values, model.pk, model.fingerprint, 0.0)


def look(case: Case, vector: QuestionVector, text: str) -> tuple[list[int], float]:
    """Return the entries nearest to a question, and the search time in milliseconds."""
    begun = time.perf_counter()
    found = search(vector, text, scope=case.scope, top_k=2 * TOP_K, deep=case.deep)
    milliseconds = (time.perf_counter() - begun) * 1000
    nearest = sorted(found.hits, key=lambda hit: hit.distance)[:TOP_K]
    return [hit.entry_id for hit in nearest], milliseconds


def print_heads() -> None:
    print(
        f"{'':34} {'':>6} {'recall@4 of':>15}  {'vectors alone, ms':^25}  {'with 14 words':^25}\n"
        f"{'search':34} {'route':>6} {'near':>7} {'far':>7}"
        + f"  {'p50':>7} {'p99':>8} {'cpu':>8}"
        * 2
    )


def measure_case(
    case: Case, vectors: list[QuestionVector], texts: list[str], truth: Truth | None
) -> bool:
    """Print recall and latencies of a case; return whether they are within limits.

    The processor time of the database process per question is printed too; other load
    does not affect it.
    """
    right, wanted = [0, 0], [0, 0]
    with acting_for(case.reader):
        for vector, text in zip(vectors[:20], texts[:20], strict=True):  # warms up
            look(case, vector, text)
        cells, took = "", [0.0]
        for words in (False, True):
            took, before = [], served_seconds(connection.connection)
            for at, vector in enumerate(vectors):
                found, milliseconds = look(case, vector, texts[at] if words else "")
                took.append(milliseconds)
                if truth is not None and not words:
                    exact = {each for each in truth.nearest[at].tolist() if each}
                    right[at % 2] += len(exact & set(found))
                    wanted[at % 2] += len(exact)
            worked = served_seconds(connection.connection) - before
            cells += (
                f"  {quantile(took, 0.5):7.1f} {quantile(took, 0.99):8.1f}"
                f" {worked * 1000 / len(vectors):8.1f}"
            )
        route = search(vectors[0], "", scope=case.scope, top_k=TOP_K).route
    shares = [each / of for each, of in zip(right, wanted, strict=True) if of]
    recalls = [f"{each:7.4f}" for each in shares] or [" " * 7] * 2
    print(f"{case.name:34} {route:>6} {' '.join(recalls)}{cells}", flush=True)
    is_fast = quantile(took, 0.99) <= LATENCY_LIMIT
    return is_fast and all(each >= RECALL_LIMIT for each in shares)


def measure_half(vectors: list[QuestionVector], truth: Truth) -> None:
    """Print recall and latency of each index alone, for the 80 nearest vectors."""
    sides = (
        ("full precision", "kb_entryembedding", "vector", "vector"),
        ("half precision", "kb_halfvector", "half", "halfvec"),
    )
    for name, table, column, kind in sides:
        took, right = [], 0
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL hnsw.ef_search = 200")
            cursor.execute("SET LOCAL enable_sort = off")
            for at, vector in enumerate(vectors):
                # As in the product, the vector is passed as text.
                said = str(vector.values.tolist())
                begun = time.perf_counter()
                cursor.execute(
                    f"SELECT entry_id FROM {table} WHERE model_id = {vector.model_id}"
                    f" ORDER BY {column}::{kind}({DIMENSIONS})"
                    f" <-> %s::{kind}({DIMENSIONS}) LIMIT 80",
                    [said],
                )
                found = {row[0] for row in cursor.fetchall()}
                took.append((time.perf_counter() - begun) * 1000)
                right += len(found & set(truth.nearest[at].tolist()))
        print(
            f"{name:16} recall@4 {right / len(vectors) / TOP_K:.4f},"
            f" p50 {quantile(took, 0.5):.1f} ms, p99 {quantile(took, 0.99):.1f} ms"
        )


def measure_withheld(
    case: Case, vectors: list[QuestionVector], truth: Truth | None
) -> None:
    """Print the latency and accuracy of the search of what an asker may not see."""
    took, right = [], 0
    with acting_for(case.reader):
        for vector in vectors[:5]:  # warms up
            nearest_excluded(vector, scope=case.scope)
        before = served_seconds(connection.connection)
        for at, vector in enumerate(vectors):
            begun = time.perf_counter()
            found = nearest_excluded(vector, scope=case.scope)
            took.append((time.perf_counter() - begun) * 1000)
            if truth is not None:
                least = min(piece.ratio for piece in found)
                right += abs(least - truth.ratio[at]) < _SAME
        worked = served_seconds(connection.connection) - before
    said = "" if truth is None else f", the least ratio in {right} of {len(vectors)}"
    print(
        f"withheld, {case.name}: p50 {quantile(took, 0.5):.1f} ms, p99"
        f" {quantile(took, 0.99):.1f}, cpu {worked * 1000 / len(vectors):.1f}{said}",
        flush=True,
    )


def compare_decisions(
    case: Case, vectors: list[QuestionVector], texts: list[str], truth: Truth
) -> int:
    """Decide by the product's retrieval and hard gate.

    Returns the number of decisions that differ from those with exact search.
    """
    policy = Policy()
    lost = gained = other = refused = 0
    begun = time.perf_counter()
    with acting_for(case.reader):
        for at, (vector, text) in enumerate(zip(vectors, texts, strict=True), 1):
            found = retrieve(
                Question(text),
                retriever=Given(case.scope, {text: vector}),
                policy=policy,
            )
            passed = passes(found, policy)
            refused += not passed
            is_covered = truth.ratio[at - 1] < policy.alpha
            lost += is_covered and not passed
            gained += passed and not is_covered
            deciding = min(found.evidence, key=lambda piece: piece.ratio)
            other += deciding.entry_id != truth.deciding[at - 1]
            if at % 1_000 == 0:
                rate = at / (time.perf_counter() - begun)
                print(f"  {at} decided, {rate:.0f} a second", flush=True)
    print(
        f"{len(vectors)} questions, {refused} refused: {lost} refused but covered by"
        f" exact search, {gained} covered but refused by it,"
        f" {other} decided by another entry",
        flush=True,
    )
    return lost + gained


def write_until_stopped() -> None:
    """Add verified entries through the services, `WRITES_A_SECOND`, until killed."""
    model = EmbeddingModel.objects.get(state="active")
    prepared = PreparedVectors(model.fingerprint, Drawn(DIMENSIONS))
    author = User.objects.get(username="author")
    audience = Audience.objects.get(slug=list(SHARES)[-1])
    base, number = KnowledgeBase.objects.get(), time.time_ns()
    while True:
        number += 1
        text = f"Rule {number} says that a card costs {number % 97} euros."
        new = NewEntry(knowledge_base=base, audience=audience, text=text, verify=True)
        create_entries([new], author=author, prepared=prepared)
        time.sleep(1 / WRITES_A_SECOND)


@contextmanager
def writes_going_on(directory: Path) -> Iterator[None]:
    """Let another process write during the block; print how many entries it wrote."""
    command = (sys.executable, "-m", "benchmarks.million", str(directory))
    before = count_written()
    begun = time.perf_counter()
    with subprocess.Popen([*command, "--write"]) as writer:
        while count_written() == before and writer.poll() is None:
            time.sleep(0.2)
        try:
            yield
        finally:
            writer.terminate()
    written = count_written() - before
    print(f"meanwhile {written} entries written in {time.perf_counter() - begun:.0f} s")


def count_written() -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM kb_entry WHERE id >= {WRITTEN_FROM}")
        return int(cursor.fetchone()[0])
