"""How well CtrlA's monitor separates answerable from unanswerable questions."""

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any

from qa.calibration.adaptive_thresholds import (
    monitor_auroc,
    self_knowledge_row,
    self_knowledge_table,
    watch,
)
from qa.evaluation.cases import Case, in_seeded_order
from qa.evaluation.suites.question_sets import read_selfaware
from qa.exceptions import EvaluationDataError
from qa.inference.monitored_writer import monitored_writer
from qa.management.base import positive
from studies.study import Claim, OnProgress, Outcome, Study, file_argument


class Command(Study):
    """`python -m studies ctrla_self_knowledge --data PATH`."""

    help = (
        "Answer equal numbers of SelfAware's answerable and unanswerable questions "
        "closed-book, monitored with the active directions, and print how many of each "
        "the monitor recognizes, at a threshold chosen on as many other questions. Exit "
        "code: 0, or 2 on failure."
    )

    def declare(self, parser: argparse.ArgumentParser) -> None:
        file_argument(
            parser, "SelfAware.json, its directory, or a directory of data sets."
        )
        parser.add_argument(
            "--questions",
            type=positive,
            default=50,
            help="Questions of each kind (default: 50).",
        )
        parser.add_argument(
            "--steering", type=float, nargs="+", default=[0.0, 0.3], metavar="N",
            help="Strengths of honesty steering (default: 0 0.3).",
        )  # fmt: skip

    def measure(self, options: dict[str, Any], on_progress: OnProgress) -> Outcome:
        _, cases = read_selfaware(options["data"])
        count, seed = options["questions"], options["seed"]
        chosen_by, tested = parted(cases, count, seed=seed)
        writer = monitored_writer()
        rows, claims = [], []
        for strength in options["steering"]:
            watched = [
                watch(
                    writer,
                    some,
                    steering=strength,
                    by_answer=False,
                    on_progress=partial(on_progress, f"{what}, steering {strength:g}"),
                )
                for what, some in (("calibration", chosen_by), ("test", tested))
            ]
            rows.append(self_knowledge_row(strength, *watched))
            value, interval = monitor_auroc(watched[1])
            claims.append(
                Claim(
                    f"CtrlA: the monitor separates answerable questions, steering {strength:g}",
                    "Table 6",
                    None if value is None else value - 0.5,
                    interval and (interval[0] - 0.5, interval[1] - 0.5),
                    len(watched[1]),
                    unit="AUROC",
                )
            )
        return Outcome(
            "Self-knowledge",
            {
                "questions": f"{count} of each kind; threshold chosen on {count} others",
                "seed": seed,
                "writer": writer.fingerprint[:12],
            },
            [self_knowledge_table(rows, ("answerable", "unanswerable"))],
            claims=claims,
        )


def parted(
    cases: Sequence[Case], count: int, *, seed: int
) -> tuple[list[Case], list[Case]]:
    """Return questions to choose a threshold on, and as many others to test it on.

    Args:
        count: Questions of each kind, answerable and unanswerable, in each part.

    Raises:
        EvaluationDataError: A kind has fewer than `2 * count` questions.
    """
    ordered = in_seeded_order(cases, seed)
    kinds = [
        [case for case in ordered if case.is_answerable is is_answerable]
        for is_answerable in (True, False)
    ]
    most = min(map(len, kinds)) // 2
    if count > most:
        raise EvaluationDataError(
            f"There are too few questions for {count:,} of each kind and as many others "
            f"to choose the threshold on: ask at most {most:,}."
        )
    return (
        [case for kind in kinds for case in kind[count : 2 * count]],
        [case for kind in kinds for case in kind[:count]],
    )
