"""What the model knows by itself is found out for past questions, and nearest ones found."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone

from jobs.run import run_job
from jobs.services import enqueue
from qa.answers.sources import PastExamples, evidence_scope
from qa.inference.policy_models import load_closed_book_form
from qa.models import PastQuestion, Policy
from qa.pipeline.policy import RetrievalTiming, Scope
from qa.pipeline.values import Question
from qa.policies.services import ensure_default_policy, new_version
from qa.training.past_questions import KIND, answers_rightly
from tests.factories import make_audience, make_entry, make_knowledge_base, put_in_force
from tests.qa.pipeline.values import make_policy
from workers.registry import HANDLERS

from .reviewed import judge, make_draft

pytestmark = pytest.mark.django_db
# The bundled model knows both.
FRANCE, ITALY = "What is the capital of France?", "What is the capital of Italy?"


def kept():
    job = enqueue(KIND, {})
    run_job(job.pk, HANDLERS)
    job.refresh_from_db()
    assert job.state == "succeeded", job.error
    return job.result


def what_is_known():
    return dict(PastQuestion.objects.values_list("answer__question", "is_known"))


def draft(entry, question, said, **fields):
    answer = make_draft(entry, question=question, **fields)
    answer.generation = {"answer": said, "short_answer": said}
    answer.save(update_fields=["generation"])
    return answer


@pytest.fixture
def entry():
    return make_entry()


@pytest.fixture
def by_history(entry):
    """A policy in force that decides by past questions."""
    return put_in_force(
        new_version(
            ensure_default_policy(make_knowledge_base()),
            by=None,
            scope=Scope.ADAPTIVE,
            retrieval_timing=RetrievalTiming.HISTORY,
        )
    )


@pytest.mark.slow
def test_the_model_is_asked_by_itself_and_held_against_the_right_answer(
    entry, by_history
):
    judge(draft(entry, FRANCE, "Paris"), is_right=True)
    judge(draft(entry, "Who founded the Tarn bank?", "Ada Quill"), is_right=True)

    assert kept()["asked"] == 2
    assert what_is_known() == {FRANCE: True, "Who founded the Tarn bank?": False}


def test_the_ideal_answer_and_the_entry_of_a_wrong_one_hold_what_is_right(
    entry, by_history
):
    wrong = judge(draft(entry, FRANCE, "Lyon"), is_right=False)
    wrong.ideal_answer = "Paris"
    wrong.save()
    refused = make_draft(entry, answered=False, question=ITALY)
    review = judge(refused, is_right=False)
    review.entry = make_entry("The capital of Italy has long been the city of Rome.")
    review.save()

    kept()

    assert what_is_known() == {FRANCE: True, ITALY: True}


def test_without_a_right_text_nothing_is_told_and_nobody_asks_again(entry, by_history):
    judge(draft(entry, FRANCE, "Lyon"), is_right=False)

    assert kept()["asked"] == 1
    assert what_is_known() == {FRANCE: None}
    assert kept()["asked"] == 0


def test_what_changes_with_time_is_not_known(entry, by_history):
    asked = "What is the current capital of France?"
    judge(draft(entry, asked, "Paris"), is_right=True)

    kept()

    assert what_is_known() == {asked: False}


@pytest.mark.parametrize("is_right", [True, False])
def test_what_it_said_by_itself_is_known_as_experts_judged_it(
    entry, by_history, is_right
):
    judge(draft(entry, FRANCE, "Paris", gate="boundary"), is_right=is_right)

    kept()

    assert what_is_known() == {FRANCE: is_right}


@pytest.mark.slow
def test_what_another_model_said_by_itself_is_no_label_of_this_one(entry, by_history):
    judge(draft(entry, FRANCE, "Lyon", gate="boundary"), is_right=False)
    asked = "Who founded the Tarn bank?"
    judge(draft(entry, asked, "Ada Quill", gate="boundary"), is_right=True)

    kept()

    assert what_is_known() == {FRANCE: None, asked: False}


def test_a_policy_that_is_not_in_force_has_nobody_asked(entry, by_history):
    put_in_force(ensure_default_policy(make_knowledge_base("other")))
    Policy.objects.filter(pk=by_history.pk).update(is_active=False)
    judge(draft(entry, FRANCE, "Paris"), is_right=True)

    assert kept()["asked"] == 0


def test_a_review_that_changes_has_the_model_asked_again(entry, by_history):
    review = judge(draft(entry, FRANCE, "Lyon"), is_right=True)
    kept()
    assert what_is_known() == {FRANCE: False}
    review.ideal_answer = "Paris"
    review.reviewed_at = timezone.now()
    review.save()

    kept()

    assert what_is_known() == {FRANCE: True}


def test_another_form_of_the_model_is_asked_anew(entry, by_history):
    judge(draft(entry, FRANCE, "Paris"), is_right=True)
    kept()
    PastQuestion.objects.update(own_model="another", is_known=False)

    assert kept()["asked"] == 1
    assert what_is_known() == {FRANCE: True}
    assert PastQuestion.objects.get().own_model == load_closed_book_form().fingerprint


def test_no_model_is_asked_where_no_policy_wants_it(entry):
    judge(draft(entry, FRANCE, "Paris"), is_right=True)

    assert kept()["asked"] == 0
    assert what_is_known() == {FRANCE: None}


def test_what_a_server_s_model_knows_is_not_asked(entry, by_history, settings):
    settings.LANGUAGE_SERVER_URL = "http://localhost:1/v1"
    judge(draft(entry, FRANCE, "Paris"), is_right=True)

    assert kept()["asked"] == 0
    assert what_is_known() == {FRANCE: None}


@pytest.mark.parametrize(
    ("said", "right", "is_right"),
    [
        ("Paris", ["paris"], True),
        ("It is Paris, France", ["Paris"], True),
        ("Lyon", ["Paris"], False),
        ("", ["Paris"], False),
        ("12 euros", ["A replacement card costs 12 euros in every branch."], True),
        ("10 euros", ["A replacement card costs 12 euros in every branch."], False),
        # It only says again what was asked.
        ("replacement card", ["A replacement card costs 12 euros each year."], False),
        ("Paris", [], False),
    ],
)
def test_an_answer_is_held_against_short_and_long_texts(said, right, is_right):
    asked = "What does a replacement card cost?"

    assert answers_rightly(said, right, question=asked) is is_right


def examples(*audiences):
    scope = evidence_scope(AnonymousUser(), make_knowledge_base(), make_policy())
    return PastExamples(replace(scope, audience_ids=audiences))


def test_the_nearest_known_questions_come_first(entry):
    for number, asked in enumerate(("Who won the cup?", "What costs a new card?")):
        judge(make_draft(entry, question=asked), is_right=True)
        kept()
        PastQuestion.objects.filter(own_model="").update(
            own_model="f", is_known=bool(number)
        )
    judge(make_draft(entry, question="What does the card cost?"), is_right=True)
    kept()  # of which nothing is known

    found = examples().known(Question("The card's price?"), own_model="f", limit=2)

    assert [(each.question, each.is_known) for each in found] == [
        ("What costs a new card?", True), ("Who won the cup?", False),
    ]  # fmt: skip
    assert examples().known(Question("?"), own_model="other", limit=2) == []


def test_an_example_of_a_verdict_needs_evidence_that_the_asker_may_see(entry):
    hidden = make_entry("Nobody else's.", audience=make_audience("board"))
    for each, asked in ((entry, "What does a card cost?"), (hidden, "Who sits there?")):
        judge(make_draft(each, question=asked, language_model="m"), is_right=True)
    kept()

    def seen(*audiences):
        return {
            each.question: each.note
            for each in examples(*audiences).judged(
                Question("What does it cost?"), language_model="m", limit=5
            )
        }

    assert seen() == {}
    assert seen(entry.audience_id) == {"What does a card cost?": entry.text}
    assert len(seen(entry.audience_id, hidden.audience_id)) == 2
