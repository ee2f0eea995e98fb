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


def saying_y_after(letter: str, context_length: int) -> transformers.PreTrainedModel:
    """Return a model that answers "y" where that letter stands before a colon, else "n".

    By wide margins, which weights left random have not: which of their answers come out
    differs from processor to processor.
    """
    made = network("llama", context_length)
    seen, yes, no, colon, end = (
        tokenizer().encode(one)[0] for one in (letter, "y", "n", ":", "\n")
    )
    # Of the 32 dimensions: 0 the letter, 1 its share of what was read, 2 that an answer
    # stands there, 3 a colon. The others stay random.
    first = made.model.layers[0].self_attn
    with torch.no_grad():
        embedded = made.model.embed_tokens.weight
        embedded[:, :4] = 0.0
        embedded[seen, 0] = embedded[colon, 3] = 1.0
        embedded[[yes, no], 2] = 10.0
        for layer in made.model.layers:
            layer.self_attn.o_proj.weight[:4] = layer.mlp.down_proj.weight[:4] = 0.0
        first.q_proj.weight.zero_()  # each token looks at all before it alike
        first.v_proj.weight[0] = 0.0
        first.v_proj.weight[0, 0], first.o_proj.weight[1, 0] = 1.0, 60.0
        made.lm_head.weight.zero_()
        for said, dimension in ((yes, 1), (end, 2), (no, 3)):
            made.lm_head.weight[said, dimension] = 1.0
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
    made: transformers.PreTrainedModel | None = None,
) -> Path:
    made = made or network(family, context_length)
    made.save_pretrained(directory)
    tokenizer().save_pretrained(directory)
    if not safetensors:
        weights = directory / "model.safetensors"
        torch.save(made.state_dict(), directory / "pytorch_model.bin")
        weights.unlink()
    return directory


def holding(key: object, value: object) -> LoadedOnce[object, object]:
    """Return a cache in which that value is loaded."""
    held = LoadedOnce[object, object]()
    held.get(key, lambda: value)
    return held
