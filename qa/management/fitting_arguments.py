"""Options of commands that fit probes and rerankers, and of their labelled questions."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from probes.reranker.scoring import MAX_TOKENS, MIN_TOKENS
from qa.management.base import above_zero, find_asker, positive, share, whole
from qa.training.labelled_questions import Questions

_Options = Mapping[str, tuple[Callable[[str], float], str]]

# By the fields of `FitSettings`.
_PROBE: Final[_Options] = {
    "hidden": (int, "Width of the network's state (default 32)."),
    "projected": (int, "Width that activations are projected to (default 32)."),
    "dropout": (float, "Share dropped while fitting (default 0.5)."),
    "learning_rate": (float, "Default 0.002."),
    "weight_decay": (float, "Default 0.05."),
    "penalty": (float, "On a linear head's squared weights (default 0.3)."),
    "epochs": (int, "Most passes over the answers (default 60)."),
    "huber_weight": (float, "The paper's lambda; 0 is plain cross-entropy."),
}
# By the fields of `RerankerSettings`.
_RERANKER: Final[_Options] = {
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
        whole(MIN_TOKENS, MAX_TOKENS),
        "Of question and note together (default 256).",
    ),
}


def add_probe_fitting(parser: argparse.ArgumentParser) -> None:
    _add(parser, _PROBE)


def probe_fitting(options: Mapping[str, Any]) -> dict[str, Any]:
    return _given(options, _PROBE)


def add_reranker_fitting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--base",
        default="bundled",
        metavar="MODEL",
        help="A cross-encoder or embedding model, by directory or name, with safetensors "
        "weights (default: the bundled embedder's weights, with a new output).",
    )
    parser.add_argument("--bf16", action="store_true", help="Compute in bfloat16.")
    _add(parser, _RERANKER)


def reranker_fitting(options: Mapping[str, Any]) -> dict[str, Any]:
    always = {"bf16": options["bf16"], "seed": options["seed"]}
    return {**_given(options, _RERANKER), **always}


def add_questions(parser: argparse.ArgumentParser, *, notes: int) -> None:
    add = parser.add_argument
    add(
        "files", type=Path, nargs="+", metavar="FILE",
        help='JSON Lines: {"question": "...", "answers": ["..."]}, and "notes": ["..."] '
        "where some are to be tried.",
    )  # fmt: skip
    add(
        "--knowledge-base", default="", metavar="SLUG",
        help="Search it for notes of the questions that bring none.",
    )  # fmt: skip
    add(
        "--as", dest="username", default="", metavar="USER",
        help="Who searches it, and so what may be a note; the first superuser by default.",
    )  # fmt: skip
    add(
        "--notes", type=positive, default=notes, metavar="N",
        help=f"Of each question at most (default {notes}).",
    )  # fmt: skip


def get_questions(options: Mapping[str, Any]) -> Questions:
    slug = options["knowledge_base"]
    asker = find_asker(options["username"]) if slug else None
    return Questions(options["files"], slug, asker, options["notes"])


def _add(parser: argparse.ArgumentParser, declared: _Options) -> None:
    for name, (kind, what) in declared.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=kind, metavar="N", help=what)


def _given(options: Mapping[str, Any], declared: _Options) -> dict[str, Any]:
    return {name: options[name] for name in declared if options[name] is not None}
