"""Options of commands that fit rerankers."""

import argparse
from collections.abc import Callable, Mapping
from typing import Any, Final

from probes.reranker.card import LEAST_TOKENS, MOST_TOKENS
from qa.management.arguments import above_zero, positive, share, whole

_OPTIONS: Final[Mapping[str, tuple[Callable[[str], float], str]]] = {
    "group": (
        # Without a negative there is nothing to compare.
        whole(2),
        "Notes compared in one step, one of them positive (default 8).",
    ),
    "temperature": (above_zero, "Divides the scores in the loss (default 1)."),
    "learning_rate": (above_zero, "At its highest (default 2e-5)."),
    "warm_up": (share, "Share of the steps in which it rises (default 0.1)."),
    "clip": (above_zero, "Largest norm of a step's gradient (default 1)."),
    "batch": (positive, "Questions in one step (default 8)."),
    "epochs": (positive, "Most passes over the preferences (default 3)."),
    "patience": (positive, "Epochs without a better held-out ranking (default 1)."),
    "max_tokens": (
        whole(LEAST_TOKENS, MOST_TOKENS),
        "Of question and note together (default 256).",
    ),
}


def add_fitting(parser: argparse.ArgumentParser) -> None:
    """Declare what a reranker begins with and how it is fitted."""
    parser.add_argument(
        "--base",
        default="bundled",
        metavar="MODEL",
        help="A cross-encoder or embedding model, by directory or name, with safetensors "
        "weights (default: the bundled embedder's weights, with a new output).",
    )
    parser.add_argument("--bf16", action="store_true", help="Compute in bfloat16.")
    for name, (kind, what) in _OPTIONS.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=kind, metavar="N", help=what)


def fitting_of(options: Mapping[str, object]) -> dict[str, Any]:
    """Return what was given of it, by the names of `RerankerSettings`."""
    given = {name: value for name in _OPTIONS if (value := options[name]) is not None}
    return {**given, "bf16": options["bf16"], "seed": options["seed"]}
