"""Convert SmolLM2's GGUF file to safetensors, configuration and tokenizer."""

import io
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import Final

import torch
from tokenizers import pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from probes.exceptions import BundledModelError

SPECIAL_TOKENS: Final = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>",
    "<file_sep>", "<filename>", "<gh_stars>", "<issue_start>", "<issue_comment>",
    "<issue_closed>", "<jupyter_start>", "<jupyter_text>", "<jupyter_code>",
    "<jupyter_output>", "<jupyter_script>", "<empty_output>",
)  # fmt: skip
_CHECK_PROMPT: Final = "The capital of France is"
_CHECK_CONTINUATION: Final = " Paris"


def convert(source: Path, target: Path, report: Callable[[str, float], None]) -> None:
    """Convert the GGUF file `source` into the directory `target` and check it."""
    report("Reading the language model's tokenizer", 0.05)
    tokenizer = _read_tokenizer(source)
    report("Unpacking the language model's weights (about 10 s)", 0.4)
    with redirect_stderr(io.StringIO()):  # its own progress bar would break up ours
        model = AutoModelForCausalLM.from_pretrained(
            source.parent,
            gguf_file=source.name,
            dtype=torch.bfloat16,
            quantization_config=GgufConfig(dequantize=True),
            local_files_only=True,
        )
        report("Writing the language model", 0.85)
        tokenizer.save_pretrained(target)
        model.save_pretrained(target)
        report("Trying the converted model", 0.9)
        _check(target)


def _read_tokenizer(source: Path) -> PreTrainedTokenizerFast:
    tokenizer = AutoTokenizer.from_pretrained(
        source.parent, gguf_file=source.name, local_files_only=True
    )
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise BundledModelError(
            f"The tokenizer was read as {type(tokenizer).__name__}, not as a fast one."
        )
    # The conversion splits words as GPT-2 does; the file asks for "smollm", which
    # splits digits off first.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    return tokenizer


def _check(directory: Path) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(
        directory, local_files_only=True
    )
    expected = {token: number for number, token in enumerate(SPECIAL_TOKENS)}
    found = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL_TOKENS}
    if found != expected or set(tokenizer.get_added_vocab()) != set(SPECIAL_TOKENS):
        raise BundledModelError(
            f"The converted tokenizer's special tokens are {found}, not {expected}."
        )
    if "<|im_start|>" not in (tokenizer.chat_template or ""):
        raise BundledModelError("The converted tokenizer lost its chat template.")
    model = AutoModelForCausalLM.from_pretrained(
        directory, local_files_only=True, use_safetensors=True
    )
    continuation = _greedy_token(model, tokenizer, _CHECK_PROMPT)
    if continuation != _CHECK_CONTINUATION:
        raise BundledModelError(
            f"The converted model continues {_CHECK_PROMPT!r} with {continuation!r} "
            f"instead of {_CHECK_CONTINUATION!r}."
        )


@torch.inference_mode()
def _greedy_token(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, prompt: str
) -> str:
    ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False).input_ids
    logits = model(input_ids=ids).logits
    return str(tokenizer.decode([int(logits[0, -1].argmax())]))
