"""How a verifier reads: a question and a window of an entry into states and vectors.

The bundled sentence embedder reads each text by itself, so that its states of an entry
can be cached. Its last layers may be tuned for the verifier; the sentence vectors come
from the embedder's own layers, whose cosine recognizes paraphrases best.
"""

import copy
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional
from transformers import AutoConfig, AutoModel, AutoTokenizer

from probes.cards import sha256_of

MAX_QUESTION: Final = 40  # tokens, like a window's maximum
MAX_WINDOW: Final = 112
OVERLAP: Final = 32
# What a token of an entry belongs to: its place (title and heading), question or text.
PARTS: Final = 3
PLACE, QUESTION, TEXT = range(PARTS)
# A window's sentence vectors: of all of it, and of its question alone.
WHOLE, ASKED = range(2)
NEVER: Final = -1e4  # added to scores that attention or a softmax must ignore

_BATCH: Final = 32


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """A text, or a window of one, as the embedder reads it.

    Attributes:
        states: float16 of shape (tokens, width), of its last layer.
        ids: int32 of shape (tokens,), in its vocabulary.
        parts: int8 of shape (tokens,); all `TEXT` for a question.
        vectors: float16 of shape (2, width), of length 1: `WHOLE`, and `ASKED` if a
            window has a question, else 0.
    """

    states: NDArray[np.float16]
    ids: NDArray[np.int32]
    parts: NDArray[np.int8]
    vectors: NDArray[np.float16]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        arrays = (self.states, self.ids, self.parts, self.vectors)
        return sum(each.nbytes for each in arrays)


Pair = tuple[Tokens, Tokens]


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One side of many pairs, padded at the ends: (pairs, tokens), states with width.

    `vectors` is (pairs, 2, width).
    """

    states: torch.Tensor
    ids: torch.Tensor
    parts: torch.Tensor
    mask: torch.Tensor
    vectors: torch.Tensor


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
        torch.from_numpy(np.stack([tokens.vectors for tokens in rows])).float(),
    )


class Reader:
    """Reads texts into the states of their tokens with the embedder; thread-safe."""

    def __init__(
        self,
        directory: Path,
        model: nn.Module | None = None,
        *,
        left_off: int = 0,
        upper: Iterable[nn.Module] = (),
    ) -> None:
        """Read with the layers of a model, except its last ones.

        Args:
            model: A model already loaded from that directory, on any device.
            left_off: How many of its last layers are left off.
            upper: The layers that replace them.
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
        self._between = self._tokenizer.convert_tokens_to_ids("|")
        self._stop = self._tokenizer.convert_tokens_to_ids(".")
        self._below = _without_last(loaded.eval(), left_off)
        self._own = loaded.encoder.layer[len(loaded.encoder.layer) - left_off :]
        self._upper = nn.ModuleList(upper).eval()
        self.device = loaded.device
        self._lock = threading.Lock()  # the tokenizer's padding state is shared

    def is_word(self, word: str) -> bool:
        """Return whether it is one token, as most words of a language are."""
        with self._lock:
            return len(self._tokenizer.tokenize(word)) == 1

    def question(self, text: str) -> Tokens:
        return self.questions([text])[0]

    def joined(
        self, question: Tokens, window: Tokens
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return both as one text: its token ids, and 1 for each that is the window's.

        A bar follows the entry's place and its question, instead of the place's full
        stop.
        """
        ids = question.ids.tolist()
        for part in (PLACE, QUESTION):
            own = window.ids[window.parts == part].tolist()
            if part == PLACE and own and own[-1] == self._stop:
                own.pop()
            ids += [*own, self._between] if own else []
        ids += window.ids[1:][window.parts[1:] == TEXT].tolist()
        kinds = np.ones(len(ids), np.int32)
        kinds[: len(question)] = 0
        return np.array(ids, np.int32), kinds

    def text_of(self, question: Tokens, window: Tokens) -> tuple[str, str]:
        """Return both as text again, for a model with a vocabulary of its own."""
        ids, kinds = self.joined(question, window)
        with self._lock:
            one, other = (
                str(
                    self._tokenizer.decode(ids[kinds == kind], skip_special_tokens=True)
                )
                for kind in (0, 1)
            )
        return one, other

    def questions(self, texts: Sequence[str]) -> list[Tokens]:
        rows = [
            [self._first, *self._ids(text)[: MAX_QUESTION - 2], self._last]
            for text in texts
        ]
        return self.read([(ids, [TEXT] * len(ids)) for ids in rows])

    def windows(
        self, place: str, question: str, text: str
    ) -> list[tuple[list[int], list[int]]]:
        """Return token ids and parts of an entry, in overlapping windows.

        Each begins with the entry's place and question, cut to half of the window.
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
        """Read rows of token ids and parts."""
        asked = [
            [at for at, part in zip(ids, parts, strict=True) if part == QUESTION]
            for ids, parts in rows
        ]
        alone = {tuple(ids): [self._first, *ids, self._last] for ids in asked if ids}
        texts = [ids for ids, _ in rows] + [*alone.values()]
        states, vectors = self._passed(texts)
        of_question = dict(zip(alone, vectors[len(rows) :], strict=True))
        nothing = np.zeros(self.width, np.float16)
        return [
            Tokens(
                own,
                np.array(ids, np.int32),
                np.array(parts, np.int8),
                np.stack([whole, of_question.get(tuple(wanted), nothing)]),
            )
            for (ids, parts), own, whole, wanted in zip(
                rows, states, vectors, asked, strict=False
            )
        ]

    def _passed(
        self, texts: Sequence[list[int]]
    ) -> tuple[list[NDArray[np.float16]], list[NDArray[np.float16]]]:
        """Return states and sentence vector of each; similar lengths share a batch."""
        states: dict[int, NDArray[np.float16]] = {}
        vectors: dict[int, NDArray[np.float16]] = {}
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            longest = len(texts[places[-1]])
            ids = torch.zeros(len(places), longest, dtype=torch.long)
            mask = torch.zeros(len(places), longest, dtype=torch.long)
            for row, at in enumerate(places):
                ids[row, : len(texts[at])] = torch.tensor(texts[at])
                mask[row, : len(texts[at])] = 1
            ids, mask = ids.to(self.device), mask.to(self.device)
            with torch.inference_mode():
                hidden = self._below(
                    input_ids=ids, attention_mask=mask
                ).last_hidden_state
                plain = through(self._own, hidden, mask)
                tuned = through(self._upper, hidden, mask)
                mean = (plain * mask[:, :, None]).sum(1)
                whole = functional.normalize(mean, dim=-1).half().cpu().numpy()
            read = tuned.half().cpu().numpy()
            for row, at in enumerate(places):
                states[at] = read[row, : len(texts[at])].copy()
                vectors[at] = whole[row]
        every = range(len(texts))
        return [states[at] for at in every], [vectors[at] for at in every]

    def _ids(self, text: str) -> list[int]:
        with self._lock:
            ids: list[int] = self._tokenizer(
                text, add_special_tokens=False, truncation=False, verbose=False
            )["input_ids"]
        return ids


def by_length(
    lengths: Sequence[int], size: int, read: Callable[[Sequence[int]], torch.Tensor]
) -> torch.Tensor:
    """Return what `read` returns for all items, (..., items), batched by length.

    Args:
        read: Takes the places of at most `size` items, and returns their results.
    """
    if not lengths:
        return torch.empty(0)
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    found = [read(order[start : start + size]) for start in range(0, len(order), size)]
    return torch.cat(found, -1)[..., torch.tensor(order).argsort()]


def through(
    layers: Iterable[nn.Module], hidden: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Pass states (texts, tokens, width) through the layers; `mask` is 1 for text."""
    hides = (1 - mask.to(hidden.dtype))[:, None, None, :] * NEVER
    for layer in layers:
        hidden = layer(hidden, attention_mask=hides)
    return hidden


def _without_last(model: Any, count: int) -> Any:
    """Return the model without its last layers; the others are shared, unchanged."""
    found, encoder = copy.copy(model), copy.copy(model.encoder)
    found._modules = {**model._modules, "encoder": encoder}
    layers = model.encoder.layer
    encoder._modules = {
        **model.encoder._modules,
        "layer": layers[: len(layers) - count],
    }
    return found


def upper_layers(directory: Path, count: int, *, fitted: bool = True) -> nn.ModuleList:
    """Return the embedder's last layers, with its weights or without any yet."""
    if not count:
        return nn.ModuleList()
    if fitted:
        # Short texts are read and fitted faster this way than by fused attention.
        model: Any = AutoModel.from_pretrained(
            str(directory),
            use_safetensors=True,
            dtype=torch.float32,
            attn_implementation="eager",
        )
    else:
        config = AutoConfig.from_pretrained(str(directory), num_hidden_layers=count)
        with torch.device("meta"):  # saves making 47 MB of embeddings only to drop them
            model = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    return nn.ModuleList(model.encoder.layer[-count:])
