"""Fit a probe: seeded, with early stopping and a temperature from held-out answers.

The loss is cross-entropy plus the average miscalibration of the confidence.

References:
    Response abstinence, equations 7 to 9, after Patra et al. (arXiv 2212.10005).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from torch.nn import functional

from probes.abstention.probe import (
    RIGHT,
    AbstentionProbe,
    Kind,
    Labelled,
    LstmClassifier,
    MeanClassifier,
    SequenceClassifier,
    last_of_each,
    pack,
)
from probes.fitting import fit_logistic, move_logistic, require_labels
from probes.taps import Activations, Tap


def abstention_loss(
    logits: torch.Tensor,
    is_right: torch.Tensor,
    *,
    huber_weight: float,
    huber_delta: float,
) -> torch.Tensor:
    """Return cross-entropy + huber_weight * Huber(mean confidence - mean correctness).

    As in equation 8, confidence is the predicted class's probability and correctness is
    whether the prediction is right, both averaged over the batch; only the confidence
    has a gradient. The means need batches of a few dozen.

    Args:
        logits: Shape (rows, 2).
        is_right: 1 or 0, shape (rows,).
        huber_delta: Gap in (0, 1] above which the penalty is linear; 1 is the squared
            gap.
    """
    loss = functional.cross_entropy(logits, is_right)
    if huber_weight == 0:
        return loss
    confidence, predicted = logits.softmax(1).max(1)
    correctness = (predicted == is_right).float()
    gap = functional.huber_loss(
        confidence.mean(), correctness.mean(), delta=huber_delta
    )
    return loss + huber_weight * gap


# Minimum numbers of (answers, right ones as well as wrong ones).
_MIN_TO_FIT: Final = (100, 20)
_MIN_HELD_OUT: Final = (30, 6)
_MIN_TO_GO_ON: Final = (15, 2)
# When a probe is fitted further, it counts as this many answers.
_WORTH: Final = 400
_SLOWER: Final = 0.1
_TEMPERATURES: Final = (0.05, 20.0)


@dataclass(frozen=True, slots=True)
class FitSettings:
    """How a probe is fitted; the same settings and data give the same weights.

    Attributes:
        dropout: Share in [0, 1) of values dropped while fitting.
        opens_with_prompt: Whether the first position of every sequence is the prompt's
            last token, which a linear head reads separately.
        closes_with_end: Whether the last one is the token that ended the answer. While
            an answer is written, its activations take an extra pass.
        penalty: For a linear head: half of this times its squared weights is added to
            the mean loss. Without it a few thousand answers do not determine a thousand
            weights.
    """

    kind: Kind = Kind.LSTM
    hidden: int = 32
    projected: int = 32
    dropout: float = 0.5
    learning_rate: float = 2e-3
    weight_decay: float = 5e-2
    opens_with_prompt: bool = True
    closes_with_end: bool = False
    penalty: float = 0.3
    batch: int = 64
    epochs: int = 60
    patience: int = 8
    huber_weight: float = 1.0
    huber_delta: float = 0.1
    seed: int = 0

    def cut_to_read(self, whole: Activations) -> Activations:
        """Cut (1 + tokens + 1, width), with prompt and end, to (positions, width)."""
        first = 0 if self.opens_with_prompt else 1
        return whole[first:] if self.closes_with_end else whole[first:-1]


@dataclass(frozen=True, slots=True)
class Epoch:
    """Progress of a fit: 1-based, of at most `total`, with the held-out loss."""

    number: int
    total: int
    loss: float
    is_best: bool


def fit(
    training: Sequence[Labelled],
    held_out: Sequence[Labelled],
    *,
    language_model: str,
    tap: Tap,
    settings: FitSettings,
    begin_from: AbstentionProbe | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _epoch: None,
) -> AbstentionProbe:
    """Fit a probe from scratch, or fit an existing one further with fewer answers.

    Fitted further, a linear head is drawn towards its former weights; other weights
    start from theirs, move slowly, and stay if no epoch has a lower held-out loss.
    """
    minimum = _MIN_TO_FIT if begin_from is None else _MIN_TO_GO_ON
    require_labels([row.is_right for row in training], "to fit on", *minimum)
    if begin_from is None:
        require_labels([row.is_right for row in held_out], "held out", *_MIN_HELD_OUT)
    width = training[0].activations.shape[1]
    # Leave the caller's random numbers alone.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        network = new_network(width, settings)
        if begin_from is None:
            network.standardise(
                torch.from_numpy(np.concatenate([row.activations for row in training]))
            )
        else:
            network.load_state_dict(begin_from.network.state_dict())
            settings = replace(settings, learning_rate=_SLOWER * settings.learning_rate)
        former = _former(network) if begin_from else None
        _solve_linear(network, training, settings, former)
        if settings.kind is not Kind.LINEAR:
            is_begun = begin_from is not None
            _fit_weights(
                network, training, held_out, settings, on_epoch, is_begun=is_begun
            )
        network.train(mode=False)
        temperature = begin_from.temperature if begin_from else 1.0
        if len(held_out) >= _MIN_HELD_OUT[0]:
            with torch.no_grad():
                temperature = fit_temperature(*_logits(network, held_out))
        # The convex fit chose nothing by the held-out answers, so it may use them too.
        _solve_linear(network, [*training, *held_out], settings, former)
    return AbstentionProbe(
        settings.kind,
        language_model,
        tap,
        temperature,
        network,
        closes_with_end=settings.closes_with_end,
    )


def fit_temperature(logits: torch.Tensor, is_right: torch.Tensor) -> float:
    """Return the temperature in [0.05, 20] with the lowest cross-entropy.

    Guo et al., "On calibration of modern neural networks" (ICML 2017).
    """

    def loss(inverse: float) -> float:
        return float(functional.cross_entropy(logits * inverse, is_right))

    low, high = _TEMPERATURES
    found = minimize_scalar(
        loss, bounds=(1 / high, 1 / low), method="bounded", options={"xatol": 1e-5}
    )
    return 1 / float(found.x)


def _former(network: SequenceClassifier) -> tuple[float, NDArray[np.float64]] | None:
    """Return a linear head's intercept and weights, as log-odds of right over wrong."""
    head = network.linear_head()
    if head is None:
        return None
    with torch.no_grad():
        weights = (head.weight[RIGHT] - head.weight[1 - RIGHT]).double().numpy()
        return float(head.bias[RIGHT] - head.bias[1 - RIGHT]), weights


def _beside_head(
    network: SequenceClassifier, rows: Sequence[Labelled], features: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what the network adds to each row's log-odds besides its linear head."""
    network.train(mode=False)
    with torch.no_grad():
        logits, _ = _logits(network, rows)
    whole = (logits[:, RIGHT] - logits[:, 1 - RIGHT]).double().numpy()
    found = _former(network)
    return whole - (found[0] + features @ found[1]) if found else whole


def _solve_linear(
    network: SequenceClassifier,
    rows: Sequence[Labelled],
    settings: FitSettings,
    former: tuple[float, NDArray[np.float64]] | None,
) -> None:
    """Set the linear head of `network`, if it has one, to its optimal weights.

    Weights are drawn towards the `former` ones, which count as `_WORTH` answers, or to
    0. The solution is exact: gradient descent with early stopping is slower and finds a
    worse one.
    """
    head = network.linear_head()
    if head is None:
        return
    packed = pack([row.activations for row in rows], network.width)
    with torch.no_grad():
        features = network.linear_features(packed).double().numpy()
    spread = features.std(axis=0)
    labels = np.array([row.is_right for row in rows], dtype=np.float64)
    if former is None:
        scale = np.maximum(spread, 1e-6)
        strength = settings.penalty * len(rows)
        intercept, weights = fit_logistic(features / scale, labels, strength)
    else:
        # Features that hardly vary must not be scaled up: a few answers may agree in
        # them by chance.
        scale = np.maximum(spread, np.median(spread) + 1e-6)
        strength = settings.penalty * max(len(rows), _WORTH)
        intercept, weights = move_logistic(
            features / scale,
            labels,
            strength,
            former[0],
            former[1] * scale,
            offset=_beside_head(network, rows, features),
        )
    with torch.no_grad():
        head.weight.zero_()
        head.bias.zero_()
        head.weight[RIGHT] = torch.from_numpy(weights / scale)
        head.bias[RIGHT] = intercept
    head.requires_grad_(requires_grad=False)


def _fit_weights(
    network: SequenceClassifier,
    training: Sequence[Labelled],
    held_out: Sequence[Labelled],
    settings: FitSettings,
    on_epoch: Callable[[Epoch], None],
    *,
    is_begun: bool,
) -> None:
    """Leave the weights of the epoch with the lowest held-out loss in `network`.

    Existing weights, even of a linear head alone, are the first to beat.
    """
    optimiser = torch.optim.AdamW(
        [weights for weights in network.parameters() if weights.requires_grad],
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
    )
    best, waited = _copy(network), 0
    is_begun = is_begun or network.linear_head() is not None
    best_loss = _loss(network, held_out) if is_begun else math.inf
    for number in range(1, settings.epochs + 1):
        network.train()
        for batch in _batches(training, settings.batch):
            optimiser.zero_grad()
            loss = abstention_loss(
                *_logits(network, batch),
                huber_weight=settings.huber_weight,
                huber_delta=settings.huber_delta,
            )
            loss.backward()  # type: ignore[no-untyped-call]  # untyped in torch
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
        now = _loss(network, held_out)
        is_best = now < best_loss
        if is_best:
            best, best_loss, waited = _copy(network), now, 0
        else:
            waited += 1
        on_epoch(Epoch(number, settings.epochs, now, is_best))
        if waited > settings.patience:
            break
    network.load_state_dict(best)


def _loss(network: SequenceClassifier, rows: Sequence[Labelled]) -> float:
    network.train(mode=False)
    with torch.no_grad():
        return float(functional.cross_entropy(*_logits(network, rows)))


def new_network(width: int, settings: FitSettings) -> SequenceClassifier:
    if settings.kind is not Kind.LSTM:
        hidden = settings.hidden if settings.kind is Kind.MLP else None
        return MeanClassifier(
            width,
            hidden=hidden,
            dropout=settings.dropout,
            opens_with_prompt=settings.opens_with_prompt,
        )
    return LstmClassifier(
        width,
        projected=settings.projected,
        hidden=settings.hidden,
        dropout=settings.dropout,
        opens_with_prompt=settings.opens_with_prompt,
    )


def _logits(
    network: SequenceClassifier, rows: Sequence[Labelled]
) -> tuple[torch.Tensor, torch.Tensor]:
    packed = pack([row.activations for row in rows], network.width)
    is_right = torch.tensor([int(row.is_right) for row in rows])
    return last_of_each(network(packed)), is_right


def _batches(rows: Sequence[Labelled], size: int) -> Iterator[list[Labelled]]:
    order = torch.randperm(len(rows)).tolist()
    for first in range(0, len(order), size):
        yield [rows[index] for index in order[first : first + size]]


def _copy(network: SequenceClassifier) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in network.state_dict().items()}
