"""What is read in one go is what each question of its own would be told."""

import pytest
from django.contrib.auth.models import AnonymousUser, User

from kb.models import Audience, KnowledgeBase
from qa.answers.sources import evidence_scope
from qa.models import RefusalWording
from qa.policies.ask_prefetch import prefetch, prefetched
from qa.policies.services import (  # fmt: skip
    activate,
    active_policy,
    ensure_default_policy,
    new_version,
)
from tests.factories import make_audience, make_knowledge_base, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _audiences() -> None:
    make_audience()
    make_audience("experts", groups=["experts", "board"])
    make_audience("board", groups=["board"])


def _askers() -> list[User | AnonymousUser]:
    superuser = make_user(username="root")
    superuser.is_superuser = True
    superuser.save()
    inactive = make_user(username="gone")
    inactive.is_active = False
    inactive.save()
    expert = make_user(groups=["experts", "board"])
    return [make_user(), superuser, inactive, expert, AnonymousUser()]


def _read(asker: User | AnonymousUser, slug: str = "") -> KnowledgeBase:
    found = prefetch(slug, asker)
    assert found is not None
    return found


def test_they_are_what_each_would_be_asked_for_alone(django_assert_num_queries):
    policy = ensure_default_policy(make_knowledge_base())
    for asker in _askers():
        with django_assert_num_queries(1):
            found = _read(asker)
            scope = evidence_scope(asker, found, active_policy(found).as_value())

        assert found == KnowledgeBase.objects.get()
        assert found.created_at == KnowledgeBase.objects.get().created_at
        assert active_policy(found) == policy
        assert active_policy(found).as_value() == policy.as_value()
        visible = Audience.objects.visible_to(asker).values_list("pk", flat=True)
        assert sorted(scope.audience_ids) == sorted(visible)


def test_another_asker_does_not_get_the_audiences_of_the_one_they_were_read_for():
    ensure_default_policy(make_knowledge_base())
    agent, superuser, *_ = _askers()
    found = _read(superuser)

    scope = evidence_scope(agent, found, active_policy(found).as_value())

    assert scope.audience_ids == (Audience.objects.get(slug="everyone").pk,)


def test_what_changed_is_read_with_the_next_question():
    knowledge_base = make_knowledge_base()
    ensure_default_policy(knowledge_base)
    asker = make_user()
    first = _read(asker)
    audience = make_audience("new", groups=["agent"])
    made = activate(new_version(active_policy(first), by=None, alpha=0.5))
    RefusalWording.objects.create(
        knowledge_base=knowledge_base, language="en", reason="too_far", text="Ask “B”."
    )

    second = _read(asker)

    assert active_policy(second) == made
    grounds = prefetched(second)
    assert grounds is not None
    assert audience.pk in grounds.audience_ids
    assert grounds.wordings == {("en", "too_far"): "Ask “B”."}


def test_of_several_the_named_or_the_oldest_is_read():
    cards, loans = make_knowledge_base(), make_knowledge_base("loans")
    policy = ensure_default_policy(loans)
    asker = make_user()

    assert _read(asker) == cards
    assert _read(asker, "loans") == loans
    assert active_policy(_read(asker, "loans")) == policy
    assert prefetch("leasing", asker) is None


def test_a_knowledge_base_without_a_policy_gets_the_default_one():
    make_knowledge_base()

    policy = active_policy(_read(make_user()))

    assert policy.is_active
    assert policy.name == "default"
