"""Which version decided when: kept, never rewritten, and the way back."""

import pytest
from django.db import IntegrityError, transaction

from accounts.roles import Role
from qa.exceptions import PolicyError
from qa.models import Policy, PolicyActivation
from qa.policies.services import (
    activate,
    ensure_default_policy,
    new_version,
    roll_back,
    version_before,
)
from tests.factories import make_knowledge_base, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def first() -> Policy:
    return ensure_default_policy(make_knowledge_base())


def deciding() -> Policy:
    return Policy.objects.get(is_active=True)


def test_every_promotion_is_kept_with_who_and_what_it_replaced(first):
    boss = make_user(Role.ADMIN)
    second = new_version(first, by=None, alpha=0.7)

    activate(second, by=boss)

    kept = PolicyActivation.objects.of(first.knowledge_base).get()
    assert (kept.policy, kept.replaced, kept.by) == (second, first, boss)
    assert not kept.is_rollback


def test_activating_what_decides_already_is_no_event(first):
    activate(first)

    assert deciding() == first
    assert not PolicyActivation.objects.exists()


def test_rolling_back_twice_goes_two_versions_back(first):
    boss = make_user(Role.ADMIN)
    second = activate(new_version(first, by=None, alpha=0.7))
    third = activate(new_version(first, by=None, alpha=0.6))

    assert roll_back(third, by=boss) == second
    assert deciding() == second
    assert roll_back(second, by=boss) == first
    assert deciding() == first

    kept = PolicyActivation.objects.of(first.knowledge_base)
    assert [(row.policy, row.is_rollback) for row in kept] == [
        (first, True),
        (second, True),
        (third, False),
        (second, False),
    ]


def test_a_version_that_replaced_none_has_no_way_back(first):
    assert version_before(first) is None
    with pytest.raises(PolicyError, match="No version was active before"):
        roll_back(first, by=None)


def test_what_was_replaced_meanwhile_is_not_rolled_back(first):
    second = activate(new_version(first, by=None, alpha=0.7))
    third = activate(new_version(first, by=None, alpha=0.6))

    with pytest.raises(PolicyError, match="is not active any more"):
        roll_back(second, by=None)

    assert deciding() == third


def test_the_database_keeps_the_history_but_for_a_deleted_user(first):
    boss = make_user(Role.ADMIN)
    activate(new_version(first, by=None, alpha=0.7), by=boss)
    rows = PolicyActivation.objects.all()

    with pytest.raises(IntegrityError, match="immutable"), transaction.atomic():
        rows.update(is_rollback=True)
    with pytest.raises(IntegrityError, match="immutable"), transaction.atomic():
        rows.delete()
    boss.delete()

    assert rows.get().by is None
