"""Causal language models of several families, tiny and with random weights."""

from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from accounts.loaded_once import LoadedOnce
from probes.language_model import Tokens, WhiteBoxModel

SPECIAL = ["<|im_start|>", "<|im_end|>", "<s>", "[INST]"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
FAMILIES = ("gemma", "gemma2", "gpt2", "llama", "mistral", "qwen2")
_SIZES: dict[str, object] = {
    "vocab_size": 320, "hidden_size": 32, "intermediate_size": 48,
    "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 8, "bos_token_id": None, "eos_token_id": 257, "pad_token_id": None,
}  # fmt: skip


def configuration(family: str, context_length: int) -> transformers.PreTrainedConfig:
    sizes = _SIZES | {"max_position_embeddings": context_length}
    if family == "gpt2":
        sizes = {
            "vocab_size": 320, "n_embd": 32, "n_layer": 3, "n_head": 4,
            "n_positions": context_length, "bos_token_id": None, "eos_token_id": 257,
        }  # fmt: skip
    if family in {"gemma2", "mistral"}:
        # Shorter than what the tests read: the window slides.
        sizes["sliding_window"] = 16
    made: transformers.PreTrainedConfig = transformers.AutoConfig.for_model(
        family, **sizes
    )
    return made


def tokenizer(template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    """Return a tokenizer of bytes, ids 0 to 255, and four control tokens after them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(
        models.BPE({letter: i for i, letter in enumerate(alphabet)}, merges=[])
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="<|im_end|>",
        additional_special_tokens=SPECIAL,
    )
    fast.chat_template = template
    return fast


def network(family: str, context_length: int = 512) -> transformers.PreTrainedModel:
    torch.manual_seed(7)
    made: transformers.PreTrainedModel = transformers.AutoModelForCausalLM.from_config(
        configuration(family, context_length)
    )
    return made


def model(family: str, context_length: int = 512) -> WhiteBoxModel:
    return WhiteBoxModel(
        network(family, context_length),
        Tokens(tokenizer()),
        name=family,
        fingerprint="0" * 64,
    )


def save(
    directory: Path,
    *,
    family: str = "llama",
    safetensors: bool = True,
    context_length: int = 512,
) -> Path:
    network(family, context_length).save_pretrained(directory)
    tokenizer().save_pretrained(directory)
    if not safetensors:
        weights = directory / "model.safetensors"
        torch.save(network(family).state_dict(), directory / "pytorch_model.bin")
        weights.unlink()
    return directory


def holding(key: object, value: object) -> LoadedOnce[object, object]:
    """Return a cache in which that value is loaded."""
    held = LoadedOnce[object, object]()
    held.get(key, lambda: value)
    return held
