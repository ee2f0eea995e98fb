"""The cross-encoder: a larger encoder reads a question and an entry as one text.

It sees which words of the entry belong to which of the question, which states made of
each text alone cannot show. Nothing of an entry can be cached for it, so only the
likeliest entries are read this way. The design is that of Nogueira and Cho, "Passage
Re-ranking with BERT" (2019); only low-rank changes of the encoder are fitted (Hu et
al., "LoRA", 2022) and stored, beside its head.
"""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, Self

import torch
from django.conf import settings
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging as transformers_logging

from probes import bundled_encoder
from probes.adapter.merging import merge_changes
from probes.cards import sha256_of
from probes.language_model.loading import choose_dtype

from . import quantization
from .reading import MAX_QUESTION, MAX_WINDOW, Pair, Reader, by_length

_CHUNK: Final = 32  # pairs that are read at once
_HEAD_WIDTH: Final = 128
RANK: Final = 20
_FACTOR: Final = 2.0  # of the low-rank changes
_ENCODER, _HEAD = "encoder.", "head."


def encoder_in_use() -> tuple[Path, str]:
    """Return the configured encoder's directory and the digest of its weights.

    The bundled one is prepared, which checks its digest already.
    """
    if settings.VERIFIER_ENCODER == "bundled":
        place = bundled_encoder.prepare(settings.PLACES.models)
        return place, bundled_encoder.SHA256
    place = Path(settings.VERIFIER_ENCODER)
    return place, sha256_of(place / bundled_encoder.WEIGHTS)


_Row = tuple[tuple[int, ...], tuple[int, ...]]  # token ids and sides of a pair
_NEITHER: Final = 2
# Cached logits: a question asked again, or decided again on the same entries, needs no
# second reading, which is most of an answer's time. About 20 MB, at 100 tokens each.
_KEPT: Final = 4_096


@cache
def _side_by_side() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="cross-encoder")


def _is_quantized(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether it computes in int8: faster here, and no other precision is set."""
    return (
        settings.MODEL_PRECISION == "auto"
        and device.type == "cpu"
        and dtype is torch.float32
        and quantization.can_compute()
    )


os.register_at_fork(after_in_child=_side_by_side.cache_clear)  # a fork has no threads


class CrossEncoder(nn.Module):
    """Computes a logit that the entry answers, for each pair read together."""

    def __init__(self, encoder: Any, tokenizer: Any, reader: Reader) -> None:
        super().__init__()
        width = int(encoder.config.hidden_size)
        self.encoder = encoder
        self.head = nn.Sequential(
            nn.Linear(3 * width, _HEAD_WIDTH), nn.GELU(), nn.Linear(_HEAD_WIDTH, 1)
        )
        self._tokenizer, self._reader = tokenizer, reader
        self._lock = threading.Lock()  # the tokenizer's settings are shared
        self._logit: Callable[[_Row], torch.Tensor] = self._alone

    @classmethod
    def to_fit(
        cls,
        directory: Path,
        reader: Reader,
        kept: Mapping[str, torch.Tensor] | None = None,
    ) -> Self:
        """Return one to fit, new or continued from what was kept of an earlier one."""
        # Imported here because it takes seconds, which only a fit should pay for.
        from peft import LoraConfig, inject_adapter_in_model, set_peft_model_state_dict  # noqa: PLC0415

        found = cls._of(directory, reader)
        names = [
            name
            for name, module in found.encoder.named_modules()
            if isinstance(module, nn.Linear) and "pooler" not in name
        ]
        config = LoraConfig(
            r=RANK, lora_alpha=round(_FACTOR * RANK), target_modules=names
        )
        inject_adapter_in_model(config, found.encoder)
        for name, weight in found.encoder.named_parameters():
            weight.requires_grad_("lora_" in name)
        if kept:
            set_peft_model_state_dict(found.encoder, _part(kept, _ENCODER))
            found.head.load_state_dict(_part(kept, _HEAD))
        return found.to(reader.device)

    @classmethod
    def in_use(
        cls, directory: Path, reader: Reader, kept: Mapping[str, torch.Tensor]
    ) -> Self:
        """Return one whose low-rank changes are merged into the encoder's weights.

        Raises:
            RuntimeError, ValueError: The kept weights do not fit this encoder.
        """
        dtype = choose_dtype(reader.device)
        found = cls._of(directory, reader, dtype)
        merge_changes(found.encoder, _part(kept, _ENCODER), _FACTOR)
        found.head.load_state_dict(_part(kept, _HEAD))
        if _is_quantized(reader.device, dtype):
            quantization.quantize(found.encoder)
        found._logit = lru_cache(maxsize=_KEPT)(found._alone)  # its weights are final
        return found.to(reader.device).eval()

    @classmethod
    def _of(
        cls, directory: Path, reader: Reader, dtype: torch.dtype = torch.float32
    ) -> Self:
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        encoder: Any = AutoModel.from_pretrained(
            str(directory), use_safetensors=True, dtype=dtype
        )
        for part in encoder.modules():
            if isinstance(part, nn.Dropout):
                # It doubles a step's time, and each question is fitted only a few
                # times.
                part.p = 0.0
        return cls(encoder, AutoTokenizer.from_pretrained(str(directory)), reader)

    def kept(self) -> dict[str, torch.Tensor]:
        """Return the fitted weights to store: the low-rank changes and the head."""
        from peft import get_peft_model_state_dict  # noqa: PLC0415  # as above

        changes = get_peft_model_state_dict(self.encoder)
        return {f"{_ENCODER}{name}": each for name, each in changes.items()} | {
            f"{_HEAD}{name}": each for name, each in self.head.state_dict().items()
        }

    def logits(self, pairs: Sequence[Pair]) -> torch.Tensor:
        """Return the pairs' logits, (pairs,), on the CPU."""
        rows = self._tokens([self._reader.text_of(*pair) for pair in pairs])
        if self.training or self._reader.device.type != "cpu":
            return by_length(
                [len(ids) for ids, _ in rows],
                _CHUNK,
                lambda places: self._read([rows[at] for at in places]),
            )
        # In parallel on the free cores: no slower than in one batch if none is free.
        return torch.cat(list(_side_by_side().map(self._logit, rows)))

    def summaries(self, texts: Sequence[tuple[str, str]]) -> torch.Tensor:
        """Return the head's input for text pairs: (pairs, 3 * width), on the CPU."""
        rows = self._tokens(texts, truncation="longest_first")
        with torch.inference_mode():
            return by_length(
                [len(ids) for ids, _ in rows],
                _CHUNK,
                lambda places: self._summaries([rows[at] for at in places]).cpu().T,
            ).T

    def _tokens(
        self, texts: Sequence[tuple[str, str]], *, truncation: str = "only_second"
    ) -> list[_Row]:
        """Return each pair's token ids and sides: 0 the first text, 1 the second."""
        with self._lock:
            read = self._tokenizer(
                *(list(side) for side in zip(*texts, strict=True)),
                truncation=truncation,
                max_length=MAX_QUESTION + MAX_WINDOW,
            )
            sides = [
                [_NEITHER if side is None else side for side in read.sequence_ids(row)]
                for row in range(len(texts))
            ]
        return [
            (tuple(ids), tuple(own))
            for ids, own in zip(read["input_ids"], sides, strict=True)
        ]

    def _alone(self, row: _Row) -> torch.Tensor:
        with torch.inference_mode():
            return self._read([row])

    def _read(self, rows: Sequence[_Row]) -> torch.Tensor:
        logits: torch.Tensor = self.head(self._summaries(rows))
        return logits.squeeze(-1).cpu()

    def _summaries(self, rows: Sequence[_Row]) -> torch.Tensor:
        device = self._reader.device
        pad = self._tokenizer.pad_token_id
        ids, sides, mask = (
            pad_sequence(
                [torch.tensor(own) for own in each],
                batch_first=True,
                padding_value=value,
            ).to(device)
            for each, value in (
                ([ids for ids, _ in rows], pad),
                ([own for _, own in rows], _NEITHER),
                ([[1] * len(ids) for ids, _ in rows], 0),
            )
        )
        # During a fit the weights stay in float32 and only products are in bfloat16.
        halves = self.training and choose_dtype(device) is torch.bfloat16
        with torch.autocast(device.type, torch.bfloat16, enabled=halves):
            states = self.encoder(ids, attention_mask=mask).last_hidden_state
        return _summary(states.float(), *(sides == side for side in (0, 1)))


def _summary(states: torch.Tensor, *sides: torch.Tensor) -> torch.Tensor:
    """Return the first token's state and the means of both sides: (pairs, 3 * width).

    Args:
        states: (pairs, tokens, width).
        sides: Which tokens are the first text's, and the second's: (pairs, tokens).
    """
    means = [
        (states * side[:, :, None]).sum(1) / side.sum(1, keepdim=True).clamp_min(1)
        for side in sides
    ]
    return torch.cat([states[:, 0], *means], 1)


def _part(kept: Mapping[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {
        name.removeprefix(prefix): each
        for name, each in kept.items()
        if name.startswith(prefix)
    }
