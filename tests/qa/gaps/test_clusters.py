"""Questions gathered by meaning: what holds for any vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.gaps.clusters import RADIUS, Block, gather, most_central, moved

DIMENSIONS = 8


@st.composite
def unit_vectors(draw, most: int = 30):
    seed = draw(st.integers(0, 2**32 - 1))
    count = draw(st.integers(1, most))
    drawn = np.random.default_rng(seed).normal(size=(count, DIMENSIONS))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def as_blocks(middles: np.ndarray, size: int) -> list[Block]:
    keys = np.arange(len(middles), dtype=np.int64) + 100
    return [
        Block(keys[at : at + size], middles[at : at + size])
        for at in range(0, len(middles), size)
    ]


@given(unit_vectors(), unit_vectors(), st.floats(0.1, 1.9))
def test_who_joins_is_within_the_radius_and_nothing_else_is_nearer(
    questions, middles, radius
):
    homes = gather(questions, as_blocks(middles, 7), radius=radius)

    for question, home in zip(questions, homes, strict=True):
        distances = np.linalg.norm(middles - question, axis=1)
        assert home.distance <= radius
        if home.is_new:
            assert min(distances) >= home.distance - 1e-3
        else:
            assert home.distance == pytest.approx(min(distances), abs=1e-3)
            assert distances[home.cluster - 100] == pytest.approx(min(distances), abs=1e-3)  # fmt: skip


@given(unit_vectors(), unit_vectors())
def test_how_the_middles_are_cut_into_blocks_changes_nothing(questions, middles):
    whole = gather(questions, as_blocks(middles, 1_000))
    cut = gather(questions, as_blocks(middles, 1))

    assert [(h.cluster, h.is_new) for h in cut] == [
        (h.cluster, h.is_new) for h in whole
    ]


@given(unit_vectors())
def test_new_clusters_are_numbered_as_they_appear(questions):
    homes = gather(questions, [])

    assert all(home.is_new for home in homes)
    founded = list(dict.fromkeys(home.cluster for home in homes))
    assert founded == list(range(len(founded)))


@given(unit_vectors(), st.integers(0, 1_000))
def test_a_moved_middle_is_of_unit_length_and_never_farther_from_who_joined(
    joined, members
):
    middle = joined[0]

    found = moved(middle, members, joined)

    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-5)
    before, after = (joined @ middle).sum(), (joined @ found).sum()
    assert after >= before - 1e-3


def test_opposite_directions_leave_the_middle_where_it_is():
    middle = np.eye(1, DIMENSIONS, dtype=np.float32)[0]

    assert np.array_equal(moved(middle, 1, -middle[None]), middle)


def test_the_same_question_twice_is_one_cluster_and_an_unlike_one_another():
    first, other = np.eye(2, DIMENSIONS, dtype=np.float32)

    homes = gather(np.stack([first, other, first]), [])

    assert [home.cluster for home in homes] == [0, 1, 0]
    assert np.linalg.norm(first - other) > RADIUS


def test_the_most_central_is_the_one_between_the_others():
    angles = np.array([0.0, 0.4, 0.9])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    assert most_central(vectors) == 1
