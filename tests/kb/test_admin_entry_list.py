"""The admin's list of entries: what it shows, costs, finds and does to many at once."""

from datetime import UTC, datetime

import pytest

from kb.models import Entry
from qa.models import Answer, AnswerEvidence
from tests.factories import (
    make_entries,
    make_entry,
)

pytestmark = pytest.mark.django_db

LIST = "/admin/kb/entry/"


@pytest.mark.parametrize("rows", [1, 30])
def test_list_costs_the_same_queries_for_any_number_of_rows(
    boss, rows, django_assert_max_num_queries
):
    make_entries([f"Fact {n}." for n in range(rows)])
    boss.get(LIST)

    with django_assert_max_num_queries(12) as captured:
        response = boss.get(LIST)

    assert response.status_code == 200
    assert response.content.count(b"Fact ") >= rows
    statements = " ".join(query["sql"] for query in captured.captured_queries)
    assert "search_vector" not in statements
    assert "vector" not in statements


@pytest.mark.parametrize(
    ("action", "state"),
    [
        ("verify", "verified"),
        ("mark_for_review", "needs_review"),
        ("retire", "retired"),
    ],
)
def test_actions_call_the_services_for_each_entry(boss, action, state):
    made = [make_entry("One.", state="draft"), make_entry("Two.", state="in_review")]

    boss.post(
        LIST, {"action": action, "_selected_action": [entry.pk for entry in made]}
    )

    assert set(Entry.objects.values_list("state", flat=True)) == {state}
    assert [entry.revisions.latest("number").author for entry in made] == [
        boss.user
    ] * 2


def test_action_that_fails_for_one_entry_is_done_for_the_others(boss):
    retired = make_entry("One.", state="retired")
    draft = make_entry("Two.", state="draft")

    response = boss.post(
        LIST,
        {"action": "verify", "_selected_action": [retired.pk, draft.pk]},
        follow=True,
    )

    said = [str(message) for message in response.context["messages"]]
    draft.refresh_from_db()
    assert draft.state == "verified"
    assert said == [
        f"Entry {retired.pk} is retired; restore it first.",
        "1 entry verified.",
    ]


def test_restore_action_undoes_retirements(boss):
    entry = make_entry(state="retired")

    boss.post(LIST, {"action": "restore", "_selected_action": [entry.pk]})

    entry.refresh_from_db()
    assert entry.state == "verified"


def test_list_is_searched_and_filtered(boss):
    make_entry("The gold card costs 72 euros.")
    make_entry("Cash abroad costs 3 percent.", state="draft")

    def found(query: str) -> int:
        count: int = boss.get(f"{LIST}?{query}").context["cl"].result_count
        return count

    assert found("q=cards") == 1
    assert found("q=cost") == 2
    assert found("state__exact=draft") == 1
    assert found("audience=everyone") == 2
    assert found("expiry=expired") == 0
    assert found("expiry=current") == 2
    assert found("q=%00") == 2


def test_list_shows_who_verified_and_when_it_expires(boss):
    make_entry("Old.", valid_until=datetime(2020, 5, 4, tzinfo=UTC))
    make_entry("Young.", valid_until=datetime(2099, 5, 4, tzinfo=UTC))

    page = boss.get(LIST).content.decode()

    assert "expired 2020-05-04" in page
    assert "2099-05-04" in page
    assert f"curator, {datetime.now(UTC):%Y-%m-%d}" in page


def test_list_counts_the_answers_that_used_an_entry(boss):
    entry, other = make_entry("Used."), make_entry("Unused.")
    for _ in range(2):
        answer = Answer.objects.create(
            knowledge_base=entry.knowledge_base, channel="api", question="Used?"
        )
        AnswerEvidence.objects.create(
            answer=answer,
            entry=entry,
            revision=entry.revisions.get(),
            rank=1,
            role="cited",
            distance=0.5,
            confidence=1.0,
        )

    rows = boss.get(LIST).context["cl"].result_list

    assert {row.pk: row.use_count for row in rows} == {entry.pk: 2, other.pk: 0}
