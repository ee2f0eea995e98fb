import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounts.acting import as_owner
from jobs.models import Job
from jobs.run import run_job
from jobs.services import enqueue, request_cancel, retry
from kb.documents.services import edit_document
from kb.embedding import switch as embedding
from kb.embedding import vector_index
from kb.embedding.embedder import load_embedder
from kb.embedding.services import active_model, embedded
from kb.entries.services import edit_entry
from kb.models import EmbeddingModel, Entry, EntryEmbedding
from kb.search import embed_question, search
from kb.types import Scope
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entries,
    make_entry,
    make_knowledge_base,
)
from tests.kb.embedding.tiny_embedder import save_tiny_embedder
from tests.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

HANDLERS = {
    embedding.KIND: embedding.embed_and_switch,
    embedding.TIDY_KIND: embedding.tidy_vectors,
}
ACTIVE = EmbeddingModel.State.ACTIVE
RETIRED = EmbeddingModel.State.RETIRED


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny_embedder(tmp_path_factory.mktemp("tiny"), seed=3))


def embed(name: str, **parameters: object) -> Job:
    job = enqueue(embedding.KIND, {"name": name, **parameters})
    run_job(job.pk, HANDLERS)
    job.refresh_from_db()
    return job


def stops_after(times: int) -> Callable[[], bool]:
    """Tell a run that its worker shuts down once it asked so many times."""
    asked = itertools.count(1)
    return lambda: next(asked) > times


def everyone_scope() -> Scope:
    return Scope(make_knowledge_base().pk, (make_audience().pk,), 0.5, timezone.now())


def assert_complete(name: str) -> None:
    """Every entry has a vector of each part under the model, made of what it says now."""
    model = EmbeddingModel.objects.get(name=name)
    embedder = load_embedder(name)
    entries = list(Entry.objects.order_by("pk"))
    rows = EntryEmbedding.objects.filter(model=model).order_by("entry_id", "part")
    said = {
        (entry.pk, part): (text, each.digest)
        for entry, each in zip(entries, embedded(entries), strict=True)
        for part, text in sorted(each.parts.items())
    }
    assert [(row.entry_id, row.part) for row in rows] == list(said)
    assert [row.text_sha256 for row in rows] == [digest for _, digest in said.values()]
    texts = [text for text, _ in said.values()]
    stored = np.array([row.vector for row in rows], dtype=np.float32)
    assert np.allclose(stored, embedder.encode(texts), atol=1e-5)


def test_another_model_is_embedded_and_answers(tiny: str):
    make_entries([f"Fee number {at} is {at} euros." for at in range(150)])
    old = active_model()

    job = embed(tiny)

    assert (job.state, job.error) == (Job.State.SUCCEEDED, "")
    assert (job.done, job.total) == (150, 150)
    assert job.result["switched"] is True
    assert_complete(tiny)
    old.refresh_from_db()
    assert (active_model().name, old.state) == (tiny, RETIRED)
    found = search(
        embed_question("Fee number 7 is 7 euros."), "", scope=everyone_scope(), top_k=1
    )
    assert found.hits[0].text == "Fee number 7 is 7 euros."
    assert found.hits[0].distance == pytest.approx(0, abs=1e-3)
    assert found.embedder == load_embedder(tiny).fingerprint


def test_the_same_model_again_overwrites_every_vector():
    make_entries([f"Limit number {at}." for at in range(130)])
    EntryEmbedding.objects.update(text_sha256="0" * 64)

    job = embed("bundled", again=True)

    assert (job.done, job.total, job.result["switched"]) == (130, 130, False)
    assert_complete("bundled")


def test_a_model_that_answers_already_gets_only_what_is_missing():
    entries = make_entries([f"Limit number {at}." for at in range(5)])
    EntryEmbedding.objects.filter(entry=entries[0]).delete()
    EntryEmbedding.objects.filter(entry=entries[1]).update(text_sha256="0" * 64)

    job = embed("bundled")

    assert (job.done, job.total) == (2, 2)
    assert_complete("bundled")


@pytest.mark.parametrize("again", [False, True])
def test_a_run_that_ends_early_is_taken_up_where_it_stood(tiny: str, again: bool):
    name = "bundled" if again else tiny
    make_entries([f"Deadline number {at}." for at in range(200)])
    job = enqueue(embedding.KIND, {"name": name, "again": again})
    seen = []

    for stop_after in (2, 4, 2, 5, 3, 99):
        run_job(job.pk, HANDLERS, is_stopping=stops_after(stop_after))
        job.refresh_from_db()
        seen.append(job.done)

    assert job.state == Job.State.SUCCEEDED
    assert (job.done, job.total) == (200, 200)
    assert seen == sorted(seen)
    assert any(0 < done < 200 for done in seen)
    assert_complete(name)


def test_a_cancelled_switch_leaves_the_old_model_answering(tiny: str):
    make_entries([f"Deadline number {at}." for at in range(100)])
    job = enqueue(embedding.KIND, {"name": tiny})
    run_job(job.pk, HANDLERS, is_stopping=stops_after(3))
    request_cancel(job.pk, by=make_superuser())

    run_job(job.pk, HANDLERS)

    job.refresh_from_db()
    assert job.state == Job.State.CANCELLED
    assert active_model().name == "bundled"
    retry(job.pk, by=make_superuser())
    run_job(job.pk, HANDLERS)
    assert active_model().name == tiny
    assert_complete(tiny)


def make_superuser():
    user = make_curator()
    user.is_superuser = True
    user.save()
    return user


@dataclass
class Traffic:
    """Two threads that ask and write until they are told to stop."""

    entries: Sequence[Entry]
    scope: Scope
    author: User
    stop: threading.Event = field(default_factory=threading.Event)
    failures: list[str] = field(default_factory=list)
    models_seen: set[str] = field(default_factory=set)
    edits: int = 0
    questions: int = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [
            threading.Thread(target=copy_context().run, args=[work])
            for work in (self._ask, self._write)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
            assert all(thread.is_alive() for thread in threads)
        finally:
            self.stop.set()
            for thread in threads:
                thread.join()

    def wait_for_more(self, number: int) -> None:
        """Return once so many more questions and edits began and ended."""
        # Those that are under way now began before.
        questions, edits = self.questions + number + 1, self.edits + number + 1
        wait_until(lambda: self.questions >= questions and self.edits >= edits)

    def _ask(self) -> None:
        # The second half of the entries is never edited.
        for entry in itertools.cycle(self.entries[len(self.entries) // 2 :]):
            if self.stop.is_set():
                break
            found = search(embed_question(entry.text), "", scope=self.scope, top_k=1)
            self.models_seen.add(found.embedder)
            if found.visible < len(self.entries) or found.hits[0].distance > 0.01:
                self.failures.append(f"asked {entry.text}: {found}")
            self.questions += 1
        connection.close()

    def _write(self) -> None:
        # What is edited or new must be found at once, whichever model is active.
        for entry in itertools.cycle(self.entries[: len(self.entries) // 2]):
            if self.stop.is_set():
                break
            text = f"Rule number {entry.pk} changed {self.edits} times over."
            if self.edits % 3:
                edit_entry(
                    entry_id=entry.pk, author=self.author, may_verify=True, text=text
                )
            else:
                make_entry(text, author=self.author)
            found = search(embed_question(text), "", scope=self.scope, top_k=1)
            if not found.hits or found.hits[0].text != text:
                self.failures.append(f"wrote {text}: {found}")
            self.edits += 1
        connection.close()


def test_edits_and_questions_in_mid_job_meet_a_complete_model(tiny: str):
    entries = make_entries([f"Rule number {at} holds." for at in range(400)])
    traffic = Traffic(entries, everyone_scope(), make_curator())

    with traffic.running():
        traffic.wait_for_more(3)
        before = (traffic.questions, traffic.edits)
        job = embed(tiny)
        after = (traffic.questions, traffic.edits)
        traffic.wait_for_more(3)

    assert job.state == Job.State.SUCCEEDED, job.error
    assert traffic.failures == []
    assert all(late > early for early, late in zip(before, after, strict=True))
    assert traffic.models_seen == {
        load_embedder("bundled").fingerprint,
        load_embedder(tiny).fingerprint,
    }
    assert_complete(tiny)


def test_a_question_embedded_before_the_switch_is_embedded_again(tiny: str):
    make_entries(["A lost card is blocked at once.", "Fees are charged monthly."])
    vector = embed_question("A lost card is blocked at once.")
    embed(tiny)

    found = search(
        vector, "A lost card is blocked at once.", scope=everyone_scope(), top_k=1
    )

    assert found.embedder == load_embedder(tiny).fingerprint
    assert found.hits[0].distance == pytest.approx(0, abs=1e-3)


def test_switching_back_needs_no_embedding(tiny: str):
    make_entries([f"Fee number {at}." for at in range(70)])
    embed(tiny)

    job = embed("bundled")

    assert (job.done, job.result["switched"]) == (0, True)
    assert active_model().name == "bundled"
    assert_complete("bundled")


def queue_refresh() -> Job:
    """Enqueue what follows the new title of a document, under the model active now."""
    document = make_document()
    entries = make_entries([f"Fee number {at}." for at in range(70)], document=document)
    before = set(Job.objects.values_list("pk", flat=True))
    edit_document(document_id=document.pk, title=f"The title of {len(entries)} fees")
    embedding.enqueue_where_stale()
    return Job.objects.exclude(pk__in=before).get()


def test_a_new_title_during_a_switch_does_not_undo_it(tiny: str):
    old, refresh = active_model(), queue_refresh()
    switch = embed(tiny)
    stale = EntryEmbedding.objects.filter(model=old).values_list("text_sha256")

    before = sorted(stale)
    run_job(refresh.pk, HANDLERS)

    refresh.refresh_from_db()
    old.refresh_from_db()
    assert (refresh.state, refresh.result["switched"]) == (Job.State.SUCCEEDED, False)
    assert (active_model().name, old.state) == (tiny, RETIRED)
    assert (switch.result["switched"], sorted(stale)) == (True, before)
    assert_complete(tiny)


def test_a_refresh_that_a_switch_overtakes_ends_where_it_is(tiny: str):
    refresh = queue_refresh()
    run_job(refresh.pk, HANDLERS, is_stopping=stops_after(3))
    embed(tiny)

    run_job(refresh.pk, HANDLERS)

    refresh.refresh_from_db()
    assert (refresh.state, refresh.done) == (Job.State.SUCCEEDED, 64)
    assert active_model().name == tiny


def test_switching_back_is_no_refresh_that_waits(tiny: str):
    refresh = queue_refresh()
    embed(tiny)

    call_command("switch_embedder", "bundled")

    back = Job.objects.exclude(pk=refresh.pk).latest("created_at")
    run_job(back.pk, HANDLERS)
    assert active_model().name == "bundled"


def test_tidying_removes_the_vectors_of_retired_models_alone(tiny: str, monkeypatch):
    monkeypatch.setattr(vector_index, "EXACT_LIMIT", 10)
    make_entries([f"Fee number {at}." for at in range(20)])
    embed("bundled")
    old = active_model()
    assert vector_index.size_bytes(old) > 0
    embed(tiny)

    job = enqueue(embedding.TIDY_KIND, {})
    run_job(job.pk, HANDLERS)

    job.refresh_from_db()
    assert (job.state, job.done) == (Job.State.SUCCEEDED, 20)
    assert not EntryEmbedding.objects.filter(model=old).exists()
    assert vector_index.size_bytes(old) == 0
    assert vector_index.size_bytes(active_model()) > 0
    assert_complete(tiny)


def test_an_index_that_a_killed_build_left_is_built_again(monkeypatch):
    monkeypatch.setattr(vector_index, "EXACT_LIMIT", 3)
    make_entries([f"Fee number {at}." for at in range(5)])
    model = active_model()
    vector_index.build(model)
    with as_owner("tests"), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid ="
            f" '{vector_index.index_name(model.pk)}'::regclass"
        )

    assert vector_index.build_where_it_pays(model)

    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {vector_index.INDEX_IS_READY}",
            {"index": vector_index.index_name(model.pk)},
        )
        assert cursor.fetchone() == (True,)


def test_two_builders_at_once_build_one_index(monkeypatch):
    monkeypatch.setattr(vector_index, "EXACT_LIMIT", 3)
    make_entries([f"Fee number {at}." for at in range(50)])
    model = active_model()
    built: list[bool] = []

    def build() -> None:
        built.append(vector_index.build_where_it_pays(model))
        connection.close()

    threads = [threading.Thread(target=build) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert built == [True, True, True]
    assert vector_index.size_bytes(model) > 0


def test_few_vectors_get_no_index():
    make_entry()

    assert not vector_index.build_where_it_pays(active_model())


def test_a_job_without_a_model_fails_with_its_reason():
    job = enqueue(embedding.KIND, {})
    with pytest.raises(Exception, match="is not an embedding model"):
        run_job(job.pk, HANDLERS)

    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    assert "is not an embedding model" in job.error


def test_the_command_enqueues_one_job_for_one_model(tiny: str, capsys):
    call_command("switch_embedder", tiny)
    call_command("switch_embedder", tiny)

    job = Job.objects.get(kind=embedding.KIND)
    assert job.parameters == {"name": tiny, "again": False}
    assert str(job.pk) in capsys.readouterr().out


def test_the_command_follows_the_job_to_its_end(tiny: str, capsys):
    make_entries([f"Fee number {at}." for at in range(70)])
    worker = threading.Thread(target=_work_off_one_job)
    worker.start()

    call_command("switch_embedder", tiny, wait=True)

    worker.join()
    assert "switched: True" in capsys.readouterr().out


def _work_off_one_job() -> None:
    queued = Job.objects.filter(state=Job.State.QUEUED)
    try:
        wait_until(queued.exists)
        run_job(queued.get().pk, HANDLERS)
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["/no/such/model"], "NESCIO_EMBEDDING_MODEL"),
        ([], "NAME"),
        (["bundled", "--tidy"], "NAME"),
    ],
)
def test_the_command_refuses_what_cannot_be(arguments: list[str], message: str):
    with pytest.raises(CommandError, match=message):
        call_command("switch_embedder", *arguments)

    assert not Job.objects.exists()
