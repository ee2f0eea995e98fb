"""Questions and outcomes, made up for the comparison's tests."""

from qa.evaluation.cases import Case
from studies.cbdr.timing.asking import Cost
from studies.cbdr.timing.outcomes import Outcome
from studies.cbdr.timing.questions import Part, TimedQuestion


def make_asked(
    number: int,
    *,
    part: Part = Part.TEST,
    data_set: str = "nq-open",
    is_answerable: bool = True,
) -> TimedQuestion:
    case = Case(
        id=f"{data_set}:{number}",
        question=f"what is number {number}",
        is_answerable=is_answerable,
        references=(f"answer {number}",) if is_answerable else (),
    )
    return TimedQuestion(data_set, case, part)


def make_outcome(
    number: int,
    known_probability: float | None,
    alone: bool,
    with_notes: bool,
    *,
    part: Part = Part.TEST,
    passes: bool = True,
    verbatim: bool | None = None,
    is_answerable: bool = True,
    decided: Cost | None = None,
    drafted: Cost | None = None,
) -> Outcome:
    return Outcome(
        asked=make_asked(number, part=part, is_answerable=is_answerable),
        known_probability=known_probability,
        alone=alone,
        with_notes=with_notes,
        passes=passes,
        verbatim=verbatim,
        decided=decided or Cost(10.0, 1.0, 20.0, 0.0),
        drafted=drafted,
    )
