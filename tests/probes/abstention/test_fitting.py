"""A probe learns what is in the activations, repeatably, and says when it cannot."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from probes.abstention.fitting import (
    Epoch,
    FitSettings,
    abstention_loss,
    fit,
    fit_temperature,
)
from probes.abstention.probe import Kind, Labelled
from probes.exceptions import TooFewLabelsError
from probes.taps import Tap

from .answers import WIDTH, by_level, by_order

MODEL = "a" * 64
QUICK = FitSettings(hidden=16, projected=8, dropout=0.1, learning_rate=1e-2, epochs=30)


def fitted(training, held_out, settings=QUICK, begin_from=None, **changes):
    return fit(
        training,
        held_out,
        language_model=MODEL,
        tap=Tap(1),
        settings=replace(settings, **changes),
        begin_from=begin_from,
    )


def auroc(probe, rows) -> float:
    """Share of pairs of a right and a wrong answer that are ordered rightly."""
    scores = probe.confidences([row.activations for row in rows])
    is_right = np.array([row.is_right for row in rows])
    return float((scores[is_right][:, None] > scores[~is_right][None]).mean())


@pytest.mark.parametrize("kind", Kind)
def test_what_lies_in_the_level_is_learnt_by_both_kinds(kind):
    probe = fitted(by_level(240, 0), by_level(120, 1), kind=kind)
    assert auroc(probe, by_level(200, 2)) > 0.95


@pytest.mark.slow
def test_what_lies_in_the_order_is_learnt_by_the_lstm_alone():
    training, held_out, unseen = by_order(300, 0), by_order(120, 1), by_order(200, 2)

    lstm = fitted(training, held_out)
    linear = fitted(training, held_out, kind=Kind.LINEAR)

    assert auroc(lstm, unseen) > 0.95
    assert auroc(linear, unseen) < 0.65


def by_prompt(count: int, seed: int) -> list[Labelled]:
    """Right answers follow a prompt that lies higher; what follows tells nothing."""
    rows = by_level(count, seed)
    random = np.random.default_rng(seed)
    for row in rows:
        row.activations[1:, 2] = random.normal(scale=4.0, size=len(row.activations) - 1)
    return rows


@pytest.mark.parametrize("kind", [Kind.LSTM, Kind.LINEAR])
def test_what_the_prompt_tells_is_not_lost_among_what_follows(kind):
    unseen = by_prompt(300, 2)

    apart = fitted(by_prompt(240, 0), by_prompt(120, 1), kind=kind)
    among = fitted(
        by_prompt(240, 0), by_prompt(120, 1), kind=Kind.LINEAR, opens_with_prompt=False
    )

    assert apart.opens_with_prompt
    assert auroc(apart, unseen) > auroc(among, unseen) + 0.1


def test_an_lstm_that_finds_nothing_leaves_what_a_linear_head_tells():
    training, held_out = by_prompt(240, 0), by_prompt(120, 1)

    lstm = fitted(training, held_out, learning_rate=10.0, epochs=3, patience=0)
    linear = fitted(training, held_out, kind=Kind.LINEAR)

    unseen = [row.activations for row in by_prompt(50, 2)]
    np.testing.assert_allclose(
        lstm.confidences(unseen), linear.confidences(unseen), atol=1e-6
    )


@pytest.mark.parametrize("kind", Kind)
def test_a_batch_of_mixed_lengths_is_judged_as_each_answer_alone(kind):
    probe = fitted(by_level(120, 0), by_level(120, 1), kind=kind, epochs=2)
    rows = [row.activations for row in by_level(9, 3)]

    together = probe.confidences(rows)

    alone = [probe.confidences([row])[0] for row in rows]
    np.testing.assert_allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize("kind", Kind)
def test_confidence_along_an_answer_never_looks_ahead(kind):
    probe = fitted(by_level(120, 0), by_level(120, 1), kind=kind, epochs=2)
    row = by_level(1, 3)[0].activations

    (along,) = probe.along([row])

    assert along.shape == (len(row),)
    before = [probe.confidences([row[: end + 1]])[0] for end in range(len(row))]
    np.testing.assert_allclose(along, before, atol=1e-6)
    assert ((along >= 0) & (along <= 1)).all()


def test_the_same_seed_gives_the_same_weights_and_leaves_others_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)

    one, two = (fitted(by_level(120, 0), by_level(120, 1), epochs=3) for _ in range(2))
    other = fitted(by_level(120, 0), by_level(120, 1), epochs=3, seed=1)

    assert torch.equal(torch.rand(3), expected)
    weights = [probe.network.state_dict() for probe in (one, two, other)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not torch.equal(weights[0]["head.weight"], weights[2]["head.weight"])


def test_fitting_stops_when_held_out_loss_stops_falling_and_keeps_the_best():
    seen: list[Epoch] = []
    random = np.random.default_rng(0)
    noise = [
        Labelled(random.normal(size=(4, WIDTH)).astype(np.float32), index % 2 == 0)
        for index in range(240)
    ]
    settings = replace(
        QUICK, epochs=200, patience=3, dropout=0.0, opens_with_prompt=False
    )

    fit(
        noise[:120],
        noise[120:],
        language_model=MODEL,
        tap=Tap(0),
        settings=settings,
        on_epoch=seen.append,
    )

    best = max(epoch.number for epoch in seen if epoch.is_best)
    assert len(seen) == best + 4 < 200


@pytest.mark.parametrize(("count", "right"), [(90, 45), (200, 200), (200, 190), (0, 0)])
def test_too_few_or_one_sided_labels_are_refused(count, right):
    rows = [
        Labelled(np.zeros((2, WIDTH), np.float32), index < right)
        for index in range(count)
    ]
    with pytest.raises(TooFewLabelsError, match=f"{count} labelled answers"):
        fitted(rows, by_level(120, 1))


def test_activations_of_another_width_are_refused():
    probe = fitted(by_level(120, 0), by_level(120, 1), epochs=1)
    with pytest.raises(ValueError, match=r"\(positions, 12\)"):
        probe.confidences([np.zeros((3, 5), np.float32)])
    with pytest.raises(ValueError, match="positions"):
        probe.confidences([np.zeros((0, WIDTH), np.float32)])


def test_the_loss_is_the_papers_worked_by_hand():
    # Two answers: predicted right with .9 (it is), predicted wrong with .8 (it is not).
    logits = torch.log(torch.tensor([[0.1, 0.9], [0.8, 0.2]]))
    is_right = torch.tensor([1, 1])

    loss = abstention_loss(logits, is_right, huber_weight=2.0, huber_delta=0.1)

    entropy = -(np.log(0.9) + np.log(0.2)) / 2
    gap = (0.9 + 0.8) / 2 - 1 / 2  # mean confidence .85, half of them predicted right
    huber = 0.1 * (gap - 0.05)  # beyond delta: linear
    assert float(loss) == pytest.approx(entropy + 2 * huber, abs=1e-6)


def test_without_weight_the_loss_is_plain_cross_entropy():
    logits, is_right = torch.randn(8, 2), torch.tensor([0, 1] * 4)
    loss = abstention_loss(logits, is_right, huber_weight=0.0, huber_delta=0.1)
    assert loss == functional.cross_entropy(logits, is_right)


def test_the_temperature_undoes_a_known_overconfidence():
    generator = torch.Generator().manual_seed(0)
    true = torch.randn(20_000, 2, generator=generator)
    is_right = torch.distributions.Categorical(logits=true)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        labels = is_right.sample()

    assert fit_temperature(true * 3, labels) == pytest.approx(3, rel=0.05)


def mixed(count: int, seed: int, *, flipped: bool = False) -> list[Labelled]:
    """Return answers whose level tells; `flipped` to the other side in a second domain."""
    rows = by_level(count, seed)
    return [replace(row, is_right=row.is_right is not flipped) for row in rows]


@pytest.mark.parametrize("kind", [Kind.LINEAR, Kind.LSTM])
def test_going_on_with_few_answers_keeps_what_was_known(kind):
    settings = replace(QUICK, kind=kind)
    former = fitted(by_level(300, 1), by_level(80, 2), settings)
    few = by_level(40, 3)

    moved = fitted(few[:30], few[30:], settings, begin_from=former)

    test = by_level(300, 4)
    assert auroc(moved, test) >= auroc(former, test) - 0.02
    assert moved.temperature == former.temperature


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Kind.LINEAR, Kind.LSTM])
def test_going_on_moves_towards_what_new_answers_say(kind):
    settings = replace(QUICK, kind=kind)
    former = fitted(by_level(300, 1), by_level(80, 2), settings)
    new = mixed(400, 3, flipped=True)

    moved = fitted(new[:320], new[320:], settings, begin_from=former)

    test = mixed(200, 4, flipped=True)
    assert auroc(moved, test) > auroc(former, test) + 0.1


def test_going_on_needs_some_of_each_label():
    former = fitted(by_level(300, 1), by_level(80, 2))
    few = by_level(14, 3)

    with pytest.raises(TooFewLabelsError, match="at least 15"):
        fitted(few, few, begin_from=former)
