"""One short text is embedded as the library embeds it, or is left to the library."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch.nn import functional

from kb.embedding.embedder import (
    LocalEmbedder,
    _embed_one,
    bundled_directory,
    load_bundled,
)
from kb.embedding.short_texts import question_encoder


@pytest.fixture(scope="module")
def model() -> SentenceTransformer:
    return SentenceTransformer(str(bundled_directory()), device="cpu").float().eval()


def encoder_of(model):
    return question_encoder(model, lambda text: _embed_one(model, text))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_every_text_has_the_librarys_vector(text):
    embedder = load_bundled()

    expected = embedder._model.encode_query([text], normalize_embeddings=True)[0]

    assert np.abs(embedder.encode_question(text) - expected).max() < 1e-5


def test_the_bundled_model_is_encoded_without_the_librarys_steps(model):
    encode = encoder_of(model)

    with torch.inference_mode():
        found = functional.normalize(encode("What does it cost?"), dim=0)
        expected = functional.normalize(_embed_one(model, "What does it cost?"), dim=0)

    assert (found - expected).abs().max() < 1e-5


def test_the_bundled_model_as_it_is_loaded_takes_the_quick_way():
    assert load_bundled()._encode_short is not None


def test_a_text_beyond_the_window_is_cut_as_the_library_cuts_it():
    embedder = load_bundled()
    text = "How much is a card? " * 100

    expected = embedder._model.encode_query([text], normalize_embeddings=True)[0]

    assert np.abs(embedder.encode_question(text) - expected).max() < 1e-5


def test_another_pooling_is_left_to_the_library(model):
    width = model[1].embedding_dimension
    parts = [model[0], Pooling(width, pooling_mode="cls"), *list(model)[2:]]

    assert encoder_of(SentenceTransformer(modules=parts, device="cpu")) is None


def test_a_model_whose_vectors_differ_is_left_to_the_library(model, caplog):
    moved = question_encoder(model, lambda text: _embed_one(model, text).roll(1))

    assert moved is None
    assert "embedded by the library" in caplog.text


def test_a_model_that_shortens_its_vectors_is_left_to_the_library():
    short = SentenceTransformer(str(bundled_directory()), device="cpu", truncate_dim=64)

    assert LocalEmbedder("short", short, "0" * 64)._encode_short is None
