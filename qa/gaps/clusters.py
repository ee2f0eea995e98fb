"""Questions of one meaning, gathered as they come: leader clustering on unit vectors.

A question joins the cluster whose middle is nearest, if it lies within a radius, or
founds one (Hartigan: Clustering Algorithms, 1975, chapter 3). A cluster's middle is the
mean direction of its members (spherical k-means; Dhillon, Modha: Machine Learning 42,
2001). Middles are read block by block, so memory does not grow with their number.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

RADIUS = 0.95
"""Greatest distance of a question to the middle of its cluster; Euclidean, unit vectors.

Chosen by `benchmarks/gap_clusters.py` for the bundled embedding model.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some of the clusters that are there.

    Attributes:
        keys: int64 of shape (m,): what each cluster is known by.
        middles: float32 of shape (m, dimensions), of unit length.
    """

    keys: np.ndarray
    middles: np.ndarray


@dataclass(frozen=True, slots=True)
class Home:
    """Where a question belongs.

    Attributes:
        cluster: The key of the one that it joins; of a new one the number, from 0 in
            order of appearance.
        is_new: Whether this question or an earlier one of the same call founded it.
        distance: To the middle as it was when the question came; 0 for a founder.
    """

    cluster: int
    is_new: bool
    distance: float


def gather(
    vectors: np.ndarray, blocks: Iterable[Block], *, radius: float = RADIUS
) -> list[Home]:
    """Return the home of each question, in order.

    The middles of clusters that are there stay as they are meanwhile; those of new ones
    move with every question that joins.

    Args:
        vectors: float32 of shape (n, dimensions), of unit length.
    """
    keys, distances = _nearest(vectors, blocks)
    homes: list[Home] = []
    sums: list[np.ndarray] = []
    for vector, key, distance in zip(vectors, keys, distances, strict=True):
        number, from_new = _nearest_sum(vector, sums)
        if min(distance, from_new) > radius:
            homes.append(Home(len(sums), True, 0.0))
            sums.append(vector.astype(np.float64))
        elif distance <= from_new:
            homes.append(Home(int(key), False, float(distance)))
        else:
            homes.append(Home(number, True, from_new))
            sums[number] += vector
    return homes


def moved(middle: np.ndarray, members: int, joined: np.ndarray) -> np.ndarray:
    """Return a cluster's middle after others joined: float32, of unit length.

    Args:
        middle: Of shape (dimensions,), of unit length.
        members: How many it stands for; at least 0.
        joined: Of shape (k, dimensions), of unit length, or sums of such vectors.
    """
    total = members * middle.astype(np.float64) + joined.sum(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(total))
    if length < np.finfo(np.float32).eps:  # opposite directions cancel out
        return middle
    result: np.ndarray = (total / length).astype(np.float32)
    return result


def most_central(vectors: np.ndarray) -> int:
    """Return the index of the vector that is nearest to the mean direction of all."""
    return int(np.argmax(vectors @ vectors.sum(axis=0)))


def _nearest(
    vectors: np.ndarray, blocks: Iterable[Block]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the key of the nearest middle and the distance to it, inf where none is."""
    keys = np.full(len(vectors), -1, dtype=np.int64)
    distances = np.full(len(vectors), np.inf)
    for block in blocks:
        if not len(block.keys):
            continue
        cosines = vectors @ block.middles.T
        best = cosines.argmax(axis=1)
        found = _distance(cosines[np.arange(len(vectors)), best])
        nearer = found < distances
        keys[nearer] = block.keys[best[nearer]]
        distances[nearer] = found[nearer]
    return keys, distances


def _nearest_sum(vector: np.ndarray, sums: Sequence[np.ndarray]) -> tuple[int, float]:
    if not sums:
        return -1, np.inf
    stacked = np.stack(sums)
    cosines = stacked @ vector / np.linalg.norm(stacked, axis=1)
    best = int(cosines.argmax())
    return best, float(_distance(cosines[best]))


def _distance(cosines: np.ndarray) -> np.ndarray:
    distances: np.ndarray = np.sqrt(np.maximum(2.0 - 2.0 * cosines, 0.0))
    return distances
