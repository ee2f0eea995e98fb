"""The result of one labelled question, and the scoring of drafts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol
from uuid import UUID

from kb.documents.models import KnowledgeBase
from qa.evaluation.metrics.text import contains_gold, exact_match, rouge_l, token_f1
from qa.pipeline.policy import DECLARED
from qa.pipeline.values import Outcome
from qa.policies.models import Policy

from .cases import Case, LabelledAnswer, plain_question

Parameter = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Judged(LabelledAnswer):
    """A labelled answer with its decision, further measures by name, and its wall time.

    The gate is "verbatim" for a word-for-word answer and "" for one by the model.
    """

    is_answered: bool
    gate: str = ""
    reason: str = ""
    measures: Mapping[str, float] = field(default_factory=dict)
    milliseconds: float = 0.0
    model_milliseconds: float = 0.0
    answer_id: UUID | None = None


class Suite(Protocol):
    """A set of labelled questions; results are joined by id only."""

    @property
    def name(self) -> str:
        """The suite's name on the command line."""

    @property
    def protocol(self) -> str:
        """A description of the questions, the knowledge and any known leakage."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters that identify a run: data digest, limit, seed, ..."""

    @property
    def knowledge_base(self) -> KnowledgeBase | None:
        """The knowledge base that is asked, if there is one."""

    @property
    def policy(self) -> Policy | None:
        """The policy that decides, if there is one."""

    @property
    def case_ids(self) -> Sequence[str]:
        """The unique ids of the questions, in the order in which they are asked."""

    def judge(self, case_id: str) -> Judged:
        """Ask one question and judge its outcome."""


def thresholds_of(policy: Policy | None) -> dict[str, Any] | None:
    if policy is None:
        return None
    values = asdict(policy.as_value())
    return {name: values[name] for name in DECLARED}


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft answer, shown or not; `short` is "" unless the short answer is marked."""

    text: str
    cited: tuple[str, ...]
    short: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    is_correct: bool
    measures: Mapping[str, float]


Scoring = Callable[[Case, Draft], Score]


def draft_of(outcome: Outcome, key_of: Callable[[int], str]) -> Draft | None:
    """Return an outcome's draft, if any, with the cited entries named by `key_of`."""
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
    """Score a draft as right if it contains a reference, both normalised as for SQuAD.

    If the model marks a short answer, that must share a word with a reference too, so
    that it does not mislead the reader. For a question without an answer, every draft
    is wrong. Measures are those of the best reference, on the short answer if there is
    one.

    Rajpurkar et al., "SQuAD" (EMNLP 2016): normalisation, exact match, F1. Lin, "ROUGE"
    (2004): the longest common subsequence.
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
    said = draft.text.strip()
    return Score(
        is_correct=case.is_answerable is not False and said in case.references,
        measures={},
    )


def by_expectation(case: Case, draft: Draft) -> Score:
    said = plain_question(draft.text)
    wanted = [plain_question(part) for part in case.answer_contains]
    is_correct = (
        case.is_answerable is not False
        and (not wanted or any(part in said for part in wanted))
        and (not case.evidence or bool(set(case.evidence) & set(draft.cited)))
    )
    if not case.references:
        return Score(is_correct, {})
    scored = by_references(case, draft)
    return Score(is_correct and scored.is_correct, scored.measures)
