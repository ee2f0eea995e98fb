"""Judging questions from their history, with each choice of examples and labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kb.text.terms import asks_about_now
from probes.language_model import WhiteBoxModel
from qa.evaluation.cases import sample
from qa.evaluation.metrics.text import normalised
from qa.evaluation.suites.options import find_file
from qa.evaluation.suites.question_sets import read_open_domain
from qa.inference.by_history import EXAMPLES_SHOWN, HistoryForm
from qa.inference.closed_book_form import ClosedBookForm
from qa.inference.label_judge import LabelJudgement, LabelPair
from qa.pipeline.history import KnownQuestion
from studies.cbdr.timing.questions import Part, Sizes, TimedQuestion, select
from studies.study import OnProgress

SETS: Final = (
    "triviaqa", "nq-open", "webquestions", "popqa", "freshqa", "selfaware",
)  # fmt: skip
# History comes from these files; the judged questions come from other splits.
_ELSEWHERE: Final = {
    "webquestions": "webquestions/trainmodel.json",
    "nq-open": "nq_open/NQ-open.efficientqa.dev.1.1.jsonl",
}
# History of these sets comes from other questions of the same file.
_HALVED: Final = ("triviaqa", "popqa")
_AT_ONCE: Final = 32


@dataclass(frozen=True, slots=True)
class Answered:
    """A question that the model answered closed-book.

    Attributes:
        is_known: Whether it answered correctly.
        log_probability: Mean natural log of its answer's tokens, in [-inf, 0].
    """

    data_set: str
    question: str
    is_known: bool
    log_probability: float

    @property
    def as_history(self) -> bool:
        """Whether it counts as known in a history."""
        return self.is_known and not asks_about_now(self.question)


def draw(
    data: Path, *, asked: int, history: int, seed: int
) -> tuple[list[TimedQuestion], list[TimedQuestion]]:
    """Return questions to judge, and others to make a history from.

    Args:
        asked: Questions of each of `SETS`.
        history: Questions of each of the history's four sources.
    """
    sizes = Sizes(asked=asked, teaching=history, helped=0.0, seed=seed)
    selection = select(data, SETS, sizes)
    judged = selection.of(Part.CALIBRATION, Part.TEST)
    judged_texts = {normalised(each.case.question) for each in judged}
    past = [a for a in selection.of(Part.TEACHING) if a.data_set in _HALVED]
    for name, pattern in _ELSEWHERE.items():
        file = find_file(name, data, pattern)
        _, cases = read_open_domain(name, file, is_answerable=True)
        cases = [
            case for case in cases if normalised(case.question) not in judged_texts
        ]
        for case in sample(cases, history, seed=seed):
            named = replace(case, id=f"{name}, other split:{case.id}")
            past.append(TimedQuestion(name, named, Part.TEACHING))
    return judged, past


def ask_each(
    form: ClosedBookForm,
    questions: Sequence[TimedQuestion],
    progress: OnProgress,
    what: str,
) -> list[Answered]:
    """Answer every question closed-book; the result is in the questions' order."""
    # Similar lengths share a batch, which keeps padding small.
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
    """Return each set's known questions and the first of its others, as many."""
    kept = []
    for name in dict.fromkeys(each.data_set for each in questions):
        own = [each for each in questions if each.data_set == name]
        known = [each for each in own if each.is_known]
        kept += [*known, *[each for each in own if not each.is_known][: len(known)]]
    return kept


# Every question is judged with each choice of examples, labels and correction.


class Shown(StrEnum):
    """The examples shown before a question."""

    NOTHING = "the instruction alone"
    FIXED = "fixed examples"
    PAST = "past questions"


@dataclass(frozen=True, slots=True)
class Way:
    """One way of judging. The correction needs examples."""

    labels: LabelPair
    shown: Shown
    is_corrected: bool


@dataclass(frozen=True, slots=True, eq=False)
class Judgements:
    """The verdicts of every way on every question.

    Attributes:
        known: By way, the probability in [0, 1] that each question is known.
        share: Share of each question's nearest past questions that were known.
    """

    questions: Sequence[Answered]
    known: dict[Way, NDArray[np.float64]]
    share: NDArray[np.float64]

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Whether the model knows each question."""
        return np.array([each.is_known for each in self.questions])


_WAYS: Final = (Shown.NOTHING, Shown.FIXED, Shown.PAST)


def judge_each(
    model: WhiteBoxModel,
    questions: Sequence[Answered],
    history: Sequence[Answered],
    nearest: NDArray[np.intp],
    pairs: Sequence[LabelPair],
    progress: OnProgress,
) -> Judgements:
    """Judge every question in every way.

    Args:
        nearest: Positions in the history of each question's nearest past questions,
            nearest first, of shape (questions, examples).
    """
    past = [
        [KnownQuestion(history[i].question, history[i].as_history) for i in row]
        for row in nearest
    ]
    known: dict[Way, NDArray[np.float64]] = {}
    for labels in pairs:
        alone = HistoryForm(model, labels, examples=())
        fixed = HistoryForm(model, labels)
        for shown in _WAYS:
            form = alone if shown is Shown.NOTHING else fixed
            found: list[LabelJudgement] = []
            for own, asked in zip(past, questions, strict=True):
                progress(f"{labels}, {shown.value}", len(found), len(questions))
                examples = own if shown is Shown.PAST else ()
                found.append(form.judge(asked.question, examples))
            progress(f"{labels}, {shown.value}", len(found), len(questions))
            known[Way(labels, shown, False)] = np.array([j.uncorrected for j in found])
            if shown is not Shown.NOTHING:
                known[Way(labels, shown, True)] = np.array([j.known for j in found])
    share = np.array([np.mean([each.is_known for each in own]) for own in past])
    return Judgements(questions, known, share)


def nearest_of(
    questions: NDArray[np.float32], history: NDArray[np.float32]
) -> NDArray[np.intp]:
    """Return where each unit vector's nearest are in the history, nearest first."""
    order: NDArray[np.intp] = np.argsort(
        -(questions @ history.T), axis=1, kind="stable"
    )
    return order[:, :EXAMPLES_SHOWN]
