"""A verifier in use: its card, and retrieved entries scored against a question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import numpy as np
import torch
from django.conf import settings
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import load_file, save, save_file
from torch import nn
from transformers import AutoConfig

from accounts.fair_lock import FairLock
from accounts.loaded_once import LoadedOnce
from probes.cards import card_text, sha256_of

from .card import (
    BUNDLED,
    CARD,
    FORMAT,
    WEIGHTS,
    VerifierCard,
    base_directory,
    damaged,
    read_card,
)
from .cross_encoder import CrossEncoder, encoder_in_use
from .differences import packed, unpacked
from .entry_tokens import EntryTokens
from .late_interaction import LateInteraction
from .network import Interaction, Members, Tuned
from .reading import (
    WHOLE,
    Reader,
    Tokens,
    by_length,
    side_of,
    upper_layers,
)
from .readings import EntryText, Readings
from .token_file import TokenFile

_CROSS: Final = "cross."  # prefix of the names of the cross-encoder's weights
_KEPT_QUESTIONS: Final = 64
_WINDOWS_AT_ONCE: Final = 128
Asked = tuple[str, Sequence[EntryText]]  # a question and entries to compare it with


def save_verifier(
    directory: Path,
    network: Tuned,
    card: VerifierCard,
    cross: Mapping[str, torch.Tensor] | None = None,
) -> VerifierCard:
    """Write what was fitted, then the card, which is returned with its hash.

    An incomplete write is refused when it is read.

    Args:
        cross: The cross-encoder's weights to store.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / CARD).unlink(missing_ok=True)
    kept = packed(network.state_dict(), _base(network)) | {
        _CROSS + name: each.detach().cpu().half().contiguous()
        for name, each in (cross or {}).items()
    }
    save_file(kept, directory / WEIGHTS)
    written = replace(
        card,
        weights_sha256=sha256_of(directory / WEIGHTS),
        parts_sha256=_digests(kept),
    )
    (directory / CARD).write_bytes(card_text(asdict(written), FORMAT))
    return written


def _digests(kept: Mapping[str, torch.Tensor]) -> dict[str, str]:
    parts: dict[str, dict[str, torch.Tensor]] = {}
    for name, value in kept.items():
        parts.setdefault(name.partition(".")[0], {})[name] = value
    return {part: sha256(save(own)).hexdigest() for part, own in parts.items()}


class Verifier(Readings):
    """Scores entries against a question; one thread at a time computes, in order.

    A pass is hundreds of small operations, each of which needs the interpreter: with
    eight passes at once, embedding a question, which is all that a refusal needs, takes
    nine times as long as when they take turns.
    """

    def __init__(
        self,
        reader: Reader,
        network: Tuned,
        card: VerifierCard,
        cross: CrossEncoder | None = None,
        *,
        file: TokenFile | None = None,
    ) -> None:
        super().__init__(card)
        self._reader, self._network = reader, network.members.eval()
        self._late_interaction = network.late_interaction.eval()
        self._cross = cross
        # A question is compared with entries, then their sentences, then those to mark.
        self._question = lru_cache(maxsize=_KEPT_QUESTIONS)(reader.question)
        self._entries = EntryTokens(reader, file)
        self._lock = FairLock()

    @property
    def reads_jointly(self) -> bool:
        return self._cross is not None

    def is_word(self, word: str) -> bool:
        return self._reader.is_word(word)

    def measure_jointly(
        self, question: str, entries: Sequence[EntryText]
    ) -> NDArray[np.float64]:
        return self.measure_all_jointly([(question, entries)])[0]

    def measure_all_jointly(self, asked: Sequence[Asked]) -> list[NDArray[np.float64]]:
        """Do what `measure_jointly` does, for several questions in one pass."""
        if self._cross is None:
            return [np.empty((0, 3)) for _ in asked]
        with self._lock, torch.inference_mode():
            read = [
                (tokens, own)
                for tokens, windows in self._read(asked)
                for own in windows
            ]
            pairs = [(tokens, self._likeliest(tokens, own)) for tokens, own in read]
            logits = self._cross.logits(pairs) if pairs else torch.empty(0)
        near = [
            np.max([_cosines(tokens, part) for part in own], axis=0)
            for tokens, own in read
        ]
        rows = np.column_stack(
            [logits.double().cpu().numpy(), np.reshape(near, (len(read), 2))]
        )
        return _split(rows, [len(entries) for _, entries in asked])

    def likeness(
        self, question: str, entries: Sequence[EntryText]
    ) -> NDArray[np.float64]:
        return self.all_likenesses([(question, entries)])[0]

    def all_likenesses(self, asked: Sequence[Asked]) -> list[NDArray[np.float64]]:
        """Do what `likeness` does, for several questions in one pass."""
        with self._lock, torch.inference_mode():
            return [
                self._likeness(tokens, windows) for tokens, windows in self._read(asked)
            ]

    def _likeness(
        self, question: Tokens, windows: Sequence[Sequence[Tokens]]
    ) -> NDArray[np.float64]:
        every = [each for own in windows for each in own]
        found = self._late_interaction.likeness(question, every, self._network.weights)
        parts = _split(found, [len(own) for own in windows])
        return np.array([own.max() for own in parts])

    def read_together(self, texts: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        if self._cross is None:
            return np.empty((0, 0))
        both = [*texts, *((second, first) for first, second in texts)]
        with self._lock:
            read = self._cross.summaries(both).double().numpy()
        mean: NDArray[np.float64] = (read[: len(texts)] + read[len(texts) :]) / 2
        return mean

    def _likeliest(self, question: Tokens, windows: Sequence[Tokens]) -> Tokens:
        if len(windows) == 1:
            return windows[0]
        logits = self._network(side_of([question] * len(windows)), side_of(windows))
        return windows[int(logits.argmax())]

    def measure(
        self, question: str, entries: Sequence[EntryText]
    ) -> list[NDArray[np.float64]]:
        return self.measure_all([(question, entries)])[0]

    def measure_all(self, asked: Sequence[Asked]) -> list[list[NDArray[np.float64]]]:
        """Do what `measure` does, for several questions in one pass."""
        with self._lock, torch.inference_mode():
            read = self._read(asked)
            pairs = [
                (tokens, part)
                for tokens, windows in read
                for own in windows
                for part in own
            ]
            logits = by_length(
                [len(part) for _, part in pairs],
                _WINDOWS_AT_ONCE,
                lambda places: self._network(
                    side_of([pairs[at][0] for at in places]),
                    side_of([pairs[at][1] for at in places]),
                ),
            )
        near = np.reshape([_cosines(*pair) for pair in pairs], (len(pairs), 2))
        every = np.column_stack([logits.double().cpu().numpy(), near])
        rows = iter(_split(every, [len(own) for _, windows in read for own in windows]))
        return [[next(rows) for _ in windows] for _, windows in read]

    def _read(self, asked: Sequence[Asked]) -> list[tuple[Tokens, list[list[Tokens]]]]:
        """Return each question as read, with its entries' windows."""
        texts = [
            (place_of(each.title, each.section), each.question, each.text)
            for _, entries in asked
            for each in entries
        ]
        windows = iter(self._entries.windows(texts))
        return [
            (self._question(question), [next(windows) for _ in entries])
            for question, entries in asked
        ]


def _split(
    rows: NDArray[np.float64], counts: Sequence[int]
) -> list[NDArray[np.float64]]:
    return np.split(rows, np.cumsum(counts)[:-1]) if counts else []


def _cosines(question: Tokens, window: Tokens) -> NDArray[np.float64]:
    found: NDArray[np.float64] = window.vectors @ question.vectors[WHOLE].astype(
        np.float64
    )
    return found


_loaded: Final = LoadedOnce[Path, Verifier]()


def load_verifier(
    directory: Path = BUNDLED, *, base: Callable[[], nn.Module] | None = None
) -> Verifier:
    """Return the verifier of a directory, loaded once per process.

    `base` returns the embedder if the process has it loaded, which saves a second copy;
    it is called only if the verifier is not loaded yet.
    """
    return _loaded.get(directory, lambda: _load(directory, base and base()))


def is_loaded(directory: Path) -> bool:
    return _loaded.find(directory) is not None


def load_network(
    directory: Path,
) -> tuple[VerifierCard, Tuned, dict[str, torch.Tensor]]:
    """Return a verifier's card, its fitted network and its cross-encoder's weights.

    On the CPU, in single precision.
    """
    card = read_card(directory)
    config = AutoConfig.from_pretrained(str(base_directory()))
    nets = [
        Interaction(config.hidden_size, config.vocab_size) for _ in range(card.members)
    ]
    upper = upper_layers(base_directory(), card.tuned, fitted=False)
    network = Tuned(upper, Members(nets), LateInteraction(config.hidden_size))
    try:
        kept = load_file(directory / WEIGHTS)
        cross = {
            name.removeprefix(_CROSS): kept.pop(name).float()
            for name in [*kept]
            if name.startswith(_CROSS)
        }
        weights = unpacked(kept, _base(network))
        network.load_state_dict(weights, assign=True)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise damaged(directory, str(error)) from error
    return card, network, cross


def _base(network: Tuned) -> dict[str, torch.Tensor]:
    """Return the embedder's own weights, named as those that were fitted from them.

    They come from its file: a loaded embedder may have packed its weights for the
    processor.
    """
    found: dict[str, torch.Tensor] = {}
    own = network.upper
    count = AutoConfig.from_pretrained(str(base_directory())).num_hidden_layers
    with safe_open(base_directory() / "model.safetensors", "pt") as file:
        for at, layer in enumerate(own):
            whole = f"encoder.layer.{count - len(own) + at}"
            for key, _ in layer.named_parameters():
                found[f"upper.{at}.{key}"] = file.get_tensor(f"{whole}.{key}").float()
    return found


def _load(directory: Path, base: nn.Module | None) -> Verifier:
    card, network, kept = load_network(directory)
    reader = Reader(base_directory(), base, left_off=card.tuned, upper=network.upper)
    _check(directory, "embedder", card.base_sha256, reader.sha256)
    network.upper.to(reader.device)
    cross = _cross_encoder(directory, card, reader, kept)
    return Verifier(reader, network, card, cross, file=_token_file(card))


def _token_file(card: VerifierCard) -> TokenFile | None:
    max_bytes = settings.VERIFIER_FILE_MIB << 20
    path = settings.PLACES.verifier_tokens
    own = card.tokens_fingerprint
    return TokenFile(path, model=own, max_bytes=max_bytes) if max_bytes else None


def _cross_encoder(
    directory: Path,
    card: VerifierCard,
    reader: Reader,
    kept: Mapping[str, torch.Tensor],
) -> CrossEncoder | None:
    if not card.encoder_sha256:
        return None
    encoder, sha256 = encoder_in_use()
    _check(directory, "encoder", card.encoder_sha256, sha256)
    try:
        return CrossEncoder.in_use(encoder, reader, kept)
    except (
        ArithmeticError,
        AttributeError,
        TypeError,
        ValueError,
        RuntimeError,
    ) as error:
        raise damaged(directory, str(error)) from error


def _check(directory: Path, what: str, wanted: str, found: str) -> None:
    if found != wanted:
        raise damaged(
            directory,
            f"it was fitted on the {what} {wanted[:12]}, and {found[:12]} is installed",
        )


def place_of(title: str, section: str) -> str:
    return ": ".join(part for part in (title, section) if part)
