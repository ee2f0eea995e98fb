"""Estimates the time of a headline report from a few timed items of each kind."""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Final

from qa.inference.closed_book_form import ClosedBookForm
from qa.inference.policy_models import history_form
from qa.pipeline.history import KnownQuestion
from qa.pipeline.language_model import LanguageModel, Prompt
from qa.training.labels import piece_of

from .parts import Part, Work

_QUESTIONS: Final = (
    "Which river flows through the capital of Austria?",
    "Who wrote the novel that the film Blade Runner was made from?",
    "How long may a parcel wait at the counter before it is sent back?",
)
_NOTE: Final = (
    "A parcel that nobody collects is kept at the counter for ten days and is then sent "
    "back to the sender, who pays for neither way."
)
_OPTIONS: Final = (" the Danube", " the Rhine", " the Elbe", " the Po", " the Vistula")
_EXAMPLES: Final = 16


def seconds_of(
    language_model: LanguageModel, form: ClosedBookForm
) -> Mapping[Work, float]:
    """Return the seconds per item of each kind of work, the median of three items."""
    model, asking = form.model, history_form()
    past = [KnownQuestion(_QUESTIONS[n % 3], n % 2 == 0) for n in range(_EXAMPLES)]
    options = [model.tokens.encode_text(text) for text in _OPTIONS]

    def choose(question: str) -> None:
        with model.turn():
            context = model.read(form.prompt_ids(question, [_NOTE]), form.prefix())
            model.score_all(options, context)

    def answer_from_evidence(question: str) -> None:
        pieces = tuple(piece_of("", _NOTE) for _ in range(4))
        language_model.generate(Prompt(question, pieces, "en"))

    done: Mapping[Work, Callable[[str], object]] = {
        Work.ANSWER: lambda question: form.write_each([question]),
        Work.LOOK: lambda question: form.open(question, [_NOTE]),
        Work.JUDGE: lambda question: asking.judge(question, past),
        Work.GROUNDED: answer_from_evidence,
        Work.CHOICE: choose,
        # A monitored sentence of 64 tokens costs about as much as three short answers.
        Work.SEGMENT: lambda question: form.write_each([question] * 3),
    }
    return {kind: _seconds(one) for kind, one in done.items()}


def cost_of(part: Part, share: float, seconds: Mapping[Work, float]) -> float:
    """Return the seconds of language model work in a part, without fits."""
    return sum(count * seconds[kind] for kind, count in part.work(share).items())


def _seconds(one: Callable[[str], object]) -> float:
    one(_QUESTIONS[0])  # warms up what is read once and kept
    times = []
    for question in _QUESTIONS:
        began = time.perf_counter()
        one(question)
        times.append(time.perf_counter() - began)
    return median(times)
