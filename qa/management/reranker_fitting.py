"""Options of commands that fit rerankers."""

import argparse
from collections.abc import Mapping
from typing import Any, Final

_OPTIONS: Final[Mapping[str, tuple[type, str]]] = {
    "group": (int, "Notes compared in one step, one of them positive (default 8)."),
    "temperature": (float, "Divides the scores in the loss (default 1)."),
    "learning_rate": (float, "At its highest (default 2e-5)."),
    "warm_up": (float, "Share of the steps in which it rises (default 0.1)."),
    "clip": (float, "Largest norm of a step's gradient (default 1)."),
    "batch": (int, "Questions in one step (default 8)."),
    "epochs": (int, "Most passes over the preferences (default 3)."),
    "patience": (int, "Epochs without a better held-out ranking (default 1)."),
    "max_tokens": (int, "Of question and note together (default 256)."),
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
