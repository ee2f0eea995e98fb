"""What is drawn for review: stratified, reproducible, within the hours."""

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.exceptions import RoleElsewhereError
from accounts.roles import Role
from accounts.services import set_knowledge_roles
from jobs.exceptions import RetryableJobError
from jobs.models import Job
from jobs.run import run_job
from kb.models import KnowledgeBase
from qa.exceptions import InvalidSampleError
from qa.models import Answer, Review, ReviewSample, ReviewStratum, Vote
from qa.reviews.sampling import (
    SampleOrder,
    draw_in_background,
    draw_sample,
    draw_weekly,
    enqueue_draw,
)
from tests.factories import make_entry, make_knowledge_base, make_tag, make_user
from tests.qa.answer_rows import make_answer
from tests.qa.reviews.review_rows import drawn

pytestmark = pytest.mark.django_db


def make_answers(count: int, *, vote: bool | None = None, refused=False, **fields):
    asker, entry = make_user(), make_entry()
    for number in range(count):
        answer = make_answer(
            asker,
            question=f"Question {number}?",
            cited=() if refused else (entry,),
            **fields,
        )
        if vote is not None:
            Vote.objects.create(answer=answer, user=asker, is_up=vote)


def order(**fields) -> SampleOrder:
    now = timezone.now()
    given = {
        "knowledge_base": make_knowledge_base().pk,
        "hours": 1.0,
        "minutes_a_review": 6.0,
        "second_share": 0.0,
        "since": now - timedelta(days=7),
        "until": now,
        "seed": 7,
    }
    return SampleOrder(**{**given, **fields})


def test_an_hour_of_six_minutes_each_draws_ten_of_every_kind():
    make_answers(40)
    make_answers(3, vote=False)
    make_answers(20, refused=True)

    sample = drawn(order())

    assert (sample.answers, sample.population) == (10, 63)
    strata = {
        (one.outcome, one.vote): (one.drawn, one.population)
        for one in sample.strata.all()
    }
    assert strata[("answered", "down")] == (3, 3)
    assert sum(drawn for drawn, _ in strata.values()) == Review.objects.count() == 10
    assert strata[("answered", "none")][0] > strata[("refused", "none")][0] >= 2
    assert set(sample.dimensions) >= {"outcome", "vote"}


def signal(value: float, threshold: float, *, passed: bool = True) -> dict[str, object]:
    return {
        "gate": "entry",
        "name": "entry_answer",
        "value": value,
        "threshold": threshold,
        "passed": passed,
    }


@pytest.mark.slow
def test_of_close_decisions_more_are_drawn_and_of_word_for_word_answers_none():
    make_answers(30, signals=[signal(0.99, 0.8)])
    make_answers(10, signals=[signal(0.99, 0.8), signal(0.84, 0.8)])
    make_answers(10, signals=[signal(0.4, 0.8, passed=False)])
    make_answers(30, gate="verbatim", signals=[signal(1.0, 0.99)])

    sample = drawn(order(hours=2))

    strata = {one.certainty: (one.drawn, one.population) for one in sample.strata.all()}
    assert strata == {"close": (13, 20), "clear": (7, 30)}
    assert sample.population == 50


def test_a_threshold_of_none_and_a_refusal_that_did_not_pass_are_clear():
    make_answers(3, signals=[signal(0.02, 0.0)])
    make_answers(3, refused=True, signals=[signal(0.1, 0.8, passed=False)])

    assert {one.certainty for one in drawn(order()).strata.all()} == {"clear"}


def test_every_review_is_of_an_answer_of_its_stratum():
    make_answers(5, vote=True)
    make_answers(5, refused=True, product_line=make_tag())

    sample = drawn(order())

    for review in Review.objects.select_related("answer", "stratum"):
        answer, stratum = review.answer, review.stratum
        assert stratum is not None
        assert (stratum.outcome, stratum.gate) == (answer.outcome, answer.gate)
        assert stratum.product_line_id == answer.product_line_id
        assert (stratum.vote == "up") == answer.votes.exists()
    counts = Counter(Review.objects.values_list("stratum_id", flat=True))
    assert dict(counts) == {one.pk: one.drawn for one in sample.strata.all()}


def test_the_same_seed_draws_the_same_and_another_draws_others():
    make_answers(40)
    wanted = order()
    picked = []
    for seed in (7, 7, 8):
        draw_sample(order(seed=seed, until=wanted.until, since=wanted.since), by=None)
        picked.append(set(Review.objects.values_list("answer_id", flat=True)))
        Review.objects.all().delete()

    assert picked[0] == picked[1]
    assert picked[0] != picked[2]


@pytest.mark.slow
def test_every_answer_is_as_likely_to_be_drawn_as_another():
    make_answers(20)
    seen: Counter[object] = Counter()
    wanted = order(hours=0.5)
    for seed in range(60):
        one = order(hours=0.5, seed=seed, until=wanted.until, since=wanted.since)
        draw_sample(one, by=None)
        seen.update(Review.objects.values_list("answer_id", flat=True))
        Review.objects.all().delete()

    # 60 draws of 5 of 20: each is drawn 15 times, give or take 3.4.
    assert len(seen) == 20
    assert all(4 <= count <= 27 for count in seen.values())


def test_what_was_drawn_before_evaluations_and_other_windows_stay_out():
    make_answers(3)
    make_answers(3, channel=Answer.Channel.EVALUATION)
    make_answers(2, refused=True)
    Answer.objects.filter(outcome="refused").update(
        created_at=timezone.now() - timedelta(days=30)
    )

    assert drawn(order()).population == 3
    assert draw_sample(order(), by=None) is None
    assert (
        draw_sample(order(knowledge_base=make_knowledge_base("loans").pk), by=None)
        is None
    )


def test_a_share_is_reviewed_twice():
    make_answers(40)

    sample = drawn(order(second_share=0.25, hours=2.0))

    assert sample.answers == 16
    first, second = (Review.objects.filter(round=number) for number in (1, 2))
    assert (first.count(), second.count()) == (16, 4)
    assert set(second.values_list("answer", flat=True)) < set(
        first.values_list("answer", flat=True)
    )


def test_a_review_goes_to_the_tag_that_has_an_expert():
    lone = make_tag("lone")
    known = make_tag("retail", make_user(Role.SME), facet="line_of_business")
    make_answers(2, product_line=lone, line_of_business=known)
    draw_sample(order(), by=None)
    assert {review.tag for review in Review.objects.all()} == {known}

    make_answers(2, product_line=lone)
    draw_sample(order(), by=None)
    assert Review.objects.filter(tag=lone).count() == 2


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"hours": 0.0}, "hours 0.0 is not in"),
        ({"hours": float("nan")}, "hours nan is not in"),
        ({"minutes_a_review": 1000.0}, "minutes_a_review"),
        ({"second_share": 1.5}, "second_share"),
        ({"seed": -1}, "seed"),
        ({"hours": 200.0, "minutes_a_review": 0.25}, "at most 5000"),
        ({"since": timezone.now() + timedelta(days=1)}, "before it begins"),
        ({"until": timezone.now() + timedelta(days=1)}, "in the future"),
    ],
)
def test_an_order_that_can_not_be_drawn_is_refused(fields, match):
    with pytest.raises(InvalidSampleError, match=match):
        draw_sample(order(**fields), by=None)

    assert not ReviewSample.objects.exists()


def test_the_schedule_goes_on_where_the_last_sample_ended(
    settings, django_capture_on_commit_callbacks
):
    settings.REVIEW_HOURS_A_WEEK = 1.0
    make_answers(2)
    first = drawn(order())
    KnowledgeBase.objects.exclude(pk=first.knowledge_base_id).delete()

    assert draw_weekly() == 1
    parameters = Job.objects.get().parameters
    assert parameters["since"] == first.until.isoformat()
    # Two of fifteen still wait.
    assert parameters["hours"] == pytest.approx(13 / 15)


def test_the_schedule_hands_out_no_more_than_can_be_done(settings):
    settings.REVIEW_HOURS_A_WEEK = 0.1
    make_answers(2)
    draw_sample(order(hours=0.2), by=None)

    assert draw_weekly() == 0


@pytest.mark.parametrize(("hours", "number"), [(0.04, 0), (500, 1)])
def test_a_setting_that_no_sample_can_have_ends_no_schedule(settings, hours, number):
    settings.REVIEW_HOURS_A_WEEK, settings.REVIEW_MINUTES = hours, 1
    make_answers(2)

    assert draw_weekly() == number


def test_what_nobody_can_do_keeps_no_later_sample_from_being_drawn(settings):
    settings.REVIEW_HOURS_A_WEEK = 0.1
    make_answers(2)
    draw_sample(order(hours=0.2), by=None)
    Review.objects.update(created_at=timezone.now() - timedelta(days=30))

    assert draw_weekly() == 1


def test_a_sample_drawn_by_hand_leaves_no_day_out_of_the_schedules(settings):
    settings.REVIEW_HOURS_A_WEEK = 1.0
    make_answers(2)
    Answer.objects.update(created_at=timezone.now() - timedelta(days=2))
    by_schedule = draw_sample(order(until=timezone.now() - timedelta(days=1)), by=None)
    make_answers(2)
    draw_sample(order(), by=make_user())

    assert draw_weekly() == 1
    since = Job.objects.get().parameters["since"]
    assert by_schedule is not None
    assert since == by_schedule.until.isoformat()


def test_a_killed_draw_is_not_drawn_again():
    make_answers(4)
    job = enqueue_draw(order(), by=None)

    def draw_and_die(run):
        draw_in_background(run)
        raise RetryableJobError("killed before it could say so")

    run_job(job.pk, {job.kind: draw_and_die})
    Job.objects.update(not_before=None)
    run_job(job.pk, {job.kind: draw_in_background})

    job.refresh_from_db()
    assert job.state == Job.State.SUCCEEDED
    assert job.result["sample"] == ReviewSample.objects.get().pk


def test_what_was_ordered_is_not_drawn_after_the_role_is_lost():
    make_answers(2)
    user = make_user(role=None)
    set_knowledge_roles(user, {make_knowledge_base().pk: "curator"})
    job = enqueue_draw(order(), by=user)
    set_knowledge_roles(user, {make_knowledge_base("travel").pk: "curator"})

    with pytest.raises(RoleElsewhereError):
        run_job(job.pk, {job.kind: draw_in_background})

    assert not ReviewSample.objects.exists()


def test_strata_are_deleted_with_no_judgement():
    from django.db.models import ProtectedError

    make_answers(2)
    draw_sample(order(), by=None)

    with pytest.raises(ProtectedError):
        ReviewStratum.objects.all().delete()
