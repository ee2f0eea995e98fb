"""Options of commands that fit probes of activations."""

import argparse
from collections.abc import Mapping
from json import dumps
from pathlib import Path
from typing import Any, Final

from probes.cards import Json, ProbeFiles
from qa.management.figures_file import (
    require_directories,
    require_files,
    write_figures,
    writing,
)

_OPTIONS: Final[Mapping[str, tuple[type, str]]] = {
    "hidden": (int, "Width of the network's state (default 32)."),
    "projected": (int, "Width that activations are projected to (default 32)."),
    "dropout": (float, "Share dropped while fitting (default 0.5)."),
    "learning_rate": (float, "Default 0.002."),
    "weight_decay": (float, "Default 0.05."),
    "penalty": (float, "On a linear head's squared weights (default 0.3)."),
    "epochs": (int, "Most passes over the answers (default 60)."),
    "huber_weight": (float, "The paper's lambda; 0 is plain cross-entropy."),
}


def add_fitting(parser: argparse.ArgumentParser) -> None:
    """Declare how probes are fitted; what is not given stays as it is by default."""
    for name, (kind, what) in _OPTIONS.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=kind, metavar="N", help=what)


def fitting_of(options: Mapping[str, object]) -> dict[str, Any]:
    """Return what was given of it, by the names of `FitSettings`."""
    return {name: value for name in _OPTIONS if (value := options[name]) is not None}


def add_keeping(parser: argparse.ArgumentParser) -> None:
    """Declare what becomes of the fitted probe and its figures."""
    parser.add_argument("--note", default="", help="Kept with the probe.")
    parser.add_argument(
        "--promote", action="store_true", help="Put the probe in force at once."
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="Also write its files there."
    )
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="Also write the figures there."
    )


def require_kept(options: Mapping[str, Any]) -> None:
    """See that `write_kept` can write where the options say."""
    require_directories(options["output"])
    require_files(options["json"])


def write_kept(
    files: ProbeFiles, metrics: Mapping[str, Json], options: Mapping[str, Any]
) -> None:
    """Write files and figures where the options say, if they do."""
    if directory := options["output"]:
        with writing(directory):
            files.write(directory)
    if path := options["json"]:
        write_figures(path, dumps(dict(metrics), indent=2))
