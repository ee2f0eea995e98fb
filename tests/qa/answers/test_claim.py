"""A kept question is decided once, by what its asker may see, and by no GET."""

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.acting import acting_for
from accounts.roles import Role
from qa.answers.asking import ABANDONED_AFTER, decide, fail_abandoned, keep_question
from qa.exceptions import AnswerDecidedError, AnswerPendingError
from qa.models import Answer
from tests.clients import page_client
from tests.factories import make_audience, make_entry, make_staff, make_user

pytestmark = pytest.mark.django_db
QUESTION = "What is the limit of the vault?"


@pytest.fixture
def insider():
    return make_user(groups=["vault"])


@pytest.fixture
def expert():
    return make_staff(Role.SME)


@pytest.fixture
def kept(insider) -> Answer:
    vault = make_audience("vault", groups=["vault"])
    make_entry("It is 900 euros.", question=QUESTION, audience=vault)
    return keep_question(QUESTION, asker=insider, channel="page")


def stream(answer: Answer) -> str:
    return reverse("answer-stream", args=[answer.pk])


def outcome(answer: Answer) -> str:
    return Answer.objects.get(pk=answer.pk).outcome


def test_it_is_decided_by_what_its_asker_may_see_whoever_decides(kept, expert):
    with acting_for(expert):
        list(decide(Answer.objects.get(pk=kept.pk)))

    assert Answer.objects.get().text == "It is 900 euros."


def test_what_only_the_decider_may_see_is_no_evidence(kept, insider, expert):
    asked = keep_question(QUESTION, asker=expert, channel="page")

    with acting_for(insider):
        list(decide(asked))

    assert outcome(asked) == "refused"
    assert not asked.evidence.exists()


def test_no_get_decides(kept, insider, expert):
    for client in (page_client(insider), page_client(expert)):
        for name in ("answer", "answer-stream", "answer-retry"):
            response = client.get(reverse(name, args=[kept.pk]))
            b"".join(response)
        client.get(f"/api/v1/answers/{kept.pk}")

    assert outcome(kept) == "pending"


def test_an_expert_decides_no_colleagues_question(kept, expert):
    client = page_client(expert)

    page = client.get(reverse("answer", args=[kept.pk])).content.decode()
    statuses = [
        client.post(stream(kept)).status_code,
        client.post(f"{stream(kept)}?again=1").status_code,
        client.post(reverse("answer-retry", args=[kept.pk])).status_code,
    ]

    assert statuses == [404, 404, 404]
    assert "is not decided yet" in page
    assert "sse-connect" not in page
    assert outcome(kept) == "pending"


def test_the_asker_decides_it_by_a_post(kept, insider):
    shown = b"".join(page_client(insider).post(stream(kept))).decode()

    assert "It is 900 euros." in shown
    assert outcome(kept) == "answered"


def test_the_first_of_two_decides(kept, insider):
    first = decide(kept)
    next(first)

    with pytest.raises(AnswerPendingError):
        next(decide(Answer.objects.get(pk=kept.pk)))
    shown = b"".join(page_client(insider).post(stream(kept)))
    list(first)

    assert shown == b""
    assert outcome(kept) == "answered"
    with pytest.raises(AnswerDecidedError):
        next(decide(Answer.objects.get(pk=kept.pk)))


def test_what_was_given_up_and_claimed_again_is_stored_by_the_second(kept):
    first = decide(kept)
    next(first)
    long_ago = timezone.now() - 2 * ABANDONED_AFTER
    Answer.objects.update(claimed_at=long_ago)
    kept.claimed_at = long_ago
    assert fail_abandoned() == 1
    second = decide(Answer.objects.get(pk=kept.pk))
    next(second)

    with pytest.raises(AnswerDecidedError):
        list(first)
    list(second)

    assert outcome(kept) == "answered"
    assert Answer.objects.get().evidence.count() == 1


def test_what_is_being_decided_is_not_given_up_for_its_age(kept):
    Answer.objects.update(created_at=timezone.now() - 2 * ABANDONED_AFTER)
    stages = decide(kept)
    next(stages)

    assert fail_abandoned() == 0

    list(stages)
    assert outcome(kept) == "answered"
