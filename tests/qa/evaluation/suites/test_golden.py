"""The golden set as a suite: what is asked of it, for whom, and what is right."""

from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone

from kb.entries.states import retire_entry
from kb.models import Entry
from qa.evaluation.judging import Draft
from qa.evaluation.question_suite import AskedSuite
from qa.evaluation.suites.golden import thinned
from qa.evaluation.suites.registry import open_suite
from qa.exceptions import EvaluationDataError
from qa.models import Review
from qa.reviews.labels import Part, group_of, part_of, reviewed_questions
from tests.factories import make_curator, make_entries, make_knowledge_base, make_user
from tests.qa.answer_rows import make_answer
from tests.qa.calibration.own_questions.test_labelled import RIGHT, WRONG, stratum
from tests.qa.evaluation.opening import asked_suite

pytestmark = pytest.mark.django_db


@pytest.fixture
def golden_entries() -> list[Entry]:
    """Return three entries whose questions are of the golden part, and one that is not."""
    made = make_entries(
        [f"Card {number} costs {number} euros." for number in range(120)]
    )
    parts = {
        part: [e for e in made if part_of(f"entry {e.pk}") is part] for part in Part
    }
    return [*parts[Part.GOLDEN][:3], parts[Part.TRAINING][0]]


def judged(
    question: str,
    entry: Entry,
    asker: User | None = None,
    pk: UUID | None = None,
    **said: Any,
) -> Review:
    fields: dict[str, Any] = {"pk": pk} if pk else {}
    answer = make_answer(
        asker or make_user(), question=question, cited=(entry,), **fields
    )
    done = {"state": Review.State.DONE, "reviewed_at": timezone.now()}
    return Review.objects.create(answer=answer, **done, **said)


def opened() -> AskedSuite:
    return asked_suite("golden", knowledge_base=make_knowledge_base().slug)


def test_the_judged_questions_of_the_golden_part_are_asked(golden_entries):
    first, second, gone, other = golden_entries
    fraud = make_user(groups=["fraud-desk"])
    judged("What does card 1 cost?", first, fraud, **RIGHT)
    judged("Who made card 2?", second, **WRONG)
    judged("What did it cost?", gone, **RIGHT)
    judged("Not golden?", other, **RIGHT)
    retire_entry(entry_id=gone.pk, by=make_curator())

    suite = opened()

    cases = {case.question: case for case in suite.cases}
    assert cases.keys() == {"What does card 1 cost?", "Who made card 2?"}
    known, unknown = cases["What does card 1 cost?"], cases["Who made card 2?"]
    assert (known.is_answerable, known.evidence) == (True, (str(first.pk),))
    assert (unknown.is_answerable, unknown.evidence) == (False, ())
    asker = suite.askers[known.asker]
    assert Group.objects.get(name="fraud-desk") in asker.groups.all()
    assert asker != fraud


def test_a_draft_is_right_as_judged_or_by_the_entry_that_it_cites(golden_entries):
    first, second, *_ = golden_entries
    review = judged("What does card 1 cost?", first, **RIGHT)
    suite = opened()
    (case,) = suite.cases

    def is_right(draft: Draft) -> bool:
        return suite.scoring(case, draft).is_correct

    assert is_right(Draft(review.answer.text, ()))
    assert is_right(Draft("Other words.", (str(first.pk),)))
    assert not is_right(Draft("Other words.", (str(second.pk),)))


@pytest.mark.slow
def test_strata_of_which_more_were_drawn_are_thinned_to_equal_weight(golden_entries):
    entry = golden_entries[0]
    rare, common = stratum(40, 40), stratum(400, 40)
    for number in range(40):  # of fixed keys: they decide which are kept
        rare_key, common_key = UUID(int=number), UUID(int=100 + number)
        judged(f"Rare {number}?", entry, pk=rare_key, stratum=rare, **RIGHT)
        judged(f"Common {number}?", entry, pk=common_key, stratum=common, **RIGHT)

    kept = thinned(reviewed_questions(make_knowledge_base()))

    asked = [each.answer.question for each in kept]
    assert sum(text.startswith("Common") for text in asked) == 40
    assert 0 < sum(text.startswith("Rare") for text in asked) < 15
    assert {group_of(each.answer) for each in kept} == {f"entry {entry.pk}"}


def test_without_a_judged_question_it_says_what_to_do():
    slug = make_knowledge_base().slug

    with pytest.raises(EvaluationDataError, match="Review some answers"):
        open_suite("golden", knowledge_base=slug)
    with pytest.raises(EvaluationDataError, match="--knowledge-base SLUG"):
        open_suite("golden")
