"""A verifier in use: its card, and the entries that were found scored against a question."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from prometheus_client import Counter
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from scipy.special import expit
from torch import nn
from transformers import AutoConfig

from accounts.fair_lock import FairLock
from accounts.loaded_once import LoadedOnce
from probes.cards import card_text, sha256_of

from .card import CARD, FORMAT, WEIGHTS, VerifierCard, damaged, read_card
from .cross_encoder import CrossEncoder, encoder_in_use
from .differences import packed, unpacked
from .network import Interaction, Members, Tuned
from .reading import (
    WHOLE,
    Reader,
    Tokens,
    base_directory,
    by_length,
    side_of,
    upper_layers,
)

BUNDLED: Final = Path(__file__).parent.parent / "shipped" / "verifier"
_CROSS: Final = "cross."  # before the names of the cross-encoder's weights
# Cache of the token states of entries: about 2,500 short ones.
_KEPT_BYTES: Final = 64 << 20
_KEPT_QUESTIONS: Final = 64
_WINDOWS_AT_ONCE: Final = 128
_Placed = tuple[str, str, str]  # place, question and text


class EntryText(Protocol):
    """An entry as the verifier reads it; any part but the text may be empty."""

    @property
    def title(self) -> str: ...
    @property
    def section(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def text(self) -> str: ...


def save_verifier(
    directory: Path,
    network: Tuned,
    card: VerifierCard,
    cross: Mapping[str, torch.Tensor] | None = None,
) -> VerifierCard:
    """Write what was fitted, then the card, which is returned with its hash.

    Half a write is refused when it is read.

    Args:
        cross: What is kept of the cross-encoder.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / CARD).unlink(missing_ok=True)
    kept = packed(network.state_dict(), _base(network)) | {
        _CROSS + name: each.detach().cpu().half().contiguous()
        for name, each in (cross or {}).items()
    }
    save_file(kept, directory / WEIGHTS)
    written = replace(card, weights_sha256=sha256_of(directory / WEIGHTS))
    (directory / CARD).write_bytes(card_text(asdict(written), FORMAT))
    return written


_TEXTS: Final = Counter(
    "nescio_verifier_texts",
    "Entries and sentences that the verifier needed, by whether they were kept.",
    ["how"],
)
_KEPT_TEXTS, _READ_TEXTS = _TEXTS.labels("kept"), _TEXTS.labels("read")


class Verifier:
    """Scores entries against a question; one thread at a time computes, in order.

    A pass is hundreds of small operations, each of which wants the interpreter: eight at
    once let one embedding of a question, of which a refusal needs no more, take nine
    times as long as one after the other do.
    """

    def __init__(
        self,
        reader: Reader,
        network: Tuned,
        card: VerifierCard,
        cross: CrossEncoder | None = None,
    ) -> None:
        self.card, self.fingerprint = card, card.fingerprint
        self._reader, self._network = reader, network.members.eval()
        self._cross = cross
        # A question is held against entries, then their sentences, then those to mark.
        self._question = lru_cache(maxsize=_KEPT_QUESTIONS)(reader.question)
        self._kept: OrderedDict[_Placed, list[Tokens]] = OrderedDict()
        self._bytes = 0
        self._lock = FairLock()

    @property
    def reads_jointly(self) -> bool:
        return self._cross is not None

    def is_word(self, word: str) -> bool:
        """Tell whether the embedder knows this word, in small letters, as a whole."""
        return self._reader.is_word(word)

    def score(self, question: str, entries: Sequence[EntryText]) -> list[float]:
        """Return for each entry the probability in [0, 1] that it answers, by itself.

        Of one that is longer than the window its best part counts.
        """
        by = self.card.calibration
        return [
            float(expit(by.scale * found[:, 0].max() + by.offset))
            for found in self.measure(question, entries)
        ]

    def log_odds(self, question: str, entries: Sequence[EntryText]) -> list[float]:
        """Return for each entry the log-odds that it answers against that none does.

        They are for weighing entries against each other; see `Calibration`.
        """
        by = self.card.calibration
        return [
            float(by.log_odds(found).max()) for found in self.measure(question, entries)
        ]

    def joint_log_odds(
        self, question: str, entries: Sequence[EntryText]
    ) -> list[float]:
        """Return the same of each entry read together with the question.

        Of a long one the window that seems likeliest apart is read. Empty where the
        verifier has no cross-encoder.
        """
        by = self.card.calibration
        found = self.measure_jointly(question, entries)
        return [float(each) for each in by.log_odds(found, is_joint=True)]

    def measure_jointly(
        self, question: str, entries: Sequence[EntryText]
    ) -> NDArray[np.float64]:
        """Return the cross-encoder's logit and the cosines of each entry: (entries, 3).

        (0, 3) without a cross-encoder.
        """
        if self._cross is None or not entries:
            return np.empty((0, 3))
        with self._lock, torch.inference_mode():
            tokens = self._question(question)
            windows = self._windows(entries)
            pairs = [(tokens, self._likeliest(tokens, own)) for own in windows]
            logits = self._cross.logits(pairs)
        near = [
            np.max([_cosines(tokens, part) for part in own], axis=0) for own in windows
        ]
        return np.column_stack([logits.double().cpu().numpy(), near])

    def read_together(self, texts: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Return what the cross-encoder makes of pairs of texts, whichever comes first.

        (pairs, 3 * width), (0, 0) unless it `reads_jointly`: the mean over both orders of the
        first token's state and the means of either side.
        """
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
        """Return how each entry's windows were read: (windows, 3) of each.

        The nets' logit, and the cosines of the question with the window and with the
        entry's own question, `NO_QUESTION` where it has none.
        """
        if not entries:
            return []
        with self._lock, torch.inference_mode():
            tokens = self._question(question)
            windows = self._windows(entries)
            parts = [window for each in windows for window in each]
            logits = by_length(
                [len(part) for part in parts],
                _WINDOWS_AT_ONCE,
                lambda places: self._network(
                    side_of([tokens] * len(places)),
                    side_of([parts[at] for at in places]),
                ),
            )
        near = [_cosines(tokens, part) for part in parts]
        every = np.column_stack([logits.double().cpu().numpy(), near])
        return np.split(every, np.cumsum([len(each) for each in windows])[:-1])

    def _windows(self, entries: Sequence[EntryText]) -> list[list[Tokens]]:
        """Return each entry's windows as read; what is not kept is read at once."""
        keys = [(place_of(e.title, e.section), e.question, e.text) for e in entries]
        found = {key: self._kept[key] for key in keys if key in self._kept}
        for key in found:
            self._kept.move_to_end(key)
        new = {key: self._reader.windows(*key) for key in keys if key not in found}
        _KEPT_TEXTS.inc(len(found))
        _READ_TEXTS.inc(len(new))
        read = iter(self._reader.read([row for rows in new.values() for row in rows]))
        for key, rows in new.items():
            found[key] = [next(read) for _ in rows]
        self._keep({key: found[key] for key in new})
        return [found[key] for key in keys]

    def _keep(self, new: Mapping[_Placed, list[Tokens]]) -> None:
        for key, parts in new.items():
            self._kept[key] = parts
            self._bytes += _size(parts)
        while self._bytes > _KEPT_BYTES:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= _size(dropped)


def _cosines(question: Tokens, window: Tokens) -> NDArray[np.float64]:
    found: NDArray[np.float64] = window.vectors @ question.vectors[WHOLE].astype(
        np.float64
    )
    return found


def _size(parts: Sequence[Tokens]) -> int:
    return sum(tokens.nbytes for tokens in parts)


_loaded: Final = LoadedOnce[Path, Verifier]()


def load_verifier(
    directory: Path = BUNDLED, *, base: Callable[[], nn.Module] | None = None
) -> Verifier:
    """Return the verifier of a directory, loaded once per process.

    `base` returns the embedder where the process has it loaded, which saves a second copy;
    it is called only where the verifier is not loaded yet.
    """
    return _loaded.get(directory, lambda: _load(directory, base and base()))


def is_loaded(directory: Path) -> bool:
    return _loaded.find(directory) is not None


def load_network(
    directory: Path,
) -> tuple[VerifierCard, Tuned, dict[str, torch.Tensor]]:
    """Return a verifier's card, what was fitted, and what is kept of its cross-encoder.

    On the processor, in single precision.
    """
    card = read_card(directory)
    config = AutoConfig.from_pretrained(str(base_directory()))
    nets = [
        Interaction(config.hidden_size, config.vocab_size) for _ in range(card.members)
    ]
    upper = upper_layers(base_directory(), card.tuned, fitted=False)
    network = Tuned(upper, Members(nets))
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
    """Return the embedder's own weights by the names of those that were fitted from them.

    They come from its file: a loaded one may have its weights packed for the processor.
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
    return Verifier(
        reader, network, card, _cross_encoder(directory, card, reader, kept)
    )


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
