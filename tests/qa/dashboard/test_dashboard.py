"""The dashboard: its figures, its page and its place in REST."""

import json
import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from kb.models import Tag
from qa.dashboard.counting import count_days
from qa.dashboard.services import read_quality
from qa.dashboard.traffic import Scope, last_days
from qa.models import Answer, DriftReading, Review, ReviewSample, ReviewStratum, Vote
from qa.policies.services import activate, ensure_default_policy
from tests.factories import (
    make_entry,
    make_knowledge_base,
    make_user,
)
from tests.qa.answer_rows import make_answer
from tests.qa.calibration.runs import certified_version

pytestmark = pytest.mark.django_db

PAGE = "dashboard"


def make_sample(*, days: int = 10, **fields) -> ReviewSample:
    now = timezone.now()
    return ReviewSample.objects.create(
        knowledge_base=make_knowledge_base(),
        seed=1,
        hours=1,
        since=now - timedelta(days=days),
        until=now + timedelta(days=1),
        dimensions=["outcome", "vote"],
        **fields,
    )


def make_stratum(sample: ReviewSample, population: int, **fields) -> ReviewStratum:
    return ReviewStratum.objects.create(
        sample=sample, population=population, drawn=min(population, 20), **fields
    )


def judge(answer: Answer, stratum: ReviewStratum | None, *, false: bool, turn: int = 1):
    """Keep a judgement of an answer or refusal."""
    verdict = (
        {"should_be_answered": false}
        if answer.outcome == "refused"
        else {"completeness": 2, "correctness": 0 if false else 2, "truthfulness": 2}
    )
    return Review.objects.create(
        answer=answer,
        stratum=stratum,
        round=turn,
        state=Review.State.DONE,
        reviewed_at=timezone.now(),
        **verdict,
    )


def test_each_stratum_weighs_as_many_answers_as_it_has():
    sample = make_sample()
    liked = make_stratum(sample, 900, outcome="answered", vote="up")
    disliked = make_stratum(sample, 100, outcome="answered", vote="down")
    asker, entry = make_user(), make_entry()
    for number in range(4):
        judge(make_answer(asker, cited=(entry,)), liked, false=False)
        judge(make_answer(asker, cited=(entry,)), disliked, false=number < 2)

    found = read_quality(Scope(last_days(30))).false_answers

    assert found is not None
    assert found.share == pytest.approx(0.1 * 0.5)
    assert found.low < 0.05 < found.high
    assert (found.reviewed, found.population, found.covered) == (8, 1000, 1000)


def test_answers_and_refusals_are_told_apart():
    stratum = make_stratum(make_sample(), 100, outcome="refused")
    for number in range(4):
        judge(make_answer(make_user()), stratum, false=number == 0)

    quality = read_quality(Scope(last_days(30)))

    assert quality.false_answers is None
    assert quality.false_refusals is not None
    assert quality.false_refusals.share == 0.25


def test_second_rounds_and_reviews_by_hand_do_not_count_in_shares():
    stratum = make_stratum(make_sample(), 100, outcome="refused")
    answer = make_answer(make_user())
    judge(answer, stratum, false=False)
    judge(answer, stratum, false=True, turn=2)
    judge(make_answer(make_user()), None, false=True)

    quality = read_quality(Scope(last_days(30)))

    assert quality.false_refusals is not None
    assert (quality.false_refusals.reviewed, quality.false_refusals.share) == (1, 0)
    assert quality.agreement.pairs == 0  # of refusals


def test_agreement_is_of_answers_that_two_experts_judged():
    entry, drawn = make_entry(), make_stratum(make_sample(), 100, outcome="answered")
    # The last because of what the first expert said, which is no sample of agreement.
    twice = [[(2, 2), (2, 2)], [(2, 2), (2, 1)], [(0, 2), (2, 2)]]
    for said, stratum in zip(twice, [drawn, drawn, None], strict=True):
        answer = make_answer(make_user(), cited=(entry,))
        for turn, (correct, true) in enumerate(said, start=1):
            Review.objects.create(
                answer=answer,
                round=turn,
                stratum=stratum,
                state=Review.State.DONE,
                reviewed_at=timezone.now(),
                completeness=2,
                correctness=correct,
                truthfulness=true,
            )

    quality = read_quality(Scope(last_days(30)))

    assert (quality.agreement.pairs, quality.agreement.observed) == (2, 0.5)


def test_a_tag_narrows_a_stratum_that_is_wider_to_the_part_that_has_it():
    stratum = make_stratum(make_sample(), 100, outcome="refused")
    card = Tag.objects.create(slug="card", name="Card", facet="product_line")
    for number in range(4):
        answer = make_answer(make_user(), product_line=card if number < 2 else None)
        judge(answer, stratum, false=number == 0)

    found = read_quality(Scope(last_days(30), tag=card.pk)).false_refusals

    assert found is not None
    assert (found.reviewed, found.population, found.share) == (2, 50, 0.5)


def test_answers_of_before_the_period_do_not_count():
    stratum = make_stratum(make_sample(days=60), 100, outcome="refused")
    judge(make_answer(make_user()), stratum, false=False)
    Answer.objects.update(created_at=timezone.now() - timedelta(days=20))

    assert read_quality(Scope(last_days(7))).false_refusals is None
    assert read_quality(Scope(last_days(30))).false_refusals is not None


def test_the_page_shows_every_figure_with_a_table_under_each_chart(enter):
    asker = make_user()
    refused = make_answer(asker, milliseconds={"retrieve": 250.0})
    make_answer(asker, cited=(make_entry(),), milliseconds={"retrieve": 250.0})
    Vote.objects.create(answer=refused, user=asker, is_up=False)
    judge(refused, make_stratum(make_sample(), 9, outcome="refused"), false=True)
    count_days()

    page = enter(Role.SME).get(reverse(PAGE)).content.decode()

    for shown in (
        "50.0\xa0%", "100.0\xa0%", "Questions by day", "Answered, all gates passed",
        "Refused, hard refusal: ", "half within", "Votes, by the day of the question",
        "False answers and false refusals as reviewed", ", 1 review", "0 open gaps",
    ):  # fmt: skip
        assert shown in page, shown
    assert page.count('<canvas class="chart"') == page.count("As a table") == 5


def test_every_bar_of_what_was_decided_has_its_name_below_it(enter):
    asker = make_user()
    make_answer(asker)
    make_answer(asker, cited=(make_entry(),))
    count_days()

    page = enter(Role.SME).get(reverse(PAGE)).content.decode()

    options = {
        title: json.loads(unescape(found))["scales"]
        for title, found in re.findall(
            r'aria-label="([^:"]+): [^>]+ data-options="([^"]+)"', page
        )
    }
    named = options["Answered and refused, by gate and reason"]["y"]["ticks"]
    assert not named["autoSkip"]
    assert options["Questions by day"]["x"]["ticks"]["autoSkip"]
    assert options["Questions by day"]["x"]["ticks"]["autoSkipPadding"] > 0


def test_a_share_says_how_many_it_speaks_of_where_not_all_kinds_were_reviewed(enter):
    sample = make_sample()
    make_stratum(sample, 154, outcome="refused")
    judge(
        make_answer(make_user()), make_stratum(sample, 1, outcome="refused"), false=True
    )

    page = enter(Role.SME).get(reverse(PAGE)).content.decode()

    assert ", 1 review, covers 1 of 155" in page


def test_the_page_of_a_system_that_was_never_asked_says_so(enter):
    page = enter(Role.SME).get(reverse(PAGE)).content.decode()

    assert "Nothing was asked in this period." in page
    assert "Not counted yet" in page
    assert "<canvas" not in page


def test_the_page_is_narrowed_to_a_knowledge_base_and_a_tag(enter):
    make_answer(make_user())
    make_knowledge_base("loans")
    Tag.objects.create(slug="card", name="Card", facet="product_line")
    count_days()
    client = enter(Role.SME)

    for query in ("knowledge_base=loans", "tag=card"):
        page = client.get(f"{reverse(PAGE)}?days=30&{query}").content.decode()
        assert "Nothing was asked in this period." in page
    assert (
        "Questions by week" in client.get(f"{reverse(PAGE)}?days=90").content.decode()
    )


def test_a_choice_that_is_none_is_told_and_not_followed(enter):
    response = enter(Role.SME).get(f"{reverse(PAGE)}?days=31&tag=none")

    assert response.status_code == 200
    assert response.content.decode().count('role="alert"') == 2


def test_agents_may_not_open_it(client):
    client.force_login(make_user())

    assert client.get(reverse(PAGE)).status_code == 302
    assert client.get(reverse("api_dashboard")).status_code == 403


@pytest.mark.slow
def test_drift_is_shown_to_administrators_alone(enter):
    policy = certified_version(ensure_default_policy(make_knowledge_base()))
    activate(policy)
    DriftReading.objects.create(
        certificate=policy.certificate,
        answers=500,
        has_drifted=True,
        signals={
            "answer_confidence": {
                "reference": 99, "live": 500, "distance": 0.42, "psi": 0.5,
                "p_distance": 0.0, "p_psi": 0.0, "has_drifted": True,
            }
        },
    )  # fmt: skip

    admin = enter(Role.ADMIN).get(reverse("api_dashboard")).json()
    expert = enter(Role.SME).get(reverse("api_dashboard")).json()

    assert [(s["signal"], s["distance"]) for s in admin["drift"]] == [
        ("answer_confidence", 0.42)
    ]
    assert expert["drift"] is None


def test_rest_tells_the_same_figures(enter):
    make_answer(make_user(), milliseconds={"retrieve": 100.0})
    count_days()

    got = enter(Role.SME).get(reverse("api_dashboard"), {"days": 7}).json()

    assert (got["traffic"]["questions"], got["traffic"]["refused"]) == (1, 1)
    assert len(got["traffic"]["steps"]) == 7
    assert got["traffic"]["decided"] == [
        {
            "outcome": "refused",
            "gate": "hard_refusal",
            "reason": "too_far",
            "answers": 1,
        }
    ]
    assert got["traffic"]["latency"][""]["p50"] == pytest.approx(100, rel=0.026)
    assert got["quality"]["false_answers"] is None


@pytest.mark.parametrize(
    "query", ["days=0", "days=732", "days=x", "tag=none", "knowledge_base=none"]
)
def test_rest_refuses_what_it_can_not_read(enter, query):
    response = enter(Role.SME).get(f"{reverse('api_dashboard')}?{query}")

    assert response.status_code == 400


def test_the_page_costs_the_same_for_any_number_of_answers(enter):
    client = enter(Role.ADMIN)
    client.get(reverse(PAGE))
    queries = []
    for number in (1, 5):
        for _ in range(number):
            make_answer(make_user())
        count_days()
        with CaptureQueriesContext(connection) as asked:
            client.get(reverse(PAGE))
        queries.append(len(asked))

    assert queries[0] == queries[1] < 30
