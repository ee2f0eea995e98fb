"""Made-up answers whose activations tell whether they are right, by rank or by order."""

import numpy as np

from probes.abstention.probe import Labelled

WIDTH = 12


def by_level(count: int, seed: int) -> list[Labelled]:
    """Right answers lie a little higher in one dimension at every position."""
    random = np.random.default_rng(seed)
    rows = []
    for index in range(count):
        is_right = index % 3 > 0
        values = random.normal(size=(int(random.integers(3, 9)), WIDTH))
        values[:, 2] += 1.0 if is_right else -1.0
        rows.append(Labelled(values.astype(np.float32), is_right))
    return rows


def by_order(count: int, seed: int) -> list[Labelled]:
    """Right answers rise and then fall, wrong ones fall and rise: their means agree.

    Before them stands a position that tells nothing, as a prompt may.
    """
    random = np.random.default_rng(seed)
    rows = []
    for index in range(count):
        is_right = index % 2 == 0
        length = 2 * int(random.integers(2, 5))
        values = random.normal(scale=0.5, size=(length, WIDTH))
        wave = np.repeat([1.0, -1.0], length // 2)
        values[:, 2] += 2 * (wave if is_right else -wave)
        values = np.concatenate([random.normal(scale=0.5, size=(1, WIDTH)), values])
        rows.append(Labelled(values.astype(np.float32), is_right))
    return rows
