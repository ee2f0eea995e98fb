"""Measure how well gap clustering recovers labelled intents, by radius.

    python -m benchmarks.gap_clusters data_full.json [--questions 3000] [--seed 0]

Reads CLINC150 (Larson et al.: An Evaluation Dataset for Intent Classification and
Out-of-Scope Prediction, EMNLP 2019), `{"train": [[question, intent], ...]}`, embeds a
seeded sample with the configured embedding model, clusters it in batches as the job
does, and prints for each radius the number of clusters, the adjusted Rand index,
homogeneity (few different intents in one gap), completeness (few gaps for one intent)
and V-measure, their harmonic mean.
"""

import argparse
import json
from pathlib import Path

import django
import numpy as np
from sklearn.metrics import (
    adjusted_rand_score,
    completeness_score,
    homogeneity_score,
    v_measure_score,
)

RADII = (0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05)
_BATCH = 200


def main() -> None:
    """Print one line per radius."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--questions", type=int, default=3_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    django.setup()
    from django.conf import settings

    from kb.embedding.embedder import load_embedder

    rows = json.loads(options.data.read_text())["train"]
    order = np.random.default_rng(options.seed).permutation(len(rows))
    chosen = [rows[at] for at in order[: options.questions]]
    vectors = load_embedder(settings.EMBEDDING_MODEL).encode([row[0] for row in chosen])
    intents = [row[1] for row in chosen]
    print(f"{len(chosen)} questions, {len(set(intents))} intents, seed {options.seed}")
    print("radius  clusters  adjusted Rand  homogeneity  completeness  V-measure")
    for radius in RADII:
        found = labels(vectors, radius)
        print(
            f"{radius:6.2f}  {len(set(found)):8d}  "
            f"{adjusted_rand_score(intents, found):13.3f}  "
            f"{homogeneity_score(intents, found):11.3f}  "
            f"{completeness_score(intents, found):12.3f}  "
            f"{v_measure_score(intents, found):9.3f}"
        )


def labels(vectors: np.ndarray, radius: float) -> list[int]:
    """Cluster the questions in batches; return the number of each one's cluster."""
    from qa.gaps.clusters import Block, gather, moved

    middles: list[np.ndarray] = []
    sizes: list[int] = []
    found: list[int] = []
    for at in range(0, len(vectors), _BATCH):
        batch, known = vectors[at : at + _BATCH], len(middles)
        there = [Block(np.arange(known), np.stack(middles))] if middles else []
        homes = gather(batch, there, radius=radius)
        numbers = np.array([home.cluster + known * home.is_new for home in homes])
        for number in sorted(set(numbers.tolist())):
            members = batch[numbers == number]
            if number == len(middles):
                middles.append(members[0])
                sizes.append(0)
            middles[number] = moved(middles[number], sizes[number], members)
            sizes[number] += len(members)
        found += numbers.tolist()
    return found


if __name__ == "__main__":
    main()
