"""What honesty steering does to the truth of what a model finds likely.

TruthfulQA's MC1: of a question's options the one is chosen whose tokens are likeliest in
sum, as the data set's authors do it. The question is read, and every option scored,
steered; the examples before it are not.

References:
    Lin et al., "TruthfulQA" (ACL 2022); Liu et al., "CtrlA" (2024), figure 2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from probes.directions.sets import DirectionSet
from probes.language_model import WhiteBoxModel
from qa.evaluation.metrics.intervals import Rate, share
from qa.evaluation.metrics.paired import Difference, differences, mcnemar
from qa.evaluation.report.tables import TextTable, percent
from qa.inference.closed_book_form import ClosedBookForm
from studies.l2r.questions import ChoiceQuestion

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Strength:
    """What one strength came to, and against none on the same questions.

    Attributes:
        strength: As `DirectionSet.steering` takes it.
        right: Of the questions, those whose right option was likeliest.
        difference: From a strength of 0, with its paired bootstrap interval.
        p_value: McNemar's, exact, against 0.
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
    on_progress: Progress | None = None,
) -> dict[float, list[bool]]:
    """Return for each strength whether each question's right option was chosen."""
    form = ClosedBookForm(model)
    found: dict[float, list[bool]] = {strength: [] for strength in strengths}
    for number, question in enumerate(questions, start=1):
        asked = form.prompt_ids(question.question)
        options = [model.tokens.encode_text(f" {text}") for text in question.options]
        for strength, right in found.items():
            steering = directions.steering(strength)
            with model.turn():
                context = model.read(asked, form.prefix(), steering=steering)
                scored = model.score_all(options, context, steering=steering)
            likeliest = int(np.argmax([each.total for each in scored]))
            right.append(likeliest in question.correct)
        if on_progress:
            on_progress(number, len(questions))
    return found


def strengths_of(found: dict[float, list[bool]]) -> list[Strength]:
    """Compare every strength with that of 0, which must be among them."""
    plain = found[0.0]
    rows = np.arange(len(plain))
    everything = np.ones(len(plain), np.bool_)
    made = []
    for strength, right in sorted(found.items()):
        pair = tuple(share(np.array(flags), everything) for flags in (plain, right))
        (difference,) = differences([(pair[0], pair[1])], rows)
        made.append(
            Strength(
                strength,
                Rate(sum(right), len(right)),
                difference,
                mcnemar(plain, right).p_value,
            )
        )
    return made


def steering_table(made: Sequence[Strength]) -> TextTable:
    return TextTable(
        "TruthfulQA MC1 by likelihood, under honesty steering",
        ("strength", "right", "95 %", "against 0", "95 %", "McNemar p"),
        tuple(
            (
                f"{each.strength:+g}",
                percent(each.right.value),
                _interval(each.right.interval, signed=False),
                "-" if each.strength == 0 else _points(each.difference.value),
                "-" if each.strength == 0 else _interval(each.difference.interval, signed=True),
                "-" if each.strength == 0 else f"{each.p_value:.3f}",
            )
            for each in made
        ),
    )  # fmt: skip


def _points(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.1f}"


def _interval(bounds: tuple[float, float] | None, *, signed: bool) -> str:
    if bounds is None:
        return "-"
    sign = "+" if signed else ""
    return " to ".join(f"{100 * bound:{sign}.1f}" for bound in bounds)
