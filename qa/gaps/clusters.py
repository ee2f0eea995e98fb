"""Incremental clustering of questions by meaning: leader clustering on unit vectors.

A question joins the cluster with the nearest centroid if it is within a radius;
otherwise it founds a new cluster (Hartigan: Clustering Algorithms, 1975, chapter 3). A
centroid is the mean direction of the cluster's members (spherical k-means; Dhillon,
Modha: Machine Learning 42, 2001). Centroids are read block by block, so memory use does
not grow with their number.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

RADIUS = 0.95
"""Greatest distance of a question to its cluster's centroid; Euclidean, unit vectors.

Chosen by `benchmarks/gap_clusters.py` for the bundled embedding model.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A block of existing clusters.

    Attributes:
        keys: int64 of shape (m,): the clusters' keys.
        middles: float32 of shape (m, dimensions), of unit length: their centroids.
    """

    keys: np.ndarray
    middles: np.ndarray


@dataclass(frozen=True, slots=True)
class Home:
    """The cluster that a question is assigned to.

    Attributes:
        cluster: The key of an existing cluster, or the number of a new one, counted
            from 0 in order of appearance.
        is_new: Whether this question or an earlier one of the same call founded it.
        distance: To the centroid at the time of assignment; 0 for a founder.
    """

    cluster: int
    is_new: bool
    distance: float


def gather(
    vectors: np.ndarray, blocks: Iterable[Block], *, radius: float = RADIUS
) -> list[Home]:
    """Assign each question to a cluster; return the assignments in order.

    The centroids of existing clusters stay fixed during the call; those of new clusters
    move with every question that joins.

    Args:
        vectors: float32 of shape (n, dimensions), of unit length.
        blocks: The existing clusters.
        radius: Greatest distance at which a question joins a cluster.
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
    """Return a cluster's centroid after others joined: float32, of unit length.

    Args:
        middle: The centroid before, of shape (dimensions,), of unit length.
        members: The number of members it stands for; at least 0.
        joined: Of shape (k, dimensions), of unit length, or sums of such vectors.
    """
    total = members * middle.astype(np.float64) + joined.sum(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(total))
    if length < np.finfo(np.float32).eps:  # opposite directions cancel out
        return middle
    result: np.ndarray = (total / length).astype(np.float32)
    return result


def most_central(vectors: np.ndarray) -> int:
    """Return the index of the vector nearest to the mean direction of all."""
    return int(np.argmax(vectors @ vectors.sum(axis=0)))


def _nearest(
    vectors: np.ndarray, blocks: Iterable[Block]
) -> tuple[np.ndarray, np.ndarray]:
    """Return key and distance of each vector's nearest centroid; -1 and inf if none."""
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
