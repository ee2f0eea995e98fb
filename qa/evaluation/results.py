"""What became of each labelled question."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter

from qa.models import Answer

from .cases import ANSWERED, REFUSED, Case

GENERATED = "generated"


@dataclass(frozen=True, slots=True)
class Result:
    """One case and its outcome.

    Attributes:
        is_correct: For an answer, whether it holds and cites what the case asks for;
            None for a refusal.
        seconds: Wall time of the whole question.
    """

    case: Case
    answer_id: str
    is_answered: bool
    gate: str
    reason: str
    text: str
    cited: tuple[str, ...]
    is_correct: bool | None
    milliseconds: Mapping[str, float]
    seconds: float

    @property
    def is_right(self) -> bool:
        """Whether it was refused or answered as it should be, and answered correctly."""
        if self.is_answered != self.case.is_answerable:
            return False
        return self.is_correct is not False

    @property
    def expected(self) -> str:
        """The case's expectation as one label, as far as it goes."""
        return _label(
            self.case.is_answerable, self.case.gate or "", self.case.reason or ""
        )

    @property
    def actual(self) -> str:
        """What happened as one label, no finer than the case's expectation."""
        return _label(self.is_answered, self.gate, self.reason)


def evaluate(
    cases: Iterable[Case],
    *,
    ask: Callable[[Case], Answer],
    key_of: Callable[[str], str],
) -> Iterator[Result]:
    """Ask every case and yield its result.

    Args:
        ask: Asks one case as the asker it names.
        key_of: The suite's key of an entry, from the entry's text.
    """
    for case in cases:
        begun = perf_counter()
        answer = ask(case)
        yield result_of(case, answer, key_of=key_of, seconds=perf_counter() - begun)


def result_of(
    case: Case, answer: Answer, *, key_of: Callable[[str], str], seconds: float
) -> Result:
    """Judge one decided answer by its case."""
    cited = answer.evidence.filter(role="cited").select_related("revision")
    keys = tuple(key_of(piece.revision.text) for piece in cited)
    is_answered = answer.outcome == Answer.Outcome.ANSWERED
    return Result(
        case=case,
        answer_id=str(answer.pk),
        is_answered=is_answered,
        gate=answer.gate,
        reason=answer.reason,
        text=answer.text,
        cited=keys,
        is_correct=_is_correct(case, answer.text, keys) if is_answered else None,
        milliseconds=answer.milliseconds,
        seconds=seconds,
    )


def _is_correct(case: Case, text: str, cited: Iterable[str]) -> bool:
    """Tell whether a shown answer is one: of an unanswerable question none ever is."""
    said = " ".join(text.casefold().split())
    wanted = [" ".join(part.casefold().split()) for part in case.answer_contains]
    return (
        case.is_answerable
        and (not wanted or any(part in said for part in wanted))
        and (not case.evidence or bool(set(case.evidence) & set(cited)))
    )


def _label(is_answered: bool, gate: str, reason: str) -> str:
    if is_answered:
        return f"{ANSWERED}: {gate or GENERATED}"
    return f"{REFUSED}: {gate or 'anywhere'}" + (f", {reason}" if reason else "")
