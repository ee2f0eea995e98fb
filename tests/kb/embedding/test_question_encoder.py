"""The short way to a question's vector: the library's vector, or not taken at all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

from kb.embedding.embedder import load_embedder
from kb.embedding.question_encoder import (
    lay_out_for_short_texts,
    question_encoder,
    side_by_side,
)
from tests.kb.embedding.tiny_embedder import DIMENSIONS, save_tiny_embedder

TEXTS = ("Fee?", "How much is a replacement card?", "word " * 400)


def _tiny(tmp_path: Path) -> SentenceTransformer:
    directory = save_tiny_embedder(tmp_path, seed=4)
    return SentenceTransformer(str(directory), device="cpu").eval()


def _bert(model: SentenceTransformer) -> Any:
    return model[0].auto_model


def _another_activation(model: SentenceTransformer) -> None:
    _bert(model).config.hidden_act = "relu"


def _first_token(model: SentenceTransformer) -> None:
    model[1] = Pooling(DIMENSIONS, pooling_mode="cls")


def _a_third_part(model: SentenceTransformer) -> None:
    model.append(torch.nn.Identity())


def _a_hook(model: SentenceTransformer) -> None:
    layer = _bert(model).encoder.layer[0].intermediate
    layer.register_forward_hook(lambda _layer, _given, made: 2 * made)


def test_the_bundled_model_is_asked_the_short_way():
    assert load_embedder("bundled")._question_encoder is not None


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("text", TEXTS)
def test_it_gives_what_the_library_gives(tmp_path: Path, text: str, packed: bool):
    model = _tiny(tmp_path)
    expected = model.encode_query([text], normalize_embeddings=True)[0]
    if packed:
        lay_out_for_short_texts(model)

    encoder = question_encoder(model)

    assert encoder is not None
    with torch.inference_mode():
        found = encoder(model.preprocess([text])["input_ids"][0]).numpy()
    assert np.abs(found / np.linalg.norm(found) - expected).max() < 1e-6


@pytest.mark.parametrize(
    "change", [_another_activation, _first_token, _a_third_part, _a_hook]
)
def test_another_kind_of_model_is_left_to_the_library(
    tmp_path: Path, change: Callable[[SentenceTransformer], None]
):
    model = _tiny(tmp_path)
    change(model)

    assert question_encoder(model) is None


def test_a_model_that_computes_otherwise_is_left_to_the_library(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    model = _tiny(tmp_path)
    # Outside the layers, where nothing but the comparison can see it.
    _bert(model).embeddings.register_forward_hook(lambda _layer, _given, made: 2 * made)

    assert question_encoder(model) is None
    assert "the short one differs by" in caplog.text


@pytest.mark.parametrize("bias", [True, False])
def test_layers_side_by_side_give_what_each_gives(bias: bool):
    torch.manual_seed(3)
    layers = [torch.nn.Linear(8, width, bias=bias) for width in (4, 6)]
    x = torch.randn(3, 8)

    with torch.inference_mode():
        found = side_by_side(layers)(x)
        expected = torch.cat([layer(x) for layer in layers], dim=1)

    torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-5)
