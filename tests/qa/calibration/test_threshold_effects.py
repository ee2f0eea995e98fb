"""Reading what thresholds are tried on: a run's answers, and what was really asked."""

from datetime import timedelta

import pytest
from django.utils import timezone

from qa.calibration.threshold_effects import logged_of, runs_of
from qa.evaluation.runs import labelled_of
from qa.models import Answer, Vote
from qa.pipeline.replay import Played, Signals, replay
from tests.factories import make_knowledge_base, make_user
from tests.qa.evaluated import (
    kept_from_the_model,
    labelled,
    make_logged,
    make_run,
    measured,
)
from tests.qa.pipeline.values import MODEL, PROBES, make_policy

pytestmark = pytest.mark.django_db

REFUSED = {"reason": "too_far", "shown_reason": "too_far"}


def test_a_runs_answers_come_back_by_id_as_they_were_measured(
    django_assert_num_queries,
):
    answers = (
        labelled("one", measured(0.5), answerable=True, correct=True),
        labelled("two", kept_from_the_model(1.1), answerable=False, correct=None),
    )
    run = make_run(*reversed(answers))

    with django_assert_num_queries(1):
        found = labelled_of(run)

    assert tuple(found) == answers


def test_runs_are_those_of_the_knowledge_base_newest_first(django_assert_num_queries):
    first, second = make_run(key="a"), make_run(key="b")
    make_run(key="c", knowledge_base=make_knowledge_base("other"))

    knowledge_base = make_knowledge_base()
    with django_assert_num_queries(1):
        runs = list(runs_of(knowledge_base))
        assert [run.policy for run in runs] == [first.policy] * 2

    assert runs == [second, first]


def test_traffic_is_what_users_asked_here_of_late_and_was_decided():
    ours = make_logged(measured(0.5))
    make_logged(measured(0.5), channel="evaluation")
    make_logged({}, outcome="pending")
    foreign = make_logged(measured(0.5))
    Answer.objects.filter(pk=foreign.pk).update(
        knowledge_base=make_knowledge_base("other")
    )
    old = make_logged(measured(0.5))
    before = timezone.now() - timedelta(days=31)
    Answer.objects.filter(pk=old.pk).update(created_at=before)

    log = logged_of(make_knowledge_base())

    assert (len(log), log.asked, log.is_sample) == (1, 1, False)
    assert log.signals.value("verified_ratio").tolist() == [0.5]
    assert log.was_answered.tolist() == [True]
    assert log.has_thumb_down.tolist() == [False]
    assert ours.knowledge_base == make_knowledge_base()


def test_a_thumb_down_counts_once_and_a_thumb_up_not():
    for is_up in (True, False):
        answer = make_logged(measured(0.8))
        for _ in range(2):
            Vote.objects.create(answer=answer, user=make_user(), is_up=is_up)

    effect = logged_of(make_knowledge_base()).effect(make_policy(alpha=0.5))

    assert (effect.more_refused, effect.more_refused_down) == (2, 1)


def test_numbers_of_other_models_are_left_out_and_told():
    make_logged(measured(0.5), embedder="o" * 64)
    make_logged(measured(0.5), language_model="another")
    make_logged(measured(0.5), language_model=MODEL)
    make_logged(kept_from_the_model(1.1), **REFUSED)

    log = logged_of(make_knowledge_base())

    assert (len(log), log.other_models, log.asked) == (2, 2, 4)
    assert not log.is_sample


def test_confidences_of_other_probes_are_left_out_and_told():
    make_logged(measured(0.5), language_model=MODEL, probes="another")
    make_logged(measured(0.5), language_model=MODEL)
    make_logged(measured(0.5), language_model=MODEL, probes=PROBES)

    log = logged_of(make_knowledge_base())

    assert (len(log), log.other_models) == (2, 1)


def test_what_a_stale_policy_refused_is_left_out_and_told():
    make_logged(measured(0.5))
    make_logged(measured(0.5), reason="policy_stale", shown_reason="policy_stale")

    log = logged_of(make_knowledge_base())

    assert (len(log), log.refused_stale) == (1, 1)


def test_more_than_is_read_is_a_sample_of_the_newest_and_said_to_be(
    django_assert_num_queries,
):
    for ratio in (0.1, 0.2, 0.3):
        make_logged(measured(ratio))

    knowledge_base = make_knowledge_base()
    with django_assert_num_queries(1):
        whole = logged_of(knowledge_base, most=4)
    with django_assert_num_queries(2):
        log = logged_of(knowledge_base, most=2)

    assert (len(whole), whole.is_sample) == (3, False)
    assert (log.asked, log.is_sample) == (3, True)
    assert log.signals.value("verified_ratio").tolist() == [0.3, 0.2]


@pytest.mark.parametrize("alpha", [0.2, 0.6, 1.2])
def test_what_was_asked_is_played_in_columns_as_it_is_one_by_one(alpha):
    policy = make_policy(alpha=alpha, min_verdict=0.5)
    stored: tuple[Signals, ...] = (
        measured(0.5, 0.9), measured(0.5, 0.3), measured(1.0, 0.9), {},
        kept_from_the_model(0.9), {"distance_over_confidence": 0.5},
    )  # fmt: skip
    for signals in stored:
        make_logged(signals)
        make_logged(signals, reason="model_declined", shown_reason="model_declined")
    played = [replay(signals, policy).outcome for signals in stored]

    effect = logged_of(make_knowledge_base()).effect(policy)

    assert effect.questions == 2 * len(stored)
    assert effect.more_refused == played.count(Played.REFUSED)
    assert effect.more_answered == played.count(Played.ANSWERED)
    assert effect.unknown == 2 * played.count(Played.UNKNOWN)


def test_without_traffic_nothing_would_change():
    effect = logged_of(make_knowledge_base()).effect(make_policy())

    assert (effect.questions, effect.same) == (0, 0)
