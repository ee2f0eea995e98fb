"""Answers counted by day: what dashboards read instead of a million rows."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from kb.models import Tag
from qa.dashboard.counting import count_days
from qa.dashboard.traffic import Scope, last_days, read_traffic
from qa.models import Answer, ChangedDay, CountedDay, DailyCount, DailyLatency, Vote
from tests.factories import make_entry, make_knowledge_base, make_user
from tests.qa.answer_rows import make_answer
from tests.qa.dashboard.test_latency import bucket_number

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)


def answered_at(moment: datetime, **fields) -> Answer:
    """Make a refusal, or what `fields` say, asked at `moment`."""
    if "reason" in fields:
        fields.setdefault("shown_reason", fields["reason"])
    answer = make_answer(make_user(), **fields)
    Answer.objects.filter(pk=answer.pk).update(created_at=moment)
    return answer


def counts(**filters) -> dict[tuple[str, str, str], int]:
    rows = DailyCount.objects.filter(**{"tag": None, **filters})
    return {
        (str(row.day), row.outcome, row.reason): row.answers for row in rows.order_by()
    }


def test_answers_are_counted_by_day_outcome_and_reason():
    answered_at(NOW)
    answered_at(NOW - timedelta(days=1))
    answered_at(NOW - timedelta(days=1), gate="soft_refusal", reason="model_declined")
    answered_at(NOW, cited=(make_entry(),))

    count_days(at=NOW)

    assert counts() == {
        ("2026-03-20", "refused", "too_far"): 1,
        ("2026-03-19", "refused", "too_far"): 1,
        ("2026-03-19", "refused", "model_declined"): 1,
        ("2026-03-20", "answered", ""): 1,
    }


def test_evaluations_repeats_and_pending_questions_are_not_counted():
    answered_at(NOW, channel=Answer.Channel.EVALUATION)
    answered_at(NOW, channel=Answer.Channel.REPEAT)
    answered_at(NOW, outcome="pending", gate="", reason="")

    count_days(at=NOW)

    assert counts() == {}


def test_counting_again_changes_nothing():
    answered_at(NOW)
    count_days(at=NOW)
    before = counts()

    count_days(at=NOW)

    assert counts() == before


def test_an_answer_counts_once_without_a_tag_and_once_under_each_of_its_tags():
    card = Tag.objects.create(slug="card", name="Card", facet="product_line")
    retail = Tag.objects.create(slug="retail", name="Retail", facet="line_of_business")
    answered_at(NOW, product_line=card, line_of_business=retail)
    answered_at(NOW, product_line=card)

    count_days(at=NOW)

    told = {tag: sum(counts(tag=tag).values()) for tag in (None, card, retail)}
    assert told == {None: 2, card: 2, retail: 1}


def test_a_late_change_of_an_ended_day_is_counted_at_the_next_run():
    answer = answered_at(NOW - timedelta(days=9), outcome="failed", gate="", reason="")
    count_days(at=NOW)
    assert set(counts()) == {("2026-03-11", "failed", "")}

    Answer.objects.filter(pk=answer.pk).update(
        outcome="refused",
        gate="hard_refusal",
        reason="too_far",
        shown_reason="too_far",
    )
    count_days(at=NOW)

    assert set(counts()) == {("2026-03-11", "refused", "too_far")}
    assert not ChangedDay.objects.exists()


def test_a_vote_counts_with_its_answers_day_and_is_taken_back_with_it():
    answer = answered_at(NOW - timedelta(days=9))
    vote = Vote.objects.create(answer=answer, user=make_user(), is_up=False)
    count_days(at=NOW)
    assert [(r.up, r.down) for r in DailyCount.objects.all()] == [(0, 1)]

    Vote.objects.filter(pk=vote.pk).update(is_up=True)
    count_days(at=NOW)
    assert [(r.up, r.down) for r in DailyCount.objects.all()] == [(1, 0)]

    vote.delete()
    count_days(at=NOW)
    assert [(r.up, r.down) for r in DailyCount.objects.all()] == [(0, 0)]


def test_a_deleted_answer_is_no_longer_counted():
    answer = answered_at(NOW - timedelta(days=9))
    count_days(at=NOW)

    answer.delete()
    count_days(at=NOW)

    assert counts() == {}


def test_answering_writes_nothing_for_the_counts():
    make_answer(make_user())

    assert not ChangedDay.objects.exists()


def test_an_ended_day_is_counted_until_an_hour_after_its_end():
    answered_at(NOW)
    midnight = datetime(2026, 3, 21, tzinfo=UTC)
    count_days(at=midnight + timedelta(minutes=30))
    assert CountedDay.objects.settled(timedelta(hours=25)).count() == 0

    count_days(at=midnight + timedelta(minutes=61))

    settled = CountedDay.objects.settled(timedelta(hours=25))
    assert [str(day) for day in settled] == ["2026-03-20"]


def test_a_run_that_is_cut_short_goes_on_with_the_next_day():
    for days in range(5):
        answered_at(NOW - timedelta(days=days))
    ChangedDay.objects.all().delete()

    assert count_days(at=NOW, most=3) == 3
    assert count_days(at=NOW, most=3) == 2
    assert len(counts()) == 5


def test_nothing_is_counted_where_nothing_was_asked():
    assert count_days() == 0


def test_the_database_and_python_put_times_into_the_same_buckets():
    times = [0.01, 0.1, 1.0, 9.3, 250.0, 12_345.6]
    for time in times:
        answered_at(NOW, milliseconds={"retrieve": time, "retrieve.sql": time / 2})

    count_days(at=NOW)

    found = DailyLatency.objects.values_list("bucket", "answers")
    expected: dict[int, int] = {}
    for time in times:
        expected[bucket_number(time)] = expected.get(bucket_number(time), 0) + 1
    assert dict(found) == expected


def test_traffic_adds_up_days_and_keeps_to_its_scope():
    now = timezone.now()
    other = make_knowledge_base("loans")
    for days in (0, 1, 40):
        answered_at(now - timedelta(days=days), milliseconds={"retrieve": 100.0})
    answer = answered_at(now, cited=(make_entry(),))
    Answer.objects.filter(pk=answer.pk).update(knowledge_base=other)
    count_days(at=now)

    both = read_traffic(Scope(last_days(30)))
    loans = read_traffic(Scope(last_days(30), knowledge_base=other.pk))
    longer = read_traffic(Scope(last_days(90)))

    assert (both.answered, both.refused, len(both.steps)) == (1, 2, 30)
    assert (loans.answered, loans.refused) == (1, 0)
    assert longer.refused == 3
    assert both.latency["refused"].p95 == pytest.approx(100, rel=0.026)
