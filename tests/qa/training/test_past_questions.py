"""Past questions come with reviews, change with them, and go with them."""

import pytest

from jobs.run import run_job
from jobs.services import enqueue
from kb.embedding.services import active_model, embed_question
from qa.models import PastQuestion, Review
from qa.training.past_questions import KIND
from tests.factories import make_entry, make_knowledge_base
from workers.registry import HANDLERS

from .reviewed import judge, make_draft

pytestmark = pytest.mark.django_db


def kept():
    job = enqueue(KIND, {})
    run_job(job.pk, HANDLERS)
    job.refresh_from_db()
    assert job.state == "succeeded", job.error
    return dict(PastQuestion.objects.values_list("answer_id", "can_be_answered"))


@pytest.fixture
def entry():
    return make_entry()


def test_what_experts_said_of_answers_and_refusals_is_kept(entry):
    right, wrong = make_draft(entry), make_draft(entry)
    due, undue = make_draft(entry, answered=False), make_draft(entry, answered=False)
    judge(right, is_right=True)
    judge(wrong, is_right=False)
    judge(due, is_right=False)
    judge(undue, is_right=True)
    make_draft(entry)  # which nobody judged

    assert kept() == {
        right.pk: True, wrong.pk: False, due.pk: True, undue.pk: False,
    }  # fmt: skip


def test_it_holds_what_the_model_said_then(entry):
    answer = make_draft(entry, language_model="f" * 64)
    judge(answer, is_right=True)
    kept()

    row = PastQuestion.objects.get()

    assert (row.verdict, row.language_model) == (0.7, "f" * 64)
    assert row.embedding_model == active_model()


def test_a_corrected_verdict_is_kept_as_the_model_gave_it(entry):
    answer = make_draft(entry)
    answer.signals += [{"gate": "soft_refusal", "name": "own_verdict", "value": 0.2}]
    answer.save(update_fields=["signals"])
    judge(answer, is_right=True)
    kept()

    assert PastQuestion.objects.get().verdict == 0.2


def test_a_review_that_is_taken_back_takes_it_along(entry):
    review = judge(make_draft(entry), is_right=True)
    assert kept()
    review.state, review.reviewed_at = Review.State.WAITING, None
    review.save()

    assert kept() == {}


def test_a_judgement_that_changes_changes_it(entry):
    review = judge(make_draft(entry), is_right=True)
    kept()
    review.correctness = Review.Grade.NOT
    review.save()

    assert kept() == {review.answer_id: False}


def test_what_falls_short_of_the_policy_is_no_right_answer(entry):
    answer = make_draft(entry)
    review = judge(answer, is_right=True)
    review.falls_short = True
    review.save()

    assert kept() == {answer.pk: bool(review.is_right_to_show)} == {answer.pk: False}


def test_two_experts_who_do_not_agree_teach_nothing(entry):
    answer = make_draft(entry)
    judge(answer, is_right=True)
    judge(answer, is_right=False, second=True)

    assert kept() == {}


def test_evaluations_are_no_past_questions(entry):
    judge(make_draft(entry, channel="evaluation"), is_right=True)

    assert kept() == {}


def test_the_nearest_of_the_same_model_are_found_first(entry):
    for question in ("What does a new card cost?", "Who won the world cup in 2014?"):
        answer = make_draft(entry, question=question, language_model="a")
        judge(answer, is_right=True)
    judge(make_draft(entry, language_model="another"), is_right=True)
    kept()
    vector = embed_question("What is the price of a new card?")

    found = PastQuestion.objects.nearest_to(
        vector.values.tolist(),
        knowledge_base_id=make_knowledge_base().pk,
        embedding_model_id=vector.model_id,
        language_model="a",
    ).select_related("answer")

    assert [row.answer.question for row in found] == [
        "What does a new card cost?", "Who won the world cup in 2014?",
    ]  # fmt: skip
    assert 0 < found[0].distance < found[1].distance <= 2


def test_a_run_that_finds_nothing_new_embeds_nothing(
    entry, django_assert_max_num_queries
):
    for _ in range(3):
        judge(make_draft(entry), is_right=True)
    first = kept()
    before = list(PastQuestion.objects.values_list("pk", "labelled_at"))

    with django_assert_max_num_queries(40):
        assert kept() == first
    assert list(PastQuestion.objects.values_list("pk", "labelled_at")) == before
