"""Whether a draft is right: by references, by a label, or by what a case asks for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from qa.pipeline.outcome import Outcome

from .cases import Case
from .metrics.text import contains_gold, exact_match, rouge_l, token_f1


@dataclass(frozen=True, slots=True)
class Draft:
    """What was or would have been said, shown or not.

    Attributes:
        cited: The suite's keys of the entries that it rests on.
        short: The words of it that answer; "" where they are not told from the rest.
    """

    text: str
    cited: tuple[str, ...]
    short: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """Whether a draft is right, and how right by further measures."""

    is_correct: bool
    measures: Mapping[str, float]


Scoring = Callable[[Case, Draft], Score]


def draft_of(outcome: Outcome, key_of: Callable[[int], str]) -> Draft | None:
    """Return what an outcome's draft says; None where no draft was written.

    Args:
        key_of: The suite's key of an entry, from the entry's id.
    """
    generation = outcome.generation
    if generation is None:
        if not outcome.answered:
            return None
        ids: Sequence[int] = [citation.entry_id for citation in outcome.citations]
        return Draft(outcome.answer, tuple(map(key_of, ids)))
    if not generation.answer.strip():
        return None
    ids = [citation.entry_id for citation in outcome.citations] or [
        outcome.evidence[number - 1].entry_id
        for number in generation.cited
        if 1 <= number <= len(outcome.evidence)
    ]
    return Draft(
        generation.answer, tuple(map(key_of, ids)), generation.short_answer.strip()
    )


def by_references(case: Case, draft: Draft) -> Score:
    """Right if a reference stands in the draft, both normalised as for SQuAD.

    The words that the model marks in it must share one with a reference too: whoever
    reads them first may not be misled. To a question without an answer every draft is
    wrong. Measures are those of the reference that fits best, on the marked words where
    there are any.

    References:
        Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text"
        (EMNLP 2016): normalisation, exact match, F1.
        Lin, "ROUGE" (2004): the longest common subsequence.
    """
    if case.is_answerable is False or not case.references:
        return Score(is_correct=False, measures={})
    said = draft.short or draft.text
    f1 = token_f1(said, case.references)
    return Score(
        is_correct=contains_gold(draft.text, case.references) == 1.0 and f1 > 0,
        measures={
            "exact_match": exact_match(said, case.references),
            "f1": f1,
            "rouge_l": rouge_l(said, case.references),
        },
    )


def by_label(case: Case, draft: Draft) -> Score:
    """Right if the draft is one of the references, word for word."""
    said = draft.text.strip()
    return Score(
        is_correct=case.is_answerable is not False and said in case.references,
        measures={},
    )


def by_expectation(case: Case, draft: Draft) -> Score:
    """Right if the draft holds and cites what the case asks for."""
    said = _plain(draft.text)
    wanted = [_plain(part) for part in case.answer_contains]
    is_correct = (
        case.is_answerable is not False
        and (not wanted or any(part in said for part in wanted))
        and (not case.evidence or bool(set(case.evidence) & set(draft.cited)))
    )
    if not case.references:
        return Score(is_correct, {})
    scored = by_references(case, draft)
    return Score(is_correct and scored.is_correct, scored.measures)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
