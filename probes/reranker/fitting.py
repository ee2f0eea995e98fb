"""Fine-tune a cross-encoder on preferences, with sentence-transformers' trainer.

With the learning rate and the half precision that the paper names, such a fit is known
to collapse to chance, hence warm-up, gradient clipping and early stopping.

References:
    CBDR, section 3.3, equations 6 and 7. van den Oord et al., "Representation learning
    with contrastive predictive coding" (2018): InfoNCE.
"""

import math
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import (
    CrossEncoderTrainer,
    CrossEncoderTrainingArguments,
)
from sentence_transformers.cross_encoder.evaluation import (
    CrossEncoderRerankingEvaluator,
)
from torch import nn
from torch.nn import functional
from transformers import (
    EarlyStoppingCallback,
    PrinterCallback,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from probes.adapter.fitting import forget_path
from probes.cards import sha256_of
from probes.exceptions import TooFewLabelsError

from .preferences import Preference
from .scoring import CARD, WEIGHTS, RerankerCard, open_encoder, write_card

_MIN: Final = 20
_MIN_HELD_OUT: Final = 10
_HELD_OUT: Final = "held_out"
_PLACES: Final = 10
METRIC: Final = f"{_HELD_OUT}_mrr@{_PLACES}"


@dataclass(frozen=True, slots=True)
class RerankerSettings:
    """How a reranker is fitted.

    Attributes:
        group: Number of notes compared for a question in one step: one positive and
            `group - 1` negatives, drawn repeatedly if there are fewer.
        temperature: Divides the logits in the loss (the paper's tau, which it does
            not give).
        learning_rate: Peak rate; it rises over the first `warm_up` share of the steps
            and falls linearly to 0.
        bf16: Whether it computes in bfloat16; half precision (fp16) is not offered.
    """

    group: int = 8
    temperature: float = 1.0
    learning_rate: float = 2e-5
    weight_decay: float = 0.01
    warm_up: float = 0.1
    clip: float = 1.0
    batch: int = 8
    epochs: int = 3
    patience: int = 1
    bf16: bool = False
    max_tokens: int = 256
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    number: int
    total: int


@dataclass(frozen=True, slots=True, eq=False)
class FittedReranker:
    """A fine-tuned cross-encoder with held-out metrics; "before" is the earlier MRR."""

    encoder: CrossEncoder
    settings: RerankerSettings
    metrics: dict[str, float]


def fit_reranker(
    base: str,
    training: Sequence[Preference],
    held_out: Sequence[Preference],
    settings: RerankerSettings,
    *,
    device: str = "cpu",
    on_step: Callable[[Step], None] = lambda _step: None,
) -> FittedReranker:
    """Fine-tune a cross-encoder and keep the weights with the best held-out ranking.

    `base` is a directory or a hub name, of a cross-encoder or an embedding model.
    """
    for rows, what, least in (
        (training, "to fit on", _MIN),
        (held_out, "held out", _MIN_HELD_OUT),
    ):
        if len(rows) < least:
            raise TooFewLabelsError(
                f"{len(rows)} preferences {what}: at least {least} are needed. Make "
                "more from further questions: manage.py make_preferences."
            )
    with _own_chance(settings.seed), tempfile.TemporaryDirectory() as work:
        encoder = open_encoder(base, max_tokens=settings.max_tokens, device=device)
        evaluator = CrossEncoderRerankingEvaluator(
            [
                {
                    "query": row.query,
                    "positive": list(row.positives),
                    "negative": list(row.negatives),
                }
                for row in held_out
            ],
            at_k=_PLACES,
            name=_HELD_OUT,
            write_csv=False,
        )
        before = evaluator(encoder)[METRIC]
        trainer = CrossEncoderTrainer(
            model=encoder,
            args=_arguments(Path(work), settings, encoder),
            train_dataset=Dataset.from_list(_groups(training, settings)),
            evaluator=evaluator,
            loss=GroupInfoNCE(encoder, settings.temperature),
            callbacks=[
                EarlyStoppingCallback(early_stopping_patience=settings.patience),
                _Telling(on_step),
            ],
        )
        # It prints every figure to standard output, which belongs to the command.
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        encoder.eval()
        metrics = {
            name.removeprefix(f"{_HELD_OUT}_"): float(value)
            for name, value in evaluator(encoder).items()
        }
    return FittedReranker(encoder, settings, {"before": float(before), **metrics})


@contextmanager
def _own_chance(seed: int) -> Iterator[None]:
    """Seed torch, and restore the caller's random states, which the trainer seeds."""
    plain, numbers = random.getstate(), np.random.get_state()  # noqa: NPY002  # as the trainer
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
    finally:
        random.setstate(plain)
        np.random.set_state(numbers)  # noqa: NPY002  # the same


def save_reranker(
    directory: Path, fitted: FittedReranker, card: RerankerCard
) -> RerankerCard:
    """Write a reranker's files, the card last: an incomplete write is refused."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / CARD).unlink(missing_ok=True)
    fitted.encoder.save_pretrained(
        str(directory), create_model_card=False, safe_serialization=True
    )
    forget_path(directory / "config.json", "_name_or_path", card.base)
    written = replace(
        card,
        settings=asdict(fitted.settings),
        metrics=fitted.metrics,
        max_tokens=fitted.settings.max_tokens,
        weights_sha256=sha256_of(directory / WEIGHTS),
    )
    write_card(directory, written)
    return written


class GroupInfoNCE(nn.Module):
    """InfoNCE over a question's own notes: the positive against its negatives.

    The library's ranking loss adds notes of other questions in the batch as negatives,
    which the preferences do not support.
    """

    def __init__(self, encoder: CrossEncoder, temperature: float) -> None:
        super().__init__()
        self.model = encoder
        self._temperature = temperature

    def forward(
        self,
        inputs: Sequence[Sequence[str]],
        labels: torch.Tensor | None = None,  # the trainer's
        prompt: str | None = None,
        task: str | None = None,
    ) -> torch.Tensor:
        """Return the mean loss of a batch: columns of questions, positives, negatives."""
        questions, *notes = inputs
        pairs = [
            (question, note)
            for column in notes
            for question, note in zip(questions, column, strict=True)
        ]
        features = self.model.preprocess(pairs, prompt=prompt, task=task)
        device = self.model.device
        features = {
            name: value.to(device) if isinstance(value, torch.Tensor) else value
            for name, value in features.items()
        }
        # (notes, questions) -> (questions, notes), the positive first.
        scores = self.model(features)["scores"].reshape(len(notes), len(questions)).T
        right = torch.zeros(len(questions), dtype=torch.long, device=device)
        return functional.cross_entropy(scores.float() / self._temperature, right)

    def get_config_dict(self) -> dict[str, float]:
        return {"temperature": self._temperature}


class _Telling(TrainerCallback):
    def __init__(self, on_step: Callable[[Step], None]) -> None:
        self._on_step = on_step

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_others: Any,
    ) -> None:
        self._on_step(Step(state.global_step, state.max_steps))


def _groups(
    preferences: Sequence[Preference], settings: RerankerSettings
) -> list[dict[str, str]]:
    chance = random.Random(settings.seed)  # noqa: S311  # an order, nothing secret
    rows = []
    count = settings.group - 1
    for preference in preferences:
        for positive in preference.positives:
            times = math.ceil(count / len(preference.negatives))
            drawn = [
                note
                for _ in range(times)
                for note in chance.sample(
                    preference.negatives, len(preference.negatives)
                )
            ]
            rows.append(
                {
                    "question": preference.query,
                    "positive": positive,
                    **{f"negative_{i}": note for i, note in enumerate(drawn[:count])},
                }
            )
    chance.shuffle(rows)
    return rows


def _arguments(
    work: Path, settings: RerankerSettings, encoder: CrossEncoder
) -> CrossEncoderTrainingArguments:
    return CrossEncoderTrainingArguments(
        output_dir=str(work),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        warmup_steps=settings.warm_up,
        max_grad_norm=settings.clip,
        bf16=settings.bf16,
        seed=settings.seed,
        use_cpu=encoder.device.type == "cpu",
        dataloader_pin_memory=False,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        # Otherwise the optimiser's state would be written, as a pickle.
        save_only_model=True,
        load_best_model_at_end=True,
        metric_for_best_model=f"eval_{METRIC}",
        greater_is_better=True,
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
