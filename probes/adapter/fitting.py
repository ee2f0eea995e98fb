"""Fit a low-rank adapter on the answers' tokens, not on the prompts.

As files: weights as safetensors, everything else as JSON, never a pickle.
"""

import json
import math
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from probes.cards import card_text, sha256_of
from probes.exceptions import TooFewLabelsError
from probes.language_model.loading import choose_dtype

from .merging import CARD, CONFIGURATION, FORMAT, WEIGHTS, AdapterCard


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt and the answer to learn, with its end token."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.prompt or not self.answer:
            raise ValueError(
                f"{len(self.prompt)} tokens of prompt, {len(self.answer)} of answer"
            )

    def __len__(self) -> int:
        return len(self.prompt) + len(self.answer)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Examples side by side, padded on the left so that their answers end together.

    `ids` and `mask` (0 for padding) have the shape (rows, width), `targets` the shape
    (rows, longest answer) with -100 where nothing is learnt.
    """

    ids: torch.Tensor
    mask: torch.Tensor
    targets: torch.Tensor


def make_batch(examples: Sequence[Example]) -> Batch:
    width = max(map(len, examples))
    longest = max(len(example.answer) for example in examples)
    ids = torch.zeros(len(examples), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    targets = torch.full((len(examples), longest), -100)
    for row, example in enumerate(examples):
        tokens = torch.tensor([*example.prompt, *example.answer])
        ids[row, width - len(example) :] = tokens
        mask[row, width - len(example) :] = 1
        targets[row, longest - len(example.answer) :] = torch.tensor(example.answer)
    return Batch(ids, mask, targets)


def make_batches(
    examples: Sequence[Example], size: int, chance: random.Random
) -> Iterator[list[Example]]:
    """Yield all examples once, in batches of similar length and random order.

    Sorting within a few dozen batches leaves little padding and still mixes them well.
    """
    order = chance.sample(range(len(examples)), len(examples))
    batches: list[list[Example]] = []
    pool = size * 32
    for first in range(0, len(order), pool):
        near = sorted(
            order[first : first + pool], key=lambda index: len(examples[index])
        )
        batches += [
            [examples[index] for index in near[start : start + size]]
            for start in range(0, len(near), size)
        ]
    chance.shuffle(batches)
    yield from batches


_MIN_EXAMPLES: Final = 50


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """How an adapter is fitted.

    Attributes:
        dropout: Share in [0, 1) of an adapted layer's input dropped while fitting. On a
            CPU its random numbers take as long as the forward pass.
        learning_rate: Peak rate; it rises over the first `warm_up` share of the steps
            and falls to 0 along a cosine.
    """

    rank: int = 16
    scale: float = 32.0
    dropout: float = 0.0
    learning_rate: float = 5e-4
    weight_decay: float = 0.0
    warm_up: float = 0.05
    batch: int = 8
    epochs: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """Progress of a fit: 1-based, of `total`, with this batch's mean loss in nats."""

    number: int
    total: int
    loss: float


def fit_adapter(
    model: PreTrainedModel,
    examples: Sequence[Example],
    settings: AdapterSettings,
    *,
    on_step: Callable[[Step], None] = lambda _step: None,
) -> PeftModel:
    """Fit an adapter to a model, whose own weights stay unchanged."""
    if len(examples) < _MIN_EXAMPLES:
        raise TooFewLabelsError(
            f"{len(examples)} examples: at least {_MIN_EXAMPLES} are needed to fit an "
            "adapter. Give it more questions."
        )
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(settings.seed)
        adapted = _adapted(model, settings)
        _fit(adapted, examples, settings, on_step)
    adapted.train(mode=False)
    return adapted


def _adapted(model: PreTrainedModel, settings: AdapterSettings) -> PeftModel:
    configuration = LoraConfig(
        task_type="CAUSAL_LM",
        r=settings.rank,
        lora_alpha=settings.scale,  # type: ignore[arg-type]  # only its type hint wants an int
        lora_dropout=settings.dropout,
        target_modules="all-linear",
        # GPT-2's layers store their weights transposed.
        fan_in_fan_out=any(isinstance(part, Conv1D) for part in model.modules()),
    )
    with warnings.catch_warnings():
        # peft uses a deprecated name of transformers.
        warnings.filterwarnings("ignore", ".*is_gradient_checkpointing", FutureWarning)
        return get_peft_model(model, configuration)


def _fit(
    adapted: PeftModel,
    examples: Sequence[Example],
    settings: AdapterSettings,
    on_step: Callable[[Step], None],
) -> None:
    weights = [weight for weight in adapted.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(
        weights, lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    total = settings.epochs * math.ceil(len(examples) / settings.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: _share(step, total, settings.warm_up)
    )
    chance = random.Random(settings.seed)  # noqa: S311  # an order, nothing secret
    number = 0
    adapted.train()
    for _ in range(settings.epochs):
        for rows in make_batches(examples, settings.batch, chance):
            loss = _loss(adapted, make_batch(rows))
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # untyped in torch
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimiser.step()
            schedule.step()
            number += 1
            on_step(Step(number, total, loss.item()))


def _loss(adapted: PeftModel, batch: Batch) -> torch.Tensor:
    """Return the mean loss over the answers' tokens; only these get logits."""
    device = adapted.device
    mask = batch.mask.to(device)
    kept = batch.targets.shape[1]
    is_half = choose_dtype(device) is torch.bfloat16
    with torch.autocast(device.type, torch.bfloat16, enabled=is_half):
        output = adapted(
            input_ids=batch.ids.to(device),
            attention_mask=mask,
            position_ids=(mask.cumsum(1) - 1).clamp(min=0),
            use_cache=False,
            logits_to_keep=kept + 1,
        )
    logits = output.logits[:, :-1].float()
    return functional.cross_entropy(
        logits.flatten(0, 1), batch.targets.to(device).flatten()
    )


def _share(step: int, total: int, warm_up: float) -> float:
    rising = max(1, round(warm_up * total))
    if step < rising:
        return (step + 1) / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1, total - rising)))


def save_adapter(directory: Path, adapted: PeftModel, card: AdapterCard) -> AdapterCard:
    """Write an adapter's files in half precision, the card last.

    Without a card, an incomplete write is never used.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / CARD).unlink(missing_ok=True)
    adapted.save_pretrained(str(directory), safe_serialization=True)
    # peft's model card is an empty template; our card has the facts.
    (directory / "README.md").unlink(missing_ok=True)
    forget_path(directory / CONFIGURATION, "base_model_name_or_path", card.base)
    weights = load_file(directory / WEIGHTS)
    halves = {name: value.to(torch.bfloat16) for name, value in weights.items()}
    save_file(halves, directory / WEIGHTS, metadata={"format": "pt"})
    written = replace(card, weights_sha256=sha256_of(directory / WEIGHTS))
    (directory / CARD).write_bytes(card_text(asdict(written), FORMAT))
    return written


def forget_path(file: Path, field: str, name: str) -> None:
    """Replace this machine's directory in a configuration with the model's name."""
    said = json.loads(file.read_text(encoding="utf-8"))
    said[field] = name
    file.write_text(json.dumps(said, indent=2, sort_keys=True) + "\n", encoding="utf-8")
