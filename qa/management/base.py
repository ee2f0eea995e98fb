"""Shared by the commands: errors, argument types, fit options and output files."""

import argparse
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.exceptions import NescioError
from probes.reranker.scoring import MAX_TOKENS, MIN_TOKENS
from qa.training.labelled_questions import Questions


class Command(BaseCommand):
    """A command that reports a NescioError as a message and exits with code 2."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error

    def console(self, *, wrap: bool = False) -> Console:
        """Return a console on standard output; it wraps lines only if `wrap` is set."""
        return Console(file=self.stdout, highlight=wrap, soft_wrap=not wrap)  # type: ignore[arg-type]  # a text stream in all but name

    @property
    def errors(self) -> Console:
        return Console(file=self.stderr)  # type: ignore[arg-type]  # the same


Kind = tuple[
    Callable[[argparse.ArgumentParser], None], Callable[[Command, dict[str, Any]], None]
]


class KindsCommand(Command):
    """A command with several kinds, each with a function for its options and an action.

    The action's docstring is the kind's help text.
    """

    kinds: Mapping[str, Kind]
    metavar = "KIND"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parsers = parser.add_subparsers(
            dest="what", required=True, metavar=self.metavar
        )
        for name, (add, act) in self.kinds.items():
            about = " ".join((act.__doc__ or "").split())
            add(parsers.add_parser(name, help=about, description=about))

    def handle(self, *, what: str, **options: Any) -> None:
        require_directories(options.get("output"))
        require_files(options.get("json"))
        _, act = self.kinds[what]
        act(self, options)


# Argument types: each raises ArgumentTypeError for a value that it does not accept.


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def share(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return number


def above_zero(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text} is not a whole number") from error
        if number < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least:,}")
        if most is not None and number > most:
            raise argparse.ArgumentTypeError(f"{text} is more than {most:,}")
        return number

    return read


def find_asker(username: str) -> User:
    """Return the active user of that name, or without a name the first superuser."""
    active = User.objects.filter(is_active=True)
    if not username:
        found = active.filter(is_superuser=True).order_by("pk").first()
        remedy = "Name one with --as USER, or make one: manage.py createsuperuser"
        missing = "There is no superuser to ask as."
    else:
        found = active.filter(username=username).first()
        known = ", ".join(active.values_list("username", flat=True)[:10]) or "none"
        missing = f"There is no active user {username!r}."
        remedy = f"There are: {known}."
    if found is None:
        raise CommandError(f"{missing} {remedy}", returncode=2)
    return found


# Output files, checked before the work, which may take hours.


def require_files(*paths: Path | None) -> None:
    for path in filter(None, paths):
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                raise IsADirectoryError("it is a directory")
            _require_access(path if path.exists() else path.parent)


def require_directories(*paths: Path | None) -> None:
    for path in filter(None, paths):
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            _require_access(path)


def write_figures(path: Path, text: str) -> None:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text.rstrip()}\n", encoding="utf-8")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError at a path into an error of the command."""
    try:
        yield
    except OSError as error:
        msg = f"{path} can't be written: {error}. Name another path."
        raise CommandError(msg, returncode=2) from error


def _require_access(path: Path) -> None:
    if not os.access(path, os.W_OK):
        raise PermissionError("permission denied")


# Options of commands that fit probes and rerankers, and of their labelled questions.


_Options = Mapping[str, tuple[Callable[[str], float], str]]

# Keyed by the fields of `FitSettings`.
_PROBE: Final[_Options] = {
    "hidden": (int, "Width of the network's state (default 32)."),
    "projected": (int, "Width that activations are projected to (default 32)."),
    "dropout": (float, "Share dropped while fitting (default 0.5)."),
    "learning_rate": (float, "Default 0.002."),
    "weight_decay": (float, "Default 0.05."),
    "penalty": (float, "L2 penalty on a linear head's weights (default 0.3)."),
    "epochs": (int, "Maximum passes over the answers (default 60)."),
    "huber_weight": (float, "Huber loss weight (paper's lambda); 0 is cross-entropy."),
}
# Keyed by the fields of `RerankerSettings`.
_RERANKER: Final[_Options] = {
    "group": (
        # One positive note needs at least one negative to be compared with.
        whole(2),
        "Notes compared in one step, one of them positive (default 8).",
    ),
    "temperature": (above_zero, "Divides the scores in the loss (default 1)."),
    "learning_rate": (above_zero, "Peak rate (default 2e-5)."),
    "warm_up": (share, "Share of the steps with a rising rate (default 0.1)."),
    "clip": (above_zero, "Maximum gradient norm of a step (default 1)."),
    "batch": (positive, "Questions in one step (default 8)."),
    "epochs": (positive, "Maximum passes over the preferences (default 3)."),
    "patience": (positive, "Epochs without improvement before it stops (default 1)."),
    "max_tokens": (
        whole(MIN_TOKENS, MAX_TOKENS),
        "Maximum for question and note together (default 256).",
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
        help='JSON Lines: {"question": "...", "answers": ["..."]}, optionally with '
        '"notes": ["..."].',
    )  # fmt: skip
    add(
        "--knowledge-base", default="", metavar="SLUG",
        help="Knowledge base to search for notes if a question has none.",
    )  # fmt: skip
    add(
        "--as", dest="username", default="", metavar="USER",
        help="User who searches and limits the notes (default: the first superuser).",
    )  # fmt: skip
    add(
        "--notes", type=positive, default=notes, metavar="N",
        help=f"Maximum notes per question (default {notes}).",
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
