"""A probe as two files: weights, and a card with everything else; never a pickle.

Nothing here needs torch: listing, moving or refusing probes only reads their cards.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeVar

from pydantic import AfterValidator, Field, JsonValue, TypeAdapter, ValidationError

from probes.exceptions import ModelError, ProbeFileError, ProbeMismatchError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

CARD: Final = "probe.json"
FORMAT: Final = 2
MAX_CARD_BYTES: Final = 1 << 20
MAX_WEIGHTS_BYTES: Final = 1 << 24

Json = JsonValue
Weights = TypeVar("Weights")
Digest = Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]
KindName = Annotated[str, AfterValidator(lambda name: ProbeKind(name).value)]
Count = Annotated[int, Field(strict=True, ge=0)]
# Errors of reading a file that is damaged or not a card.
UNREADABLE: Final = (
    AttributeError, KeyError, OSError, OverflowError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip


class ProbeKind(StrEnum):
    """What a probe predicts, and from what.

    ABSTENTION: whether an answer is right, from the activations of its own tokens.
    EARLY: the same before its first token, from the prompt's last token.
    JOINT: the same from all signals together, including other probes' confidences.
    BOUNDARY: whether the model answers correctly by itself, from the last token of the
        question, whether or not notes follow it.
    DIRECTIONS: nothing by themselves; they are the directions of honesty and confidence
        in every block.
    RERANKER: which of the retrieved notes help the model, from the verifier's scores
        and the order of retrieval.
    """

    ABSTENTION = "abstention"
    EARLY = "early"
    JOINT = "joint"
    BOUNDARY = "boundary"
    DIRECTIONS = "directions"
    RERANKER = "reranker"

    @property
    def weights_file(self) -> str:
        is_text = self in (ProbeKind.JOINT, ProbeKind.RERANKER)
        return "weights.json" if is_text else "probe.safetensors"


# Kinds that are asked of every answer; a kind may read those before it.
ANSWER_KINDS: Final = (ProbeKind.ABSTENTION, ProbeKind.EARLY, ProbeKind.JOINT)
# The name of the signal that holds the confidence of each kind.
CONFIDENCE_BY_KIND: Final[Mapping[str, str]] = {
    ProbeKind.ABSTENTION: "answer_confidence",
    ProbeKind.EARLY: "early_confidence",
    ProbeKind.JOINT: "joint_confidence",
}
# Kinds that do not belong to a single block.
UNPLACED: Final = (ProbeKind.JOINT, ProbeKind.DIRECTIONS, ProbeKind.RERANKER)


def answer_kind(name: str) -> ProbeKind:
    kind = ProbeKind(name)
    if kind not in ANSWER_KINDS:
        raise ValueError(f"a {kind.value} probe is not asked of answers")
    return kind


@dataclass(frozen=True, slots=True)
class ProbeCard:
    """The metadata of a probe.

    Attributes:
        language_model: Fingerprint of the model whose activations or signals it reads;
            it never serves another.
        form: The form of prompt and answer that it reads; "" if it reads none (joint).
        layer: 0-based block that it reads; None for none (joint) or all (directions).
        part: "block" or "ffn"; "" if it reads none.
        temperature: Divides the logits; fitted on held-out answers, or 1 if the fit is
            calibrated by itself.
        inputs: For a joint probe, the fingerprint of each probe whose confidence it
            reads, by kind.
        metrics: Measured on answers that neither the fit nor its early stop saw, by
            name.
    """

    kind: ProbeKind
    language_model: Digest
    language_model_name: Annotated[str, AfterValidator(lambda text: text[:200])]
    form: Annotated[str, AfterValidator(lambda text: text[:50])]
    layer: Annotated[Count, Field(lt=10_000)] | None
    part: str
    temperature: Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
    data_sha256: Digest
    sizes: Mapping[str, Count]
    settings: Mapping[str, Json]
    metrics: Mapping[str, Json] = field(default_factory=dict)
    inputs: Mapping[KindName, Digest] = field(default_factory=dict)
    weights_sha256: Digest = ""


@dataclass(frozen=True, slots=True)
class ProbeFiles:
    name: str
    card: bytes
    weights: bytes

    @classmethod
    def read(cls, directory: Path) -> Self:
        try:
            card = (directory / CARD).read_bytes()
            files = cls(str(directory), card, b"")
            weights = (directory / files.parsed().kind.weights_file).read_bytes()
        except OSError as error:
            raise cls(str(directory), b"", b"").damaged(str(error)) from error
        return cls(str(directory), card, weights)

    def write(self, directory: Path) -> None:
        """Write the files, the card last, so that an incomplete write is refused."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / self.parsed().kind.weights_file).write_bytes(self.weights)
        (directory / CARD).write_bytes(self.card)

    @property
    def fingerprint(self) -> str:
        """64 hex digits over card and weights, which identify the probe."""
        digest = hashlib.sha256(hashlib.sha256(self.card).digest())
        digest.update(hashlib.sha256(self.weights).digest())
        return digest.hexdigest()

    def parsed(self) -> ProbeCard:
        if len(self.card) > MAX_CARD_BYTES:
            raise self.damaged(f"its card has {len(self.card):,} bytes")
        try:
            return _parsed(self.card)
        except UNREADABLE as error:
            raise self.damaged(reason(error)) from error

    def checked(self, *, language_model: str | None = None) -> ProbeCard:
        """Return the card, checked against the weights and the language model."""
        card = self.parsed()
        if len(self.weights) > MAX_WEIGHTS_BYTES:
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

    def read_weights(self, adapter: TypeAdapter[Weights]) -> Weights:
        """Return weights that are stored as JSON."""
        try:
            return adapter.validate_json(self.weights)
        except UNREADABLE as error:
            raise self.damaged(reason(error)) from error

    def damaged(self, why: str) -> ProbeFileError:
        return ProbeFileError(
            f"The probe in {self.name} cannot be used: {why}. Put back the files that "
            "train probe wrote, or fit it again."
        )


def card_bytes(card: ProbeCard, weights: bytes) -> bytes:
    digest = hashlib.sha256(weights).hexdigest()
    return card_text({**asdict(card), "weights_sha256": digest}, FORMAT)


def fingerprint_of(card: "DataclassInstance") -> str:
    """Return the digest of all fields of a card."""
    text = json.dumps(asdict(card), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def card_text(said: Mapping[str, object], version: int) -> bytes:
    return json_bytes({"format": version, **said})


def json_bytes(said: Mapping[str, object]) -> bytes:
    text = json.dumps(said, indent=2, sort_keys=True, allow_nan=False)
    return f"{text}\n".encode()


def _parsed(content: bytes) -> ProbeCard:
    row = json.loads(content.decode())
    # Values that no database stores: NaN, lone surrogates, NUL.
    text = json.dumps(row, ensure_ascii=False, allow_nan=False)
    if "\\u0000" in text or not text.encode():
        raise ValueError("a text holds U+0000")
    card, _ = validated(ProbeCard, row, FORMAT)
    is_placed = card.kind not in UNPLACED
    if (card.layer is not None) is not is_placed:
        raise ValueError(f"layer {card.layer!r} does not fit the kind {card.kind}")
    if card.part not in (("block", "ffn") if is_placed else ("",)):
        raise ValueError(f"part {card.part!r} does not fit the kind {card.kind}")
    return card


Card = TypeVar("Card", bound="DataclassInstance")


def validated(
    kind: type[Card], row: dict[str, Any], version: int
) -> tuple[Card, dict[str, Any]]:
    """Return a card made from a file's object, and the fields that it does not know.

    Raises:
        ValueError: The format is unknown, or a value is not as declared.
    """
    rest = dict(row)
    if (found := rest.pop("format")) != version:
        raise ValueError(f"format {found!r} is not known")
    known = {each.name: rest.pop(each.name) for each in fields(kind)}
    return _adapter(kind).validate_python(known), rest


@cache
def _adapter(kind: type[Card]) -> TypeAdapter[Card]:
    return TypeAdapter(kind)


def read_beside(
    kind: type[Card],
    card: Path,
    weights: Path,
    *,
    version: int,
    damaged: Callable[[Path, str], ModelError],
) -> Card:
    """Read a card file and check it against the weights' file beside it."""
    try:
        said, rest = validated(kind, json.loads(card.read_text("utf-8")), version)
        if rest:
            raise ValueError(f"the fields {sorted(rest)} are not known")
        is_same = sha256_of(weights) == asdict(said)["weights_sha256"]
    except UNREADABLE as error:
        raise damaged(card.parent, reason(error)) from error
    if not is_same:
        raise damaged(card.parent, "the weights are not those that were saved")
    return said


def sha256_of(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"]))
        return f"{name} is {str(first['input'])[:70]!r}: {first['msg']}"
    return f"{type(error).__name__}: {error}"
