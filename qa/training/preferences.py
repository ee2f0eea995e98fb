"""Preferences of a language model: how each note moves its boundary probe.

References:
    CBDR, section 3.2, equation 5: the confidence shift. Here with a margin, since a
    shift around 0 is noise and not a preference.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from probes.abstention import AbstentionProbe
from probes.reranker.preferences import Preference
from qa.language_models.own_knowledge import OwnKnowledgeForm

from .boundary_prompts import prompts_of, states_of
from .labelled_questions import LabelledQuestion

MARGIN: Final = 0.005
MOST: Final = 5


@dataclass(frozen=True, slots=True)
class Shifts:
    """How much surer each note of a question makes the model.

    Attributes:
        alone: Confidence in [0, 1] without notes.
        shifts: For each note Conf(question + note) - Conf(question), in [-1, 1].
    """

    asked: LabelledQuestion
    alone: float
    shifts: tuple[float, ...]

    def helping(self, margin: float) -> list[str]:
        """Return the notes that move it up by more than `margin`, the best first."""
        ranked = sorted(zip(self.shifts, self.asked.notes, strict=True), reverse=True)
        return [note for shift, note in ranked if shift > margin]

    def harming(self, margin: float) -> list[str]:
        """Return the notes that move it down by more than `margin`, the worst first."""
        ranked = sorted(zip(self.shifts, self.asked.notes, strict=True))
        return [note for shift, note in ranked if shift < -margin]


def shifts_of(
    form: OwnKnowledgeForm,
    probe: AbstentionProbe,
    questions: Sequence[LabelledQuestion],
    *,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[Shifts]:
    """Ask the probe of each question without notes and with each of its own.

    Raises:
        TooManyTokensError: A question does not fit the model's context.
    """
    states = states_of(form, prompts_of(questions), probe.tap, on_progress=on_progress)
    values = iter(probe.confidences(states).tolist())
    return [
        Shifts(
            asked,
            alone := next(values),
            tuple(next(values) - alone for _ in asked.notes),
        )
        for asked in questions
    ]


def preferences_of(
    shifts: Sequence[Shifts], *, margin: float = MARGIN, most: int = MOST
) -> list[Preference]:
    """Return a preference for each question that some note helps and some note harms.

    Args:
        margin: How far a note has to move the confidence, in [0, 1].
        most: How many notes of each sort are kept, the farthest.
    """
    found = []
    for one in shifts:
        positives, negatives = one.helping(margin), one.harming(margin)
        if positives and negatives:
            found.append(
                Preference(
                    one.asked.question,
                    tuple(positives[:most]),
                    tuple(negatives[:most]),
                )
            )
    return found
