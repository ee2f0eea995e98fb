"""Fit a verifier: which of a question's entries answers it, or none.

Each question is shown beside one entry that answers it, if any, and retrieved ones that
do not. The loss combines the choice among them and "none" with that of each pair by
itself, so that a pair's logit has a meaning without the others. The comparison by
tokens only ranks entries, so that its loss is the choice among them alone.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from scipy.optimize import minimize
from torch import nn
from torch.nn import functional

from .cross_encoder import CrossEncoder
from .network import Interaction, Tuned
from .reading import Pair, Side, Tokens, by_length, side_of

_PAIR_WEIGHT: Final = 1.5
_POOLED: Final = 32  # batches per pool of questions sorted by length
_MIN_RATE: Final = 0.02
_CHUNK: Final = 48  # pairs
_MAX_WEIGHT: Final = 1.3  # of a token that no entry contains


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A question as read, with entries that answer it and entries that do not."""

    question: Tokens
    positives: tuple[Tokens, ...]
    negatives: tuple[Tokens, ...]


@dataclass(frozen=True, slots=True)
class VerifierSettings:
    """How a verifier is fitted.

    Attributes:
        group: Entries beside a question in one step.
        batch: Questions in one step.
        learning_rate: Peak rate; it rises over the first `warm_up` share of the steps
            and falls linearly.
        upper_rate: The same for the embedder's tuned layers, or for the encoder's
            low-rank changes; at 0 they stay fixed.
        left_out: Share of the questions whose answering entry is left out on purpose,
            so that what looks like an answer is not one.
    """

    group: int = 5
    batch: int = 32
    epochs: float = 1
    learning_rate: float = 5e-4
    upper_rate: float = 1e-4
    weight_decay: float = 0.02
    warm_up: float = 0.05
    clip: float = 1.0
    left_out: float = 0.15
    seed: int = 0


_Score = Callable[[Sequence[Pair]], torch.Tensor]  # logits: (..., pairs)
_Loss = Callable[[Sequence[Example], VerifierSettings, random.Random], torch.Tensor]


def fit_verifier(
    network: Tuned,
    examples: Sequence[Example],
    settings: VerifierSettings,
    *,
    on_step: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    """Fit the nets and the tuned layers in place; every example once per epoch."""
    upper = [*network.upper.requires_grad_(settings.upper_rate > 0).parameters()]
    groups: list[dict[str, Any]] = [{"params": [*network.members.parameters()]}]
    if upper:
        groups.append({"params": upper, "lr": settings.upper_rate})
    loss = partial(_loss, partial(logits_of, network))
    _fit(network, groups, loss, examples, settings, on_step)


def fit_late_interaction(
    network: Tuned,
    examples: Sequence[Example],
    settings: VerifierSettings,
    *,
    on_step: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    """Fit the comparison by tokens in place, on layers that are fitted already.

    Questions that no entry answers are left out.
    """
    network.eval()
    fitted = network.late_interaction
    groups: list[dict[str, Any]] = [{"params": [*fitted.parameters()]}]
    loss = partial(_loss_of_order, partial(_read_in_chunks, network.by_tokens))
    answered = [each for each in examples if each.positives]
    _fit(fitted, groups, loss, answered, settings, on_step)


def fit_cross_encoder(
    network: CrossEncoder,
    examples: Sequence[Example],
    settings: VerifierSettings,
    *,
    on_step: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    """Fit a cross-encoder in place, its changes at `upper_rate`.

    Its head is fitted at `learning_rate`.
    """
    changes = [each for each in network.encoder.parameters() if each.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [*network.head.parameters()]},
        {"params": changes, "lr": settings.upper_rate},
    ]

    def score(pairs: Sequence[Pair]) -> torch.Tensor:
        return network.logits(pairs)[None]

    _fit(network, groups, partial(_loss, score), examples, settings, on_step)


def _fit(
    network: nn.Module,
    groups: list[dict[str, Any]],
    loss_of: _Loss,
    examples: Sequence[Example],
    settings: VerifierSettings,
    on_step: Callable[[int, int], None],
) -> None:
    chance = random.Random(settings.seed)  # noqa: S311  # an order, nothing secret
    optimizer = torch.optim.AdamW(
        groups, lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    total = math.ceil(settings.epochs * -(-len(examples) // settings.batch))
    rise = max(1, round(settings.warm_up * total))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1.0, (step + 1) / rise) * max(_MIN_RATE, 1 - step / total),
    )
    done = 0
    network.train()
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        while done < total:
            for batch in _batches(examples, settings.batch, chance)[: total - done]:
                optimizer.zero_grad()
                loss = loss_of(batch, settings, chance)
                loss.backward()  # type: ignore[no-untyped-call]  # torch has no hint
                nn.utils.clip_grad_norm_(network.parameters(), settings.clip)
                optimizer.step()
                schedule.step()
                done += 1
                on_step(done, total)
    network.eval()


def _batches(
    examples: Sequence[Example], size: int, chance: random.Random
) -> list[list[Example]]:
    """Return batches of similar length in random order, so that little is padded."""
    order = chance.sample(range(len(examples)), len(examples))
    found = []
    for start in range(0, len(order), size * _POOLED):
        part = [examples[at] for at in order[start : start + size * _POOLED]]
        part.sort(key=_length)
        found += [part[at : at + size] for at in range(0, len(part), size)]
    chance.shuffle(found)
    return found


def _length(example: Example) -> int:
    entries = (*example.positives, *example.negatives)
    return len(example.question) + max(map(len, entries))


def _loss_of_order(
    score: _Score,
    batch: Sequence[Example],
    settings: VerifierSettings,
    chance: random.Random,
) -> torch.Tensor:
    pairs = [
        (example.question, entry)
        for example in batch
        for entry in (
            chance.choice(example.positives),
            *_drawn(example.negatives, settings.group - 1, chance),
        )
    ]
    logits = score(pairs).view(len(batch), settings.group)
    return functional.cross_entropy(logits, torch.zeros(len(batch), dtype=torch.long))


def _loss(
    score: _Score,
    batch: Sequence[Example],
    settings: VerifierSettings,
    chance: random.Random,
) -> torch.Tensor:
    pairs, right = [], []
    for example in batch:
        keeps = example.positives and chance.random() >= settings.left_out
        entries = [chance.choice(example.positives)] if keeps else []
        right.append(0 if keeps else settings.group)
        missing = settings.group - len(entries)
        entries += _drawn(example.negatives, missing, chance)
        pairs += [(example.question, entry) for entry in entries]
    logits = score(pairs).view(-1, len(batch), settings.group)
    target = torch.tensor(right).expand(len(logits), -1)  # the same for every net
    each = functional.one_hot(target, settings.group + 1)[..., : settings.group].float()
    none = torch.zeros(*logits.shape[:2], 1)
    chosen = functional.cross_entropy(
        torch.cat([logits, none], 2).flatten(0, 1), target.flatten()
    )
    return chosen + _PAIR_WEIGHT * functional.binary_cross_entropy_with_logits(
        logits, each
    )


def logits_of(network: Tuned, pairs: Sequence[Pair]) -> torch.Tensor:
    """Return each net's logits: (members, pairs)."""
    return _read_in_chunks(network, pairs)


def _read_in_chunks(
    score: Callable[[Side, Side], torch.Tensor], pairs: Sequence[Pair]
) -> torch.Tensor:
    """Return what `score` returns for all pairs, read in chunks of similar length."""

    def read(places: Sequence[int]) -> torch.Tensor:
        questions, entries = zip(*(pairs[at] for at in places), strict=True)
        return score(side_of(questions), side_of(entries))

    lengths = [len(question) + len(entry) for question, entry in pairs]
    return by_length(lengths, _CHUNK, read)


def set_weights(network: Interaction, entries: Sequence[Tokens]) -> None:
    """Set each token's weight: its inverse document frequency among these entries."""
    counts = np.zeros(len(network.weights))
    for tokens in entries:
        counts[np.unique(tokens.ids)] += 1
    idf = np.log(len(entries) / (1 + counts)) / np.log(len(entries))
    network.weights.copy_(torch.from_numpy(_MAX_WEIGHT * idf))


def _drawn(
    negatives: Sequence[Tokens], count: int, chance: random.Random
) -> list[Tokens]:
    """Draw negatives, mostly from the first ones, which look most like answers."""
    hard, rest = list(negatives[:4]), list(negatives[4:])
    chance.shuffle(hard)
    found, left = hard[:3], hard[3:] + rest
    chance.shuffle(left)
    found = (found + left)[:count]
    while len(found) < count:
        found.append(chance.choice(negatives))
    return found


def fit_scale(logits: Sequence[float], answers: Sequence[bool]) -> tuple[float, float]:
    """Return scale and offset that make sigmoid(scale * logit + offset) a probability.

    Platt, "Probabilistic outputs for support vector machines" (1999), with his smoothed
    targets, on pairs that no fit saw.
    """
    values, labels = np.array(logits, np.float64), np.array(answers, np.bool_)
    yes, no = int(labels.sum()), int((~labels).sum())
    target = np.where(labels, (yes + 1) / (yes + 2), 1 / (no + 2))

    def loss(at: np.ndarray) -> float:
        scaled = at[0] * values + at[1]
        return float(np.mean(np.logaddexp(0, scaled) - target * scaled))

    scale, offset = minimize(loss, np.array([1.0, 0.0]), method="BFGS").x
    return float(scale), float(offset)
