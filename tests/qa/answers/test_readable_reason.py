"""That hidden knowledge would have answered is told to superusers alone."""

import json

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from accounts.roles import Role
from qa.dashboard.counting import count_days
from qa.models import Escalation, Gap, GapQuestion, Review, Vote
from tests.clients import page_client
from tests.factories import make_knowledge_base, make_staff, make_user
from tests.qa.answer_rows import make_answer

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
TRUE = ("not_entitled", "not entitled", "You do not have access to this knowledge")


@pytest.fixture
def refused():
    """A question that a hidden entry would have answered, wherever it is shown."""
    asker = make_user(username="asker")
    answer = make_answer(
        asker, reason="not_entitled", shown_reason="nothing_known", text="Not known."
    )
    now = timezone.now()
    gap = Gap.objects.create(
        knowledge_base=make_knowledge_base(), question=answer.question,
        vector=[1.0] * 384, first_seen=now, last_seen=now,
    )  # fmt: skip
    GapQuestion.objects.create(
        gap=gap,
        answer=answer,
        asker=asker,
        why=GapQuestion.Why.REFUSED,
        asked_at=now,
        distance=0.1,
    )
    rows = {
        "answer": answer,
        "vote": Vote.objects.create(answer=answer, user=asker, is_up=False),
        "escalation": Escalation.objects.create(answer=answer, raised_by=asker),
        "review": Review.objects.create(answer=answer),
        "gap": gap,
    }
    count_days()
    return {kind: row.pk for kind, row in rows.items()}


def pages(refused: dict[str, object]) -> dict[str, str]:
    changes = {kind: f"/admin/qa/{kind}/{key}/change/" for kind, key in refused.items()}
    return changes | {
        "list of answers": "/admin/qa/answer/",
        "today": "/admin/",
        "dashboard": "/admin/qa/answer/dashboard/",
        "figures": "/api/v1/dashboard",
        "answers over REST": "/api/v1/answers",
    }


@pytest.mark.parametrize("role", [Role.SME, Role.CURATOR, Role.ADMIN])
def test_nobody_else_reads_that_a_hidden_entry_would_have_answered(refused, role):
    user = make_staff(role)
    client = page_client(user)

    for name, address in pages(refused).items():
        got = client.get(address, follow=True)
        assert got.status_code == 200, name
        # The choices of a filter are those of the field, whatever the rows hold.
        empty = client.get(address, {"q": "zzz"}) if name == "list of answers" else None
        for word in TRUE:
            choices = empty.getvalue().decode().count(word) if empty else 0
            assert got.getvalue().decode().count(word) == choices, (name, word)


def test_nobody_else_narrows_a_list_to_them(refused):
    user = make_staff(Role.ADMIN)
    narrowed = "/admin/qa/answer/?{}__exact=not_entitled"

    assert page_client(user).get(narrowed.format("reason")).status_code == 400
    shown = page_client(user).get(narrowed.format("shown_reason"))
    assert shown.context["cl"].result_count == 0


def test_a_superuser_reads_the_true_reason(refused):
    client = page_client(User.objects.create_superuser("root"))

    for kind in refused:
        shown = client.get(pages(refused)[kind]).content.decode()
        assert any(word in shown for word in TRUE), kind
    found = client.get("/admin/qa/answer/?reason__exact=not_entitled")
    assert found.context["cl"].result_count == 1


def test_daily_counts_are_by_the_reason_that_was_shown(refused):
    client = page_client(User.objects.create_superuser("root"))

    figures = client.get("/api/v1/dashboard").json()

    assert "not_entitled" not in json.dumps(figures)
    assert "nothing_known" in json.dumps(figures)
