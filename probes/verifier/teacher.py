"""A larger encoder that is fitted as a cross-encoder, from which the verifier's own learns.

Its logits of a question's entries say more than which of them answers: how much each of the
others looks like an answer. Distillation as by Hinton et al. (2015); that of rankers by larger
rankers is Hofstätter et al., "Improving Efficient Neural Ranking Models with Cross-Architecture
Knowledge Distillation" (2020).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

import torch
from torch import nn
from transformers import AutoModel, AutoTokenizer

from probes.language_model.loading import choose_dtype

from .cross_encoder import head, pooled
from .reading import MAX_QUESTION, MAX_WINDOW, Pair, Reader, by_length

_CHUNK: Final = 64  # pairs that are read at once


class Teacher(nn.Module):
    """A logit that the entry answers, of each pair read together by any encoder."""

    def __init__(self, encoder: Any, tokenizer: Any, reader: Reader) -> None:  # noqa: ANN401  # of transformers
        super().__init__()
        self.encoder, self.head = encoder, head(int(encoder.config.hidden_size))
        self._tokenizer, self._reader = tokenizer, reader

    @classmethod
    def of(cls, directory: Path, reader: Reader) -> Self:
        """Load an encoder; its head is new. On the reader's device."""
        encoder: Any = AutoModel.from_pretrained(
            str(directory), use_safetensors=True, dtype=torch.float32
        )
        tokenizer = AutoTokenizer.from_pretrained(str(directory))
        return cls(encoder, tokenizer, reader).to(reader.device)

    def logits(self, pairs: Sequence[Pair]) -> torch.Tensor:
        """Return (pairs,), on the processor; those of like length are read together."""
        texts = [self._reader.text_of(*pair) for pair in pairs]
        lengths = [len(question) + len(window) for question, window in texts]
        return by_length(
            lengths, _CHUNK, lambda places: self._read([texts[at] for at in places])
        )

    def _read(self, texts: Sequence[tuple[str, str]]) -> torch.Tensor:
        read = self._tokenizer(
            *(list(side) for side in zip(*texts, strict=True)),
            padding=True,
            truncation="only_second",
            max_length=MAX_QUESTION + MAX_WINDOW,
            return_tensors="pt",
        )
        parts = [read.sequence_ids(row) for row in range(len(texts))]
        sides = [
            torch.tensor([[each == side for each in row] for row in parts])
            for side in (0, 1)
        ]
        device = self._reader.device
        halves = choose_dtype(device) is torch.bfloat16
        with torch.autocast(device.type, torch.bfloat16, enabled=halves):
            states = self.encoder(**read.to(device)).last_hidden_state
            logits = pooled(self.head, states, *(side.to(device) for side in sides))
        return logits.cpu()
