"""Words of questions are found the same way by their index and row by row."""

import pytest
from django.urls import reverse

from accounts.roles import Role
from qa.answers.models import Answer
from qa.answers.word_search import has_words
from qa.models import Review
from qa.votes.models import Vote
from tests.factories import make_user
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db


@pytest.fixture(
    params=[range(9, 9), range(9), range(0)], ids=["rare", "usual", "common"]
)
def share(request, monkeypatch):
    monkeypatch.setattr("qa.answers.word_search._USUAL", request.param)


@pytest.fixture
def asked() -> None:
    agent = make_user()
    for question, text in (
        ("What does a gold card cost?", "It costs 12 euros."),
        ("Who blocks cards?", "The hotline."),
        ("Is a hotline open at night?", "Yes."),
    ):
        answer = make_answer(agent, question=question, text=text)
        Review.objects.create(answer=answer)
        Vote.objects.create(answer=answer, user=agent, is_up=True)


@pytest.mark.usefixtures("asked", "share")
@pytest.mark.parametrize(
    ("words", "count", "with_text"),
    [
        ("card", 2, 2),
        ("card gold", 1, 1),
        ("hotl", 1, 2),
        ("ard", 0, 0),
        ("& :*", 0, 0),
    ],
)
def test_beginnings_of_words_are_found_in_any_order(words, count, with_text):
    answers = Answer.objects.all()

    assert answers.filter(has_words(answers, words)).count() == count
    assert answers.filter(has_words(answers, words, in_text=True)).count() == with_text
    for rows in (Vote.objects.all(), Review.objects.all()):
        assert rows.filter(has_words(answers, words, of="answer")).count() == count


@pytest.mark.usefixtures("asked", "share")
@pytest.mark.parametrize("model", ["vote", "review"])
def test_lists_of_votes_and_reviews_find_words_of_the_question(enter, model):
    client = enter(Role.SME)
    address = reverse(f"admin:qa_{model}_changelist")

    shown = client.get(f"{address}?q=cost+gold").context["cl"].result_list

    assert [row.answer.question for row in shown] == ["What does a gold card cost?"]


def test_rare_words_are_found_by_the_index_and_common_ones_without(monkeypatch):
    monkeypatch.setattr("qa.answers.word_search._USUAL", range(1, 3))
    for number in range(3):
        make_answer(make_user(), question=f"What does card {number} cost?")
    answers = Answer.objects.all()

    rare, usual, common = (
        str(answers.filter(has_words(answers, words)).query)
        for words in ("gold", "2", "card")
    )

    assert "= ANY(ARRAY(" in rare
    assert "IS TRUE" in common
    assert "ANY(ARRAY(" not in usual
    assert "IS TRUE" not in usual
