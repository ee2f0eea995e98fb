"""Policies: one active version, never changed."""

from dataclasses import replace

import pytest
from django.db import IntegrityError, transaction

from kb.embedding.embedder import BUNDLED, load_embedder
from kb.search import METHOD
from qa.exceptions import PolicyError
from qa.models import Policy
from qa.pipeline.staleness import current_calibration
from qa.pipeline.values import Calibration
from qa.policies.services import (
    DEFAULTS_SET_FOR,
    DEFAULTS_SET_FOR_LANGUAGE_MODEL,
    activate,
    active_policy,
    ensure_default_policy,
    new_version,
)
from tests.factories import make_knowledge_base, make_user
from tests.qa.answer_rows import make_self_calibration
from tests.qa.pipeline.values import make_retrieval

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def policy():
    return ensure_default_policy(make_knowledge_base())


def test_the_default_thresholds_belong_to_the_bundled_embedder():
    assert load_embedder(BUNDLED).fingerprint == DEFAULTS_SET_FOR


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_default_verdict_belongs_to_the_bundled_language_model(dtype):
    import torch
    from django.conf import settings

    from probes import bundled
    from probes.language_model.loading import SHIPPED, load_model_from
    from qa.inference.grounded import GroundedLanguageModel

    model = load_model_from(
        bundled.prepare(settings.PLACES.models),
        name="bundled",
        device=torch.device("cpu"),
        dtype=getattr(torch, dtype),
        adapter=SHIPPED,
    )

    running = GroundedLanguageModel(model).fingerprint
    assert running in DEFAULTS_SET_FOR_LANGUAGE_MODEL.split()


def test_a_changed_language_model_makes_the_default_policy_stale(policy):
    value = policy.as_value()
    found_by = make_retrieval(embedder=DEFAULTS_SET_FOR, method=METHOD)
    bundled = DEFAULTS_SET_FOR_LANGUAGE_MODEL.split()

    for fingerprint in ("", *bundled):
        found = current_calibration(value, found_by, fingerprint)
        assert found is Calibration.HAND_SET
    assert current_calibration(value, found_by, "f" * 64) is Calibration.STALE


def test_own_questions_are_named_where_they_chose_the_thresholds(policy):
    found_by = make_retrieval(embedder=DEFAULTS_SET_FOR, method=METHOD)
    make_self_calibration(policy)
    value = Policy.objects.get(pk=policy.pk).as_value()

    found = current_calibration(value, found_by)
    assert found is Calibration.SELF_CALIBRATED
    labelled = replace(value, is_calibrated=True)
    assert current_calibration(labelled, found_by) is Calibration.CURRENT
    # One that the playground tries is not kept.
    tried = Policy(knowledge_base=policy.knowledge_base, name="tried")
    assert not tried.as_value().is_self_calibrated


@pytest.mark.parametrize("changed", ["embedder", "method"])
def test_another_way_of_searching_makes_the_default_policy_stale(policy, changed):
    same = {"embedder": DEFAULTS_SET_FOR, "method": METHOD}
    found_by = make_retrieval(**same | {changed: "another"})

    assert current_calibration(policy.as_value(), found_by) is Calibration.STALE


def test_a_knowledge_base_without_a_policy_gets_the_default_once():
    knowledge_base = make_knowledge_base()

    made = active_policy(knowledge_base)

    assert made == active_policy(knowledge_base) == ensure_default_policy(knowledge_base)  # fmt: skip
    assert (made.name, made.version, made.is_active) == ("default", 1, True)
    assert made.calibrated_embedder == DEFAULTS_SET_FOR


def test_a_change_is_a_new_version_that_waits_to_be_activated(policy):
    by = make_user()

    made = new_version(policy, by=by, alpha=0.7)

    assert (made.version, made.alpha, made.is_active) == (2, 0.7, False)
    assert made.created_by == by
    assert made.horizon == policy.horizon
    assert active_policy(policy.knowledge_base) == policy


def test_activating_takes_the_place_of_the_one_before_and_can_be_undone(policy):
    made = new_version(policy, by=None, alpha=0.7)

    activate(made)
    assert active_policy(policy.knowledge_base) == made
    activate(policy)
    assert active_policy(policy.knowledge_base) == policy
    assert Policy.objects.filter(is_active=True).count() == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"alpha": -0.1},
        {"alpha": 2.1},
        {"horizon": 0.5},
        {"top_k": 0},
        {"unverified_floor": 0.0},
        {"min_verdict": 1.1},
    ],
)
def test_values_out_of_range_make_no_version(policy, changes):
    (field,) = changes
    with pytest.raises(PolicyError, match=field):
        new_version(policy, by=None, **changes)

    assert Policy.objects.count() == 1


def test_the_database_refuses_to_change_a_threshold(policy):
    with pytest.raises(IntegrityError, match="immutable"), transaction.atomic():
        Policy.objects.filter(pk=policy.pk).update(alpha=0.1)

    policy.alpha = 0.1
    with pytest.raises(IntegrityError, match="immutable"), transaction.atomic():
        policy.save()

    policy.refresh_from_db()
    assert policy.alpha == 0.85


def test_a_policys_maker_may_be_deleted(policy):
    by = make_user()
    made = new_version(policy, by=by, alpha=0.7)

    by.delete()

    made.refresh_from_db()
    assert made.created_by is None
