"""The effect of honesty steering on the accuracy of TruthfulQA's MC1.

For each question, the option with the highest summed token log-probability is chosen,
as the data set's authors do it. Steering applies to the question and to every option,
but not to the examples before them.

References:
    Lin et al., "TruthfulQA" (ACL 2022); Liu et al., "CtrlA" (2024), figure 2.
"""

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from probes.directions.sets import DirectionSet
from probes.language_model import WhiteBoxModel
from qa.evaluation.metrics.intervals import Difference, Rate, mcnemar
from qa.evaluation.report.tables import TextTable, percent
from qa.inference.closed_book_form import ClosedBookForm
from qa.inference.monitored_writer import monitored_writer
from qa.management.base import positive
from studies.figures import bounds, points, share_difference
from studies.l2r.questions import ChoiceQuestion, read_truthfulqa
from studies.study import Claim, OnProgress, Outcome, Study, file_argument


class Command(Study):
    """`python -m studies ctrla_steering --data PATH`."""

    help = (
        "Choose TruthfulQA's options (MC1) by likelihood under several strengths of "
        "honesty steering, with the active directions, and compare each with no "
        "steering in a paired test. Exit code: 0, or 2 on failure."
    )

    def declare(self, parser: argparse.ArgumentParser) -> None:
        file_argument(
            parser,
            "mc_task_random.json, its directory, or a directory of data sets.",
        )
        parser.add_argument(
            "--strengths", type=float, nargs="+", metavar="N",
            default=(-1.0, -0.3, 0.0, 0.1, 0.3, 1.0),
            help="Strengths to compare with 0 (default: -1 -0.3 0 0.1 0.3 1).",
        )  # fmt: skip
        parser.add_argument("--limit", type=positive, help="Ask a seeded sample.")

    def measure(self, options: dict[str, Any], on_progress: OnProgress) -> Outcome:
        seed = options["seed"]
        data = read_truthfulqa(options["data"], several=False, seed=seed)
        writer = monitored_writer()
        ordered = sorted(data.questions, key=lambda question: question.id)
        count = min(options["limit"] or len(ordered), len(ordered))
        drawn = random.Random(seed).sample(ordered, count)  # noqa: S311  # no secret
        found = chosen_under(
            writer.model,
            writer.directions,
            drawn,
            sorted({0.0, *options["strengths"]}),
            on_progress=partial(on_progress, "questions"),
        )
        heading = {
            "questions": count,
            "seed": seed,
            "data": data.digest[:12],
            "writer": writer.fingerprint[:12],
        }
        made = strengths_of(found)
        return Outcome(
            "Honesty steering",
            heading,
            [steering_table(made)],
            claims=[*claims_of(made)],
        )


@dataclass(frozen=True, slots=True)
class Strength:
    """The result of one strength, compared with strength 0 on the same questions.

    Attributes:
        strength: As passed to `DirectionSet.steering`.
        right: Rate of questions whose likeliest option is right.
        difference: Change of that rate from strength 0, with its paired bootstrap
            interval.
        p_value: Of McNemar's exact test against strength 0.
    """

    strength: float
    right: Rate
    difference: Difference
    p_value: float


def chosen_under(
    model: WhiteBoxModel,
    directions: DirectionSet,
    questions: Sequence[ChoiceQuestion],
    strengths: Sequence[float],
    *,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> dict[float, list[bool]]:
    """Return for each strength whether the chosen option of each question is right."""
    form = ClosedBookForm(model)
    found: dict[float, list[bool]] = {strength: [] for strength in strengths}
    for number, question in enumerate(questions, start=1):
        prompt = form.prompt_ids(question.question)
        options = [model.tokens.encode_text(f" {text}") for text in question.options]
        for strength, right in found.items():
            steering = directions.steering(strength)
            with model.turn():
                context = model.read(prompt, form.prefix(), steering=steering)
                scored = model.score_all(options, context, steering=steering)
            likeliest = int(np.argmax([each.total for each in scored]))
            right.append(likeliest in question.correct)
        on_progress(number, len(questions))
    return found


def strengths_of(found: dict[float, list[bool]]) -> list[Strength]:
    """Compare every strength with strength 0, which must be among them."""
    plain = found[0.0]
    return [
        Strength(
            strength,
            Rate(sum(right), len(right)),
            share_difference(plain, right),
            mcnemar(plain, right).p_value,
        )
        for strength, right in sorted(found.items())
    ]


def claims_of(made: Sequence[Strength]) -> Iterator[Claim]:
    """Yield the gain of each positive strength over no steering."""
    for each in made:
        if each.strength > 0:
            yield Claim(
                f"CtrlA: honesty steering {each.strength:+g}, TruthfulQA MC1",
                "Figure 2",
                each.difference.value,
                each.difference.interval,
                each.right.total,
                "" if each.difference.interval else "No choice changed.",
            )


def steering_table(made: Sequence[Strength]) -> TextTable:
    return TextTable(
        "TruthfulQA MC1 by likelihood, under honesty steering",
        ("strength", "right", "95 %", "against 0", "95 %", "McNemar p"),
        tuple(
            (
                f"{each.strength:+g}",
                percent(each.right.value),
                bounds(each.right.interval),
                *(("-",) * 3 if each.strength == 0 else _against_none(each)),
            )
            for each in made
        ),
    )


def _against_none(one: Strength) -> tuple[str, str, str]:
    gained = one.difference
    return (
        points(gained.value, None),
        bounds(gained.interval, sign="+"),
        f"{one.p_value:.3f}",
    )
