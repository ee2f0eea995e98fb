"""The inbox of votes over REST: who reviews answers reads and deals with them."""

import csv
import io

import pytest

from accounts.roles import Role
from qa.models import Vote
from qa.votes.services import vote
from tests.clients import rest_client
from tests.factories import make_audience, make_entry, make_knowledge_base, make_user
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db
URL = "/api/v1/votes"


@pytest.fixture
def asker():
    return make_user()


@pytest.fixture
def voted(asker):
    """A thumb up on an answer, a thumb down on a refusal."""
    answered = make_answer(asker, cited=(make_entry(),), question="What is the fee?")
    refused = make_answer(asker, question="Who is the owner?")
    vote(answered.pk, user=asker, is_up=True, comment="Thanks.")
    vote(
        refused.pk,
        user=asker,
        is_up=False,
        reasons=["should_be_known"],
        expected_answer="Anna.",
    )
    return answered, refused


def found(response) -> list[str]:
    assert response.status_code == 200
    return [row["answer"]["question"] for row in response.json()["results"]]


def test_a_vote_is_read_with_what_it_is_on(voted, asker):
    row = rest_client(make_user(Role.SME)).get(URL).json()["results"][0]

    assert row["answer"].pop("created_at")
    assert row.pop("created_at")
    assert row.pop("updated_at")
    assert row == {
        "id": Vote.objects.get(is_up=False).pk,
        "rating": "down",
        "reasons": ["should_be_known"],
        "comment": "",
        "expected_answer": "Anna.",
        "answering_entry": None,
        "withheld": False,
        "voter": asker.username,
        "answer": {
            "id": str(voted[1].pk),
            "question": "Who is the owner?",
            "outcome": "refused",
            "gate": "hard_refusal",
            "reason": "too_far",
        },
        "text": "I do not know.",
        "handled_at": None,
        "handled_by": None,
    }


@pytest.mark.parametrize(
    ("asked", "questions"),
    [
        ({}, ["Who is the owner?", "What is the fee?"]),
        ({"rating": "up"}, ["What is the fee?"]),
        ({"vote_reason": "should_be_known"}, ["Who is the owner?"]),
        ({"vote_reason": "wrong"}, []),
        ({"outcome": "answered"}, ["What is the fee?"]),
        ({"gate": "hard_refusal"}, ["Who is the owner?"]),
        ({"is_handled": "true"}, []),
        ({"is_handled": "false", "rating": "down"}, ["Who is the owner?"]),
        ({"knowledge_base": "loans"}, []),
        ({"created_before": "2000-01-01T00:00:00Z"}, []),
    ],
)
@pytest.mark.usefixtures("voted")
def test_votes_are_narrowed(asked, questions):
    make_knowledge_base("loans")
    assert found(rest_client(make_user(Role.SME)).get(URL, asked)) == questions


@pytest.mark.parametrize(
    "asked",
    [
        {"rating": "sideways"},
        {"vote_reason": "bad"},
        {"is_handled": "maybe"},
        {"gate": ""},
        {"knowledge_base": "nope"},
    ],
)
def test_a_filter_that_can_not_be_read_is_refused(asked):
    client = rest_client(make_user(Role.SME))

    assert client.get(URL, asked).status_code == 400
    assert client.get(f"{URL}/export", asked).status_code == 400


@pytest.mark.usefixtures("voted")
def test_dealt_with_and_open_again():
    reviewer = rest_client(make_user(Role.SME))
    url = f"{URL}/{Vote.objects.get(is_up=False).pk}/handled"

    done = reviewer.put(url)
    left = found(reviewer.get(URL, {"is_handled": "false"}))
    again = reviewer.delete(url)

    assert done.json()["handled_by"]
    assert left == ["What is the fee?"]
    assert again.json()["handled_at"] is None


def test_a_vote_that_is_not_there_is_404():
    assert (
        rest_client(make_user(Role.SME)).put(f"{URL}/4711/handled").status_code == 404
    )


@pytest.mark.usefixtures("voted")
def test_agents_have_no_inbox():
    agent = rest_client(make_user(Role.AGENT))
    one = Vote.objects.get(is_up=True)

    assert agent.get(URL).status_code == 403
    assert agent.get(f"{URL}/export").status_code == 403
    assert agent.put(f"{URL}/{one.pk}/handled").status_code == 403


def test_what_rests_on_entries_of_others_is_withheld(asker):
    secret = make_entry(audience=make_audience("board", groups=["board"]))
    answer = make_answer(asker, cited=(secret,), text="The code is 7.")
    vote(answer.pk, user=asker, is_up=False, comment="8!", expected_answer="8")

    (row,) = rest_client(make_user(Role.SME)).get(URL).json()["results"]

    assert row["withheld"]
    assert (row["text"], row["comment"], row["expected_answer"]) == ("", "", "")


@pytest.mark.usefixtures("voted")
def test_the_table_holds_what_the_filters_leave():
    response = rest_client(make_user(Role.SME)).get(f"{URL}/export", {"rating": "down"})

    body = response.getvalue().decode()
    (row,) = csv.DictReader(io.StringIO(body, newline=""))
    assert response["Content-Type"].startswith("text/csv")
    assert (row["question"], row["expected_answer"]) == ("Who is the owner?", "Anna.")


def test_the_list_costs_the_same_for_any_number_of_votes(
    asker, django_assert_num_queries
):
    for number in range(6):
        answer = make_answer(asker, question=f"Question {number}?")
        vote(answer.pk, user=asker, is_up=True)
    client = rest_client(make_user(Role.SME))

    with django_assert_num_queries(4):  # may review, where, sees all?, the rows
        assert len(found(client.get(URL))) == 6
