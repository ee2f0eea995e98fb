"""Runs a study: `python -m studies NAME [...]`; without a name, lists the studies."""

import argparse
import os
import sys
from importlib import import_module
from typing import Final

import django
from django.db.utils import OperationalError

# The module of each study's command, and its description in the list.
STUDIES: Final = {
    "abstention": (
        "studies.abstention.command",
        "How well activations and other scores separate right answers from wrong ones.",
    ),
    "cbdr_reranker": (
        "studies.cbdr.reranker.command",
        "CBDR: what its reranker and its gate gain, each measured alone.",
    ),
    "cbdr_timing": (
        "studies.cbdr.timing.command",
        "CBDR, DH-ICL, CtrlA and log-probability: which decides best when to retrieve.",
    ),
    "ctrla_self_knowledge": (
        "studies.ctrla.self_knowledge",
        "CtrlA: whether the monitor separates answerable from unanswerable questions.",
    ),
    "ctrla_steering": (
        "studies.ctrla.steering",
        "CtrlA: whether honesty steering makes more of a model's choices true.",
    ),
    "ctrla_two_hop": (
        "studies.ctrla.two_hop.command",
        "CtrlA: the whole loop as a decider, on questions that need two entries.",
    ),
    "desks": (
        "studies.desks.command",
        "What help desks answer and refuse, from their own files, at each threshold.",
    ),
    "dh_icl": (
        "studies.dh_icl.command",
        "DH-ICL: what verdicts based on past questions are worth.",
    ),
    "headline": (
        "studies.headline.command",
        "All papers' headline tables with one model, in one report with verdicts.",
    ),
    "l2r": (
        "studies.l2r.command",
        "Learn to Refuse: its tables and figures beside the paper's.",
    ),
    "transfer": (
        "studies.transfer",
        "What unseen knowledge bases answer, before and after they calibrate themselves.",
    ),
    "verifier": (
        "studies.verifier",
        "How well the verifier finds the answering entry, on sets that it never saw.",
    ),
    "evaluate": (
        "qa.management.commands.evaluate",
        "`manage.py evaluate`, with the multiple-choice suites of Learn to Refuse.",
    ),
}


# Options of every study. They set environment variables, because Django reads its
# settings before a study parses its arguments.
_SETTINGS: Final = {
    "--model": "NESCIO_LANGUAGE_MODEL",
    "--device": "NESCIO_MODEL_DEVICE",
    "--precision": "NESCIO_MODEL_PRECISION",
}


_MODEL: Final = (
    "Every study takes --model (a directory, a hub name or bundled), --device (cpu, cuda "
    "or auto)\nand --precision (float32, bfloat16 or auto)."
)


def with_settings(arguments: list[str]) -> list[str]:
    """Set the model options in the environment and return the other arguments."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option, name in _SETTINGS.items():
        parser.add_argument(option, dest=name)
    known, rest = parser.parse_known_args(arguments)
    os.environ.update({k: v for k, v in vars(known).items() if v is not None})
    return rest


def main(arguments: list[str]) -> None:
    name = arguments[1] if len(arguments) > 1 else ""
    if name not in STUDIES:
        wanted = name not in ("", "-h", "--help", "help")
        if wanted:
            sys.stderr.write(f"There is no study {name!r}.\n")
        width = max(map(len, STUDIES))
        lines = [f"  {known:{width}}  {text}" for known, (_, text) in STUDIES.items()]
        text = "\n".join(
            ["usage: python -m studies NAME [...]", "", *lines, "", _MODEL]
        )
        (sys.stderr if wanted else sys.stdout).write(f"{text}\n")
        sys.exit(2 if wanted else 0)
    arguments = with_settings(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    django.setup()
    # These imports need Django's settings.
    from accounts.acting import unrestricted  # noqa: PLC0415
    from qa.evaluation.suites.registry import register_suites  # noqa: PLC0415
    from studies.l2r.suites import MULTIPLE_CHOICE  # noqa: PLC0415

    register_suites(MULTIPLE_CHOICE)
    try:
        with unrestricted("studies"):
            command = import_module(STUDIES[name][0]).Command()
            command.run_from_argv(["python -m studies", *arguments[1:]])
    except OperationalError as error:
        sys.exit(
            f"The database did not answer: {error}. The embedded one runs while "
            "`make up` does; DATABASE_URL names another one."
        )


if __name__ == "__main__":
    main(sys.argv)
