"""Questions that experts or a golden set labelled: which, with what weight, in whose place."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.roles import Role
from kb.entries.models import Entry
from kb.entries.wordings import add_wordings
from qa.calibration.own_questions.choosing import NONE, Kind, Measured, choose
from qa.calibration.own_questions.drawing import (
    LIMIT,
    OwnQuestion,
    draw_questions,
    labelled_questions,
)
from qa.calibration.own_questions.measuring import measure
from qa.models import EvaluationResult, EvaluationRun, Review
from qa.policies.services import active_policy
from qa.reviews.labels import reviewed_questions
from qa.reviews.sample_models import ReviewSample, ReviewStratum
from tests.factories import make_entry, make_knowledge_base, make_user
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db

RIGHT: dict[str, Any] = {"completeness": 2, "correctness": 2, "truthfulness": 2}
WRONG: dict[str, Any] = {"completeness": 0, "correctness": 0, "truthfulness": 0}


def judged(question: str, *cited: Entry, number: int = 1, **fields: Any) -> Review:
    """Make a done review of an answer that cites `cited`, or of a refusal."""
    model = fields.pop("language_model", "")
    answer = fields.pop("answer", None) or make_answer(
        make_user(), question=question, cited=cited, language_model=model
    )
    return Review.objects.create(
        answer=answer,
        round=number,
        state=Review.State.DONE,
        reviewed_at=timezone.now(),
        **fields,
    )


def stratum(population: int, drawn: int) -> ReviewStratum:
    now = timezone.now()
    sample = ReviewSample.objects.create(
        knowledge_base=make_knowledge_base(),
        seed=1,
        hours=1,
        since=now - timedelta(days=1),
        until=now,
    )
    return ReviewStratum.objects.create(
        sample=sample, population=population, drawn=drawn
    )


def found(**options: bool) -> dict[str, tuple[Kind, set[int]]]:
    labelled = labelled_questions(make_knowledge_base(), **options)
    labels = {each.text: each.label for each in labelled}
    return {
        text: (label.kind, {entry.pk for entry in label.right})
        for text, label in labels.items()
        if label
    }


def test_a_review_says_what_answers_and_what_must_be_refused():
    card, fee = make_entry("A card costs 12 euros."), make_entry("No fee is due.")
    judged("right one?", card, **RIGHT)
    judged("rightly refused?", should_be_answered=False)
    judged("an entry that was wrong?", card, **WRONG)
    judged("wrongly refused, entry written?", should_be_answered=True, entry=fee)
    marked = judged("a wrong sentence, evidence marked?", card, language_model="m", **WRONG)  # fmt: skip
    marked.evidence_used = [marked.answer.evidence.get().pk]
    marked.save()

    assert found() == {
        "right one?": (Kind.REVIEWED, {card.pk}),
        "rightly refused?": (Kind.REVIEWED, set()),
        "an entry that was wrong?": (Kind.REVIEWED, set()),
        "wrongly refused, entry written?": (Kind.REVIEWED, {fee.pk}),
        "a wrong sentence, evidence marked?": (Kind.REVIEWED, {card.pk}),
    }


def test_what_says_nothing_of_entries_is_left_out():
    card, gone = make_entry("A card costs 12 euros."), make_entry("It was so.")
    judged("wrongly refused, nobody knows by what?", should_be_answered=True)
    judged("a wrong sentence?", card, language_model="m", **WRONG)
    judged("what answered is retired?", gone, **RIGHT)
    Entry.objects.filter(pk=gone.pk).update(state=Entry.State.RETIRED)
    first = judged("experts disagree?", card, **RIGHT)
    judged("", answer=first.answer, number=2, **WRONG)
    waiting = judged("nobody judged it?", card, **RIGHT)
    Review.objects.filter(pk=waiting.pk).update(state="waiting", reviewed_at=None)
    other = make_knowledge_base("loans")
    asked = make_answer(make_user(), question="another one's?")
    asked.knowledge_base = other
    asked.save()
    judged("", answer=asked, should_be_answered=False)

    assert found() == {}


def test_reviews_weigh_as_their_strata_and_one_by_hand_as_itself():
    card, answered, refused = make_entry("It is 12."), stratum(90, 2), stratum(10, 2)
    for number in (1, 2):
        judged(f"answered {number}?", card, stratum=answered, **RIGHT)
    judged("refused?", stratum=refused, should_be_answered=False)
    judged("by hand?", should_be_answered=False)

    labels = reviewed_questions(make_knowledge_base())

    weights = {label.answer.question: label.weight for label in labels}
    assert sum(weights.values()) == pytest.approx(4)
    # Only one of the second stratum is labelled, which stands for all ten.
    by_hand = weights["by hand?"]
    assert weights["answered 1?"] / by_hand == pytest.approx(45)
    assert weights["refused?"] / by_hand == pytest.approx(10)


def test_a_question_counts_by_its_newest_label_as_often_as_it_was_asked():
    card = make_entry("It is 12.")
    judged("how much?", should_be_answered=False)
    judged("how much?", card, **RIGHT)

    (only,) = labelled_questions(make_knowledge_base())

    assert only.entry == card
    assert only.label
    assert only.label.weight == 2


def test_the_newest_evaluation_of_its_own_questions_counts_after_reviews():
    base, card, asker = make_knowledge_base(), make_entry("It is 12."), make_user()
    answers = {
        name: make_answer(asker, question=name, channel="evaluation", cited=cited)
        for name, cited in {"right": (card,), "foreign": (), "unknown": ()}.items()
    }
    for ended in (timezone.now() - timedelta(days=1), timezone.now()):
        run = EvaluationRun.objects.create(
            suite="own", key=f"{ended}", state="finished", knowledge_base=base,
            policy=active_policy(base), total=3, finished_at=ended,
        )  # fmt: skip
        EvaluationResult.objects.bulk_create(
            EvaluationResult(
                run=run, case_id=name, answer=answer, is_answerable=name != "foreign",
                is_answered=name == "right", is_correct=name == "right" or None,
                milliseconds=1.0,
            )
            for name, answer in answers.items()
        )  # fmt: skip
    judged("asked", card, **RIGHT)

    assert found().keys() == {
        "asked"
    }  # what tests something must not choose it unasked
    assert found(with_evaluation=True) == {
        "asked": (Kind.REVIEWED, {card.pk}),
        "foreign": (Kind.EVALUATED, set()),
        "right": (Kind.EVALUATED, {card.pk}),
    }
    assert (
        next(each.text for each in labelled_questions(base, with_evaluation=True))
        == "asked"
    )


def test_each_labelled_question_takes_the_place_of_a_made_one():
    entry = make_entry("Call the hotline.", question="How do I block a card?")
    base = entry.knowledge_base

    def labelled(count: int) -> list[OwnQuestion]:
        return [OwnQuestion(f"q{n}", None, f"q{n}") for n in range(count)]

    half = draw_questions(base, seed=0, labelled=labelled(150))
    assert [each.text for each in half[:150]] == [f"q{n}" for n in range(150)]
    assert len(half) == 150 + 3 + 30  # of the entry, and of other trades
    assert len(draw_questions(base, seed=0, labelled=labelled(LIMIT))) == LIMIT


def test_labelled_questions_count_as_they_weigh_and_nothing_is_assumed_of_them():
    def of(chance: float, weight: float, *, is_right: bool) -> Measured:
        return Measured(
            Kind.REVIEWED, f"{chance}", chance, is_right, weight, is_answerable=is_right
        )

    right = [of(0.8 + n / 1000, 1.0, is_right=True) for n in range(100)]
    rare, usual = (of(0.7, weight, is_right=False) for weight in (1.0, 20.0))
    sure = of(0.6, 0.0, is_right=True)

    assert choose([*right, rare, sure], target=0.05).threshold <= 0.7
    assert 0.7 < choose([*right, usual, sure], target=0.05).threshold < NONE
    assert choose([*right, rare], target=0.05).answered_share.value == 1


@pytest.mark.verifier
def test_a_label_says_nothing_of_what_was_written_since():
    from qa.answers.sources import configured_verifier

    base = make_knowledge_base()
    question = "What does a replacement card cost?"
    judged(question, should_be_answered=False)
    asked = labelled_questions(base)
    kwargs: Any = {
        "knowledge_base": base,
        "policy": active_policy(base).as_value(),
        "verifier": configured_verifier(),
    }

    (nothing,), _ = measure(asked, **kwargs)
    make_entry("It costs 12 euros.", question=question)
    since, _ = measure(asked, **kwargs)
    Review.objects.update(reviewed_at=timezone.now())
    (shown,), _ = measure(labelled_questions(base), **kwargs)

    assert (nothing.probability, nothing.is_answerable) == (0, False)
    assert since == ()
    assert shown.probability > 0.5
    assert not shown.is_right


@pytest.mark.verifier
def test_a_confirmed_question_is_measured_as_if_it_were_new():
    from qa.answers.sources import configured_verifier

    base, entry = make_knowledge_base(), make_entry("A card is blocked in the app.")
    question = "my wallet with the card was stolen on the bus"
    judged(question, entry, **RIGHT)
    kwargs: Any = {
        "knowledge_base": base,
        "policy": active_policy(base).as_value(),
        "verifier": configured_verifier(),
    }
    (before,), _ = measure(labelled_questions(base), **kwargs)

    add_wordings(entry, [question], by=make_user(Role.SME))

    (after,), _ = measure(labelled_questions(base), **kwargs)
    assert before.probability < 0.5
    assert after.probability == pytest.approx(before.probability)
