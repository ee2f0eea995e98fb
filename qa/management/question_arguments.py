"""Options of commands that take labelled questions and notes for them."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qa.management.arguments import find_asker, positive
from qa.training.labelled_questions import Questions


def add_questions(parser: argparse.ArgumentParser) -> None:
    """Declare which questions are taken, and where their notes come from."""
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE",
        help='JSON Lines: {"question": "...", "answers": ["..."]}, and "notes": ["..."] '
        "where some are to be tried.",
    )  # fmt: skip
    parser.add_argument(
        "--knowledge-base", default="", metavar="SLUG",
        help="Search it for notes of the questions that bring none.",
    )  # fmt: skip
    parser.add_argument(
        "--as", dest="username", default="", metavar="USER",
        help="Who searches it, and so what may be a note; the first superuser by default.",
    )  # fmt: skip


def add_notes(parser: argparse.ArgumentParser, default: int) -> None:
    """Declare how many notes of a question are taken."""
    parser.add_argument(
        "--notes", type=positive, default=default, metavar="N",
        help=f"Of each question at most (default {default}).",
    )  # fmt: skip


def questions_of(options: Mapping[str, Any]) -> Questions:
    """Return what was asked for."""
    slug = options["knowledge_base"]
    asker = find_asker(options["username"]) if slug else None
    return Questions(options["files"], slug, asker, options.get("notes", 0))
