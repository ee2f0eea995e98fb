"""The suite "golden": a knowledge base's golden set of reviewed questions."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Unpack

from django.contrib.auth.models import Group

from accounts.ids import digest
from accounts.roles import Role
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from qa.evaluation.cases import Case, as_row
from qa.evaluation.judging import Draft, Score, Suite, by_expectation
from qa.evaluation.knowledge import evaluation_user, given_or_empty
from qa.exceptions import EvaluationDataError
from qa.reviews.labels import (
    Part,
    ReviewedQuestion,
    group_of,
    part_of,
    reviewed_questions,
)

from .options import PROTOCOLS, SuiteOptions, refuse_others, sampled_suite

GOLDEN_NAME: Final = "golden"


def open_golden(**options: Unpack[SuiteOptions]) -> Suite:
    """Open the reviewed questions of the golden part, each with its asker's access.

    Oversampled strata are thinned by a digest, so that each question stands for equally
    many and shares in the run estimate those of all questions asked.
    """
    refuse_others(GOLDEN_NAME, options, frozenset({"knowledge_base"}))
    slug = options.get("knowledge_base", "")
    if not slug:
        raise EvaluationDataError(
            "The suite golden asks questions that experts judged; name their knowledge "
            "base: --knowledge-base SLUG."
        )
    knowledge_base = given_or_empty(slug)
    golden = [
        each
        for each in _asked_once(reviewed_questions(knowledge_base))
        if part_of(group_of(each.answer)) is Part.GOLDEN
    ]
    kept = thinned(golden)
    cases = _cases(kept, knowledge_base)
    if not cases:
        raise EvaluationDataError(
            f"No question in the golden set of {slug} is judged yet; a quarter of the "
            "judged questions belongs to it. Review some answers first."
        )
    judged = {
        str(each.answer.pk): (each.answer.text.strip(), each.is_right) for each in kept
    }

    def as_judged(case: Case, draft: Draft) -> Score:
        text, is_right = judged[case.id]
        if is_right is not None and text and draft.text.strip() == text:
            return Score(is_right, {})
        return by_expectation(case, draft)

    rows = [(case, as_row(case).get("as", "")) for case in cases]
    asked = [(c.id, c.question, c.is_answerable, c.evidence, who) for c, who in rows]
    suite = sampled_suite(
        GOLDEN_NAME,
        PROTOCOLS["golden"].format(slug=slug, left_out=len(golden) - len(kept)),
        knowledge_base,
        cases,
        as_judged,
        options,
        data=digest(json.dumps(asked)),
    )
    askers = {case.asker for case in cases if case.asker}
    suite.askers = {each: evaluation_user(each) for each in askers}
    return suite


def thinned(questions: Sequence[ReviewedQuestion]) -> list[ReviewedQuestion]:
    """Thin questions to equal weight, keeping each in proportion to its own."""
    most = max((each.weight for each in questions), default=0.0)
    return [each for each in questions if _chance(each) * most < each.weight]


def _chance(question: ReviewedQuestion) -> float:
    """Return a number in [0, 1), fixed for each question."""
    return int(digest("thinned", str(question.answer.pk))[:8], 16) / 2**32


def _asked_once(questions: Iterable[ReviewedQuestion]) -> list[ReviewedQuestion]:
    """Return each text once, with its newest label and the sum of its weights."""
    found: dict[str, ReviewedQuestion] = {}
    for each in questions:
        known = found.get(each.answer.question)
        weight = each.weight + (known.weight if known else 0.0)
        found[each.answer.question] = replace(known or each, weight=weight)
    return list(found.values())


def _cases(
    questions: Sequence[ReviewedQuestion], knowledge_base: KnowledgeBase
) -> list[Case]:
    ids = {pk for each in questions for pk in each.right}
    rows = Entry.objects.filter(pk__in=ids, knowledge_base=knowledge_base)
    there = set(rows.filter(state=Entry.State.VERIFIED).values_list("pk", flat=True))
    groups = _groups(questions)
    return [
        Case(
            id=str(each.answer.pk),
            question=each.answer.question,
            is_answerable=bool(each.right),
            evidence=tuple(str(pk) for pk in sorted(each.right & there)),
            asker=groups.get(each.answer.asker_id or 0, ()),
            group=group_of(each.answer),
        )
        for each in sorted(questions, key=lambda each: str(each.answer.pk))
        if not each.right or each.right & there
    ]


def _groups(questions: Iterable[ReviewedQuestion]) -> Mapping[int, tuple[str, ...]]:
    """Return {asker id: names of groups other than roles}, for askers who have any."""
    askers = {each.answer.asker_id for each in questions}
    rows = Group.objects.filter(user__in=askers).exclude(name__in=[*Role])
    found: dict[int, list[str]] = {}
    for user, name in rows.order_by("name").values_list("user", "name"):
        found.setdefault(user, []).append(name)
    return {user: tuple(names) for user, names in found.items()}
