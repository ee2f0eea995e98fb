"""A verifier in use: its card, and the entries that were found scored against a question."""

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import load_file, save_file

from accounts.loaded_once import LoadedOnce
from probes.cards import card_text, read_beside
from probes.exceptions import VerifierFileError

from .network import JointLayers, Reader, States, base_directory, batch_of, check_base

BUNDLED: Final = Path(__file__).parent.parent / "shipped" / "verifier"
WEIGHTS: Final = "model.safetensors"
CARD: Final = "verifier.json"
FORMAT: Final = 1
# What the lower layers made of entries is kept up to so much: some 2,500 short ones.
_KEPT_BYTES: Final = 64 << 20
_BATCH: Final = 16


@dataclass(frozen=True, slots=True)
class VerifierCard:
    """What a verifier's files say of it, beside its weights.

    Attributes:
        base_sha256: Digest of the embedder's weights whose lower layers it reads by.
        scale, offset: Its probability is that of scale * logit + offset.
        sources: What it was fitted on, with licences; counts are questions.
    """

    base_sha256: str
    scale: float
    offset: float
    data_sha256: str
    sources: Mapping[str, Mapping[str, Any]]
    settings: Mapping[str, Any]
    metrics: Mapping[str, Any]
    weights_sha256: str = ""

    @property
    def fingerprint(self) -> str:
        said = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()


def read_card(directory: Path) -> VerifierCard:
    return read_beside(
        VerifierCard,
        directory / CARD,
        directory / WEIGHTS,
        version=FORMAT,
        damaged=damaged,
    )


def damaged(directory: Path, why: str) -> VerifierFileError:
    return VerifierFileError(
        f"The verifier in {directory} cannot be used: {why}. Put back the files that "
        "train verifier wrote, fit it again, or set NESCIO_VERIFIER to none."
    )


def save_verifier(directory: Path, layers: JointLayers, card: VerifierCard) -> None:
    """Write weights in half precision, then the card: half a write is refused."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / CARD).unlink(missing_ok=True)
    weights = {
        name: value.detach().cpu().half().contiguous()
        for name, value in layers.state_dict().items()
    }
    save_file(weights, directory / WEIGHTS)
    digest = hashlib.sha256((directory / WEIGHTS).read_bytes()).hexdigest()
    said = {**asdict(card), "weights_sha256": digest}
    (directory / CARD).write_bytes(card_text(said, FORMAT))


class Verifier:
    """Scores entries against a question; safe to use from several threads."""

    def __init__(self, reader: Reader, layers: JointLayers, card: VerifierCard) -> None:
        self.card, self.fingerprint = card, card.fingerprint
        self._reader, self._layers = reader, layers.eval()
        self._kept: OrderedDict[bytes, list[States]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def score(self, question: str, entries: Sequence[str]) -> list[float]:
        """Return for each entry the probability in [0, 1] that it answers.

        Of one that is longer than the window its best part counts.
        """
        asked = self._reader.question(question)
        windows = self._windows(entries)
        pairs = [(asked, states) for parts in windows for states in parts]
        logits: list[float] = []
        with torch.inference_mode():
            for start in range(0, len(pairs), _BATCH):
                logits += self._layers(batch_of(pairs[start : start + _BATCH])).tolist()
        found, at = [], 0
        for parts in windows:
            found.append(max(logits[at : at + len(parts)]))
            at += len(parts)
        fitted = torch.tensor(found, dtype=torch.float64)
        chances = torch.sigmoid(self.card.scale * fitted + self.card.offset)
        return [float(each) for each in chances]

    def _windows(self, entries: Sequence[str]) -> list[list[States]]:
        """Return the states of each entry's windows; what is not kept is read at once."""
        keys = [hashlib.sha256(text.encode()).digest() for text in entries]
        with self._lock:
            found = {key: self._kept[key] for key in keys if key in self._kept}
            for key in found:
                self._kept.move_to_end(key)
        new = {
            key: self._reader.windows(text)
            for key, text in zip(keys, entries, strict=True)
            if key not in found
        }
        read = iter(self._reader.read([row for rows in new.values() for row in rows]))
        for key, rows in new.items():
            found[key] = [next(read).copy() for _ in rows]
        self._keep({key: found[key] for key in new})
        return [found[key] for key in keys]

    def _keep(self, new: Mapping[bytes, list[States]]) -> None:
        with self._lock:
            for key, parts in new.items():
                if key not in self._kept:
                    self._kept[key] = parts
                    self._bytes += _size(parts)
            while self._bytes > _KEPT_BYTES:
                _, dropped = self._kept.popitem(last=False)
                self._bytes -= _size(dropped)


def _size(parts: Sequence[States]) -> int:
    return sum(states.nbytes for states in parts)


_loaded: Final = LoadedOnce[Path, Verifier]()


def load_verifier(directory: Path = BUNDLED) -> Verifier:
    """Return the verifier of a directory, loaded once per process."""
    return _loaded.get(directory, lambda: _load(directory))


def _load(directory: Path) -> Verifier:
    card = read_card(directory)
    reader = Reader(base_directory())
    check_base(reader, card.base_sha256, directory)
    layers = JointLayers(reader.upper)
    try:
        weights = load_file(directory / WEIGHTS)
        layers.load_state_dict({name: each.float() for name, each in weights.items()})
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise damaged(directory, str(error)) from error
    return Verifier(reader, layers.float(), card)


def entry_text(title: str, section: str, question: str, text: str) -> str:
    """Return an entry as the verifier reads it: where it stands, what it was asked, it."""
    place = ": ".join(part for part in (title, section) if part)
    said = f"{question} {text}".strip()
    return f"{place}. {said}" if place else said
