"""Directions of a whole model: fitted, kept as files, used to steer and to monitor."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.cards import ProbeFiles, ProbeKind, card_bytes
from probes.directions.fitting import fit_direction_set
from probes.directions.sets import DirectionSet, DirectionSettings, blocks_between
from probes.directions.statements import Trait
from probes.exceptions import ProbeFileError, ProbeMismatchError, TooFewLabelsError
from probes.language_model.second_pass import Passing
from probes.services import load_probe
from tests.probes import tiny_models
from tests.probes.direction_files import direction_probe_files, made_directions

STATEMENTS = [f"Stone {number} lies in the river." for number in range(24)]


@pytest.fixture(scope="module")
def fitted():
    model = tiny_models.model("llama")
    settings = DirectionSettings(pairs=48)
    return model, fit_direction_set(model, dict.fromkeys(Trait, STATEMENTS), settings)


def test_every_block_gets_a_direction_of_unit_length_and_a_held_out_accuracy(fitted):
    model, directions = fitted

    assert (directions.blocks, directions.width) == (model.blocks, 32)
    for trait in (directions.honesty, directions.confidence):
        lengths = np.linalg.norm(trait.vectors, axis=1)
        assert lengths == pytest.approx(np.ones(model.blocks), abs=1e-5)
        assert len(trait.accuracies) == model.blocks
        # A random network carries what stood before it on to the last token.
        assert max(trait.accuracies) > 0.9


def test_the_unit_is_half_of_the_way_between_the_sides(fitted):
    _, directions = fitted
    trait, layer = directions.honesty, 1
    middle = trait.middles[layer] * trait.vectors[layer]
    half = trait.halves[layer] * trait.vectors[layer]

    assert trait.along(layer, middle) == pytest.approx(0, abs=1e-4)
    assert trait.along(layer, middle + half) == pytest.approx(1, abs=1e-4)
    assert trait.along(layer, middle - half) == pytest.approx(-1, abs=1e-4)


def test_confidence_is_the_mean_over_the_monitored_blocks(fitted):
    model, directions = fitted
    ids = model.tokens.encode_text("The river is deep.")
    (read,) = model.read_activations([Passing(ids, 0, len(ids))], directions.taps)

    found = directions.confidence_of(read)

    each = [directions.confidence.along(t.layer, read[t]) for t in directions.taps]
    assert found == pytest.approx(sum(each) / len(each))
    assert found.shape == (len(ids),)


def test_steering_moves_every_steered_block_by_the_strength():
    directions = made_directions()

    moved = directions.steering(-0.5)

    assert set(moved) == set(directions.steered)
    for layer, vector in moved.items():
        length = 0.5 * directions.honesty.halves[layer]
        along = float(vector.numpy() @ directions.honesty.vectors[layer])
        assert along == pytest.approx(-length, abs=1e-5)


def test_a_strength_of_0_steers_nothing():
    assert made_directions().steering(0) == {}


@given(st.integers(1, 200))
def test_blocks_are_shares_of_the_depth_and_never_none(blocks):
    steered = blocks_between(blocks, DirectionSettings().steered)
    monitored = blocks_between(blocks, DirectionSettings().monitored)

    for layers in (steered, monitored):
        assert layers
        assert list(layers) == list(range(layers[0], layers[-1] + 1))
        assert layers[0] >= 0
        assert layers[-1] < blocks


def test_of_32_blocks_those_of_the_papers_release_are_taken():
    settings = DirectionSettings()

    assert blocks_between(32, settings.steered) == tuple(range(15, 28))
    assert blocks_between(32, settings.monitored) == tuple(range(8, 23))


def test_too_few_statements_are_refused():
    with pytest.raises(TooFewLabelsError, match="too few for honesty"):
        fit_direction_set(
            tiny_models.model("llama"),
            dict.fromkeys(Trait, STATEMENTS[:2]),
            DirectionSettings(),
        )


def test_files_give_back_what_was_kept():
    directions = made_directions(seed=4)
    files = direction_probe_files(directions)

    again = load_probe(files, language_model=directions.language_model)

    assert isinstance(again, DirectionSet)
    for name in ("honesty", "confidence"):
        kept, read = getattr(directions, name), getattr(again, name)
        np.testing.assert_array_equal(kept.vectors, read.vectors)
        np.testing.assert_array_equal(kept.middles, read.middles)
        np.testing.assert_array_equal(kept.halves, read.halves)
        assert kept.accuracies == read.accuracies
    assert (again.steered, again.monitored) == ((1, 2), (0, 1))
    card = files.checked()
    assert (card.kind, card.layer) == (ProbeKind.DIRECTIONS, None)
    assert card.sizes["blocks"] == 3


def test_directions_never_serve_another_model():
    files = direction_probe_files(made_directions())

    with pytest.raises(ProbeMismatchError, match="was fitted for the language model"):
        load_probe(files, language_model="f" * 64)


@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        ({"steered": [3]}, {}),
        ({"steered": []}, {}),
        ({"monitored": [0.5]}, {}),
        ({"monitored": "all"}, {}),
        ({}, {"width": 31}),
        ({}, {"blocks": 2}),
        ({}, {"blocks": 0}),
    ],
)
def test_a_card_that_does_not_fit_its_weights_is_refused(settings, sizes):
    files = direction_probe_files(made_directions())
    card = files.parsed()
    forged = replace(
        card, settings={**card.settings, **settings}, sizes={**card.sizes, **sizes}
    )
    damaged = ProbeFiles("forged", card_bytes(forged, files.weights), files.weights)

    with pytest.raises(ProbeFileError, match="forged cannot be used"):
        load_probe(damaged, language_model=card.language_model)


def test_weights_that_are_no_numbers_are_refused():
    directions = made_directions()
    directions.honesty.middles[1] = np.nan

    with pytest.raises(ProbeFileError, match="not finite"):
        load_probe(
            direction_probe_files(directions),
            language_model=directions.language_model,
        )
