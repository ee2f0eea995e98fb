"""A probe as two files: its weights, and a card that says all else; never a pickle.

Nothing here needs torch: whoever lists, moves or refuses probes reads cards alone.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

from probes.exceptions import ProbeFileError, ProbeMismatchError

CARD: Final = "probe.json"
FORMAT: Final = 2
LARGEST_CARD_BYTES: Final = 1 << 20
LARGEST_WEIGHTS_BYTES: Final = 1 << 24
_HEX: Final = frozenset("0123456789abcdef")

Json = bool | int | float | str | list["Json"] | dict[str, "Json"] | None


class ProbeKind(StrEnum):
    """What a probe tells, and from what.

    ABSTENTION: that an answer is right, from the activations of its own tokens.
    EARLY: the same before the first of them, from the prompt's last token.
    JOINT: the same from all signals together, other probes' confidences among them.
    BOUNDARY: that the model answers rightly by itself, from the last token of the
        question, whether notes follow it or not.
    DIRECTIONS: nothing by themselves: along what honesty and confidence run in every
        block.
    """

    ABSTENTION = "abstention"
    EARLY = "early"
    JOINT = "joint"
    BOUNDARY = "boundary"
    DIRECTIONS = "directions"

    @property
    def weights_file(self) -> str:
        """The name of the file beside the card."""
        joint = self is ProbeKind.JOINT
        return "weights.json" if joint else "probe.safetensors"


# Those that are asked of every answer, in the order in which one may read another's.
ANSWER_KINDS: Final = (ProbeKind.ABSTENTION, ProbeKind.EARLY, ProbeKind.JOINT)
# Those that belong to no one block.
_UNPLACED: Final = frozenset({ProbeKind.JOINT, ProbeKind.DIRECTIONS})


def answer_kind(name: str) -> ProbeKind:
    """Return the kind of that name, if such a probe is asked of every answer.

    Raises:
        ValueError: There is no such kind, or it is asked of none.
    """
    kind = ProbeKind(name)
    if kind not in ANSWER_KINDS:
        raise ValueError(f"a {kind.value} probe is asked of no answer")
    return kind


@dataclass(frozen=True, slots=True)
class ProbeCard:
    """What a probe's card says.

    Attributes:
        language_model: Fingerprint of the model whose activations or signals it reads;
            it never serves another.
        language_model_name: That model's name, for people.
        form: Which form of prompt and answer was read; "" where none is (joint).
        layer: 0-based block that is read; None where none is (joint), or all are (directions).
        part: "block" or "ffn"; "" where none is.
        temperature: Divides the logits, fitted on held-out answers; 1 where the fit is
            calibrated by itself.
        data_sha256: Digest of the labelled answers that it was fitted on.
        sizes: Counts by name: answers, groups, width.
        settings: How it was fitted.
        inputs: For a joint probe, the fingerprint of each probe whose confidence it
            reads, by kind.
        metrics: What was measured on answers that neither fitting nor its early stop
            saw, by name.
        weights_sha256: Digest of the file of weights.
    """

    kind: ProbeKind
    language_model: str
    language_model_name: str
    form: str
    layer: int | None
    part: str
    temperature: float
    data_sha256: str
    sizes: Mapping[str, int]
    settings: Mapping[str, Json]
    metrics: Mapping[str, Json] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    weights_sha256: str = ""

    def as_json(self) -> dict[str, Json]:
        """Return the card as its file holds it."""
        return {
            "format": FORMAT,
            "kind": self.kind.value,
            "language_model": self.language_model,
            "language_model_name": self.language_model_name,
            "form": self.form,
            "layer": self.layer,
            "part": self.part,
            "temperature": self.temperature,
            "data_sha256": self.data_sha256,
            "sizes": dict(self.sizes),
            "settings": dict(self.settings),
            "metrics": dict(self.metrics),
            "inputs": dict(self.inputs),
            "weights_sha256": self.weights_sha256,
        }


@dataclass(frozen=True, slots=True)
class ProbeFiles:
    """The two files of a probe, wherever they came from.

    Attributes:
        name: What messages call it: a directory, an upload, a row.
        card: UTF-8 JSON.
        weights: As the card's kind keeps them.
    """

    name: str
    card: bytes
    weights: bytes

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Read the files of a directory."""
        try:
            card = (directory / CARD).read_bytes()
            files = cls(str(directory), card, b"")
            weights = (directory / files.parsed().kind.weights_file).read_bytes()
        except OSError as error:
            raise cls(str(directory), b"", b"").damaged(str(error)) from error
        return cls(str(directory), card, weights)

    def write(self, directory: Path) -> None:
        """Write the files; the card, which names the weights' digest, comes last.

        A write that was broken off leaves files that are refused.
        """
        directory.mkdir(parents=True, exist_ok=True)
        (directory / self.parsed().kind.weights_file).write_bytes(self.weights)
        (directory / CARD).write_bytes(self.card)

    @property
    def fingerprint(self) -> str:
        """64 hex digits over card and weights: what tells two probes apart."""
        digest = hashlib.sha256(hashlib.sha256(self.card).digest())
        digest.update(hashlib.sha256(self.weights).digest())
        return digest.hexdigest()

    def parsed(self) -> ProbeCard:
        """Return what the card says, whatever the weights are."""
        if len(self.card) > LARGEST_CARD_BYTES:
            raise self.damaged(f"its card has {len(self.card):,} bytes")
        try:
            return _parsed(json.loads(self.card.decode()))
        except (
            KeyError, OverflowError, RecursionError, TypeError, ValueError,
        ) as error:  # fmt: skip
            raise self.damaged(f"{type(error).__name__}: {error}") from error

    def checked(self, *, language_model: str | None = None) -> ProbeCard:
        """Return what the card says of exactly these weights.

        Args:
            language_model: Fingerprint of the model that it is to serve, if any.

        Raises:
            ProbeMismatchError: It was fitted for another language model.
        """
        card = self.parsed()
        if len(self.weights) > LARGEST_WEIGHTS_BYTES:
            raise self.damaged(f"its weights have {len(self.weights):,} bytes")
        if hashlib.sha256(self.weights).hexdigest() != card.weights_sha256:
            raise self.damaged("the weights are not those that were saved")
        if language_model is not None and card.language_model != language_model:
            raise ProbeMismatchError(
                f"The probe in {self.name} was fitted for the language model "
                f"{card.language_model[:12]} and {language_model[:12]} is running. Fit "
                "one for this model: manage.py train probe."
            )
        return card

    def damaged(self, why: str) -> ProbeFileError:
        return ProbeFileError(
            f"The probe in {self.name} cannot be used: {why}. Put back the files that "
            "train probe wrote, or fit it again."
        )


def card_bytes(card: ProbeCard, weights: bytes) -> bytes:
    """Return a card as its file, with the digest of these weights."""
    said = card.as_json() | {"weights_sha256": hashlib.sha256(weights).hexdigest()}
    text = json.dumps(said, indent=2, sort_keys=True, allow_nan=False)
    return f"{text}\n".encode()


def _parsed(said: object) -> ProbeCard:
    row = _mapping(said, "the card")
    # No database keeps these: NaN, lone surrogates, NUL.
    text = json.dumps(row, ensure_ascii=False, allow_nan=False)
    if "\\u0000" in text or not text.encode():
        raise ValueError("a text holds U+0000")
    if row["format"] != FORMAT:
        raise ValueError(f"format {row['format']!r} is not known")
    kind = ProbeKind(_text(row["kind"], "kind"))
    layer = row["layer"]
    is_placed = kind not in _UNPLACED
    if not (_is_layer(layer) if is_placed else layer is None):
        raise ValueError(f"layer {layer!r} does not fit the kind {kind.value}")
    part = _text(row["part"], "part")
    if part not in (("block", "ffn") if is_placed else ("",)):
        raise ValueError(f"part {part!r} does not fit the kind {kind.value}")
    return ProbeCard(
        kind=kind,
        language_model=_digest(row["language_model"], "language_model"),
        language_model_name=_text(row["language_model_name"], "name")[:200],
        form=_text(row["form"], "form")[:50],
        layer=layer if isinstance(layer, int) else None,
        part=part,
        temperature=_temperature(row["temperature"]),
        data_sha256=_digest(row["data_sha256"], "data_sha256"),
        sizes={k: _count(v, k) for k, v in _mapping(row["sizes"], "sizes").items()},
        settings=_mapping(row["settings"], "settings"),
        metrics=_mapping(row["metrics"], "metrics"),
        inputs={
            ProbeKind(name).value: _digest(value, name)
            for name, value in _mapping(row["inputs"], "inputs").items()
        },
        weights_sha256=_digest(row["weights_sha256"], "weights_sha256"),
    )


def _mapping(value: object, name: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise TypeError(f"{name} is {type(value).__name__}, not an object")
    return value


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, not a text")
    return value


def _digest(value: object, name: str) -> str:
    text = _text(value, name)
    if len(text) != 64 or not _HEX.issuperset(text):
        raise ValueError(f"{name} {text[:70]!r} is no digest of 64 hex digits")
    return text


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_layer(value: object) -> bool:
    return isinstance(value, int) and _is_count(value) and value < 10_000


def _count(value: object, name: str) -> int:
    if not isinstance(value, int) or not _is_count(value):
        raise ValueError(f"{name} {value!r} is no count")
    return value


def _temperature(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"temperature {value!r} is no number")
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"temperature {value!r} is not above 0")
    return float(value)
