"""Questions that the model is asked by itself: those that are judged, and their history."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from qa.evaluation.metrics.text import normalised
from qa.evaluation.retrieval_timing.questions import Asked, Part, Sizes, select
from qa.evaluation.sampling import sample
from qa.evaluation.suites.files import find_file
from qa.evaluation.suites.open_domain import read_open_domain
from qa.language_models.own_knowledge import OwnKnowledgeForm
from qa.pipeline.timely import asks_about_now

SETS: Final = (
    "triviaqa", "nq-open", "webquestions", "popqa", "freshqa", "selfaware",
)  # fmt: skip
# Splits that nothing else is asked of, by the layout that they share.
_ELSEWHERE: Final = {
    "webquestions": "webquestions/trainmodel.json",
    "nq-open": "nq_open/NQ-open.efficientqa.dev.1.1.jsonl",
}
# Of these other questions of the same file are history.
_HALVED: Final = ("triviaqa", "popqa")
_AT_ONCE: Final = 32
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Answered:
    """A question that the model was asked by itself.

    Attributes:
        is_known: Whether it answered rightly.
        log_probability: Mean natural log of its answer's tokens, in [-inf, 0].
    """

    data_set: str
    question: str
    is_known: bool
    log_probability: float

    @property
    def as_history(self) -> bool:
        """Whether it counts as known once it is a past question."""
        return self.is_known and not asks_about_now(self.question)


def draw(
    data: Path, *, asked: int, history: int, seed: int
) -> tuple[list[Asked], list[Asked]]:
    """Return questions to judge, and others of which a history is made.

    Args:
        asked: How many of each of `SETS`.
        history: How many of each of the four sources of a history.

    Raises:
        EvaluationDataError: A file is missing or laid out otherwise.
    """
    sizes = Sizes(asked=asked, teaching=history, helped=0.0, seed=seed)
    selection = select(data, SETS, sizes)
    judged = selection.of(Part.CALIBRATION, Part.TEST)
    said = {normalised(each.case.question) for each in judged}
    past = [a for a in selection.of(Part.TEACHING) if a.data_set in _HALVED]
    for name, pattern in _ELSEWHERE.items():
        file = find_file(name, data, pattern)
        _, cases = read_open_domain(name, file, is_answerable=True)
        cases = [case for case in cases if normalised(case.question) not in said]
        for case in sample(cases, history, seed=seed):
            named = replace(case, id=f"{name}, other split:{case.id}")
            past.append(Asked(name, named, Part.TEACHING))
    return judged, past


def ask_each(
    form: OwnKnowledgeForm, questions: Sequence[Asked], progress: Progress, what: str
) -> list[Answered]:
    """Let the model answer every question by itself, in their order."""
    # Alike in length, so that little is padding.
    order = sorted(range(len(questions)), key=lambda i: len(questions[i].case.question))
    found: dict[int, Answered] = {}
    for start in range(0, len(order), _AT_ONCE):
        progress(what, start, len(order))
        places = order[start : start + _AT_ONCE]
        written = form.draft_each([questions[i].case.question for i in places])
        for place, each in zip(places, written, strict=True):
            own = questions[place]
            likely = each.log_probabilities
            found[place] = Answered(
                own.data_set,
                own.case.question,
                own.is_right(each.text.strip()),
                sum(likely) / len(likely) if likely else 0.0,
            )
    progress(what, len(order), len(order))
    return [found[place] for place in range(len(questions))]


def balanced(questions: Sequence[Answered]) -> list[Answered]:
    """Return the known questions of each set and as many others, the first of them."""
    kept = []
    for name in dict.fromkeys(each.data_set for each in questions):
        own = [each for each in questions if each.data_set == name]
        known = [each for each in own if each.is_known]
        kept += [*known, *[each for each in own if not each.is_known][: len(known)]]
    return kept
