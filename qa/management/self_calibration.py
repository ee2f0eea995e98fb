"""`manage.py calibrate itself`: thresholds from the knowledge base's own questions."""

import argparse
from collections.abc import Mapping
from functools import partial
from typing import Any

from django.conf import settings

from qa.answers.asking import find_knowledge_base
from qa.calibration.self_calibration import UNANSWERABLE, Mode, calibrate_itself
from qa.calibration.self_words import words_of

from . import base
from .progress import Bars


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--knowledge-base", default="", metavar="SLUG",
        help="Which one; the oldest by default.",
    )  # fmt: skip
    add(
        "--target", type=base.share, metavar="SHARE",
        help="Largest share of wrong ones among the shown (default: the knowledge base's "
        "setting, 0.05 at first).",
    )  # fmt: skip
    add(
        "--unanswerable", type=base.share, default=UNANSWERABLE,
        metavar="SHARE",
        help="Assumed share of questions that nothing answers (default 0.5).",
    )  # fmt: skip
    add("--seed", type=int, default=0, help="Of the questions.")
    add("--activate", action="store_true", help="Let the new version decide at once.")


def calibrate(command: base.Command, options: Mapping[str, Any]) -> None:
    # Pulls in torch, which the help does without.
    from qa.inference.configured import load_writer  # noqa: PLC0415

    mode = Mode.ACTIVATE if options["activate"] else None
    with Bars(command.errors) as bars:
        kept = calibrate_itself(
            find_knowledge_base(options["knowledge_base"]),
            **{name: options[name] for name in ("target", "unanswerable", "seed")},
            mode=mode or Mode.PROPOSE,
            load_writer=load_writer if settings.LANGUAGE_SERVER_URL else None,
            on_progress=partial(bars.at, "questions"),
        )
    lines = [
        *words_of(kept).lines,
        f"  min_entry_answer = {kept.policy.min_entry_answer:g}",
        f"  min_answerability = {kept.policy.min_answerability:g}",
        *(f"Mind: {note}" for note in kept.notes),
    ]
    state = "and decides now" if kept.policy.is_active else "and waits to be activated"
    lines.append(f"{kept.policy} (version {kept.policy.pk}) is kept {state}.")
    command.console().print("\n".join(lines))
