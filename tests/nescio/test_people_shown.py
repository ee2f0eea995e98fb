"""Pages call people by their full names."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from kb.conflicts.finding import find_entry_conflicts
from qa.gaps.escalations import escalate
from qa.models import Gap, Review
from tests.clients import page_client
from tests.factories import make_entry, make_staff, make_tag
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db

BOTH = "Ada Byron (ab1815)"


@pytest.fixture
def ada():
    person = make_staff(Role.CURATOR, username="ab1815")
    person.first_name, person.last_name = "Ada", "Byron"
    person.save()
    return person


@pytest.fixture
def boss():
    return page_client(make_staff(Role.ADMIN, username="boss"))


@pytest.mark.slow
def test_knowledge_is_verified_owned_and_written_by_people_with_names(ada, boss):
    make_entry("The Savings account costs 5 euros a month.", author=ada, owner=ada)
    entry = make_entry(
        "The Savings account costs 7 euros a month.", author=ada, owner=ada
    )
    (conflict,) = find_entry_conflicts(entry.pk)
    make_tag("savings", ada)
    listed = reverse("admin:kb_entry_changelist")

    bodies = {
        name: boss.get(reverse(f"admin:kb_{name}", args=args)).content.decode()
        for name, args in (
            ("entry_changelist", []),
            ("entry_change", [entry.pk]),
            ("entry_history", [entry.pk]),
            ("entry_compare", [entry.pk]),
            ("conflict_change", [conflict.pk]),
            ("tag_changelist", []),
        )
    }
    chosen = {"action": "owner", "_selected_action": [entry.pk]}
    bodies["owner"] = boss.post(listed, chosen).content.decode()

    assert {name for name, body in bodies.items() if "Ada Byron" not in body} == set()
    assert f">{BOTH}</option>" in bodies["entry_change"]
    assert f">{BOTH}</option>" in bodies["owner"]
    assert "by Ada Byron," in bodies["conflict_change"]


@pytest.mark.slow
def test_questions_gaps_and_reviews_are_those_of_people_with_names(ada, boss):
    asked = make_answer(ada, question="What does a wire transfer cost?")
    escalate(asked.pk, user=ada)
    gap = Gap.objects.create(
        knowledge_base=asked.knowledge_base,
        question=asked.question,
        vector=[1.0] * 384,
        owner=ada,
        first_seen=timezone.now(),
        last_seen=timezone.now(),
    )
    review = Review.objects.create(
        answer=asked,
        state=Review.State.LOCKED,
        locked_by=ada,
        locked_until=timezone.now() + timedelta(hours=1),
    )

    bodies = {
        name: boss.get(reverse(name, args=args)).content.decode()
        for name, args in (
            ("admin:qa_answer_changelist", []),
            ("admin:qa_gap_changelist", []),
            ("admin:qa_gap_change", [gap.pk]),
            ("admin:qa_escalation_changelist", []),
            ("admin:qa_review_changelist", []),
            ("admin:qa_review_change", [review.pk]),
            ("answer", [asked.pk]),
        )
    }
    # A list that opens narrowed leads there first.
    opened = boss.get(reverse("admin:qa_gap_changelist"), {"q": "wire"})
    bodies["admin:qa_gap_changelist"] = opened.content.decode()

    assert {name for name, body in bodies.items() if "Ada Byron" not in body} == set()
    found = boss.get(reverse("admin:qa_answer_changelist"), {"q": "ada byron"})
    assert asked.question in found.content.decode()
