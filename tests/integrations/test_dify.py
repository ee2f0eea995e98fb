"""Dify's external knowledge API, by requests as Dify's service makes them."""

import pytest
from rest_framework.test import APIClient

from accounts.services import create_token
from qa.models import Answer
from tests.factories import make_audience, make_entry, make_user

FEE = "What does a replacement card cost?"


@pytest.fixture
def dify(db):
    def ask(query: str, user=None, **more: object):
        client = APIClient()
        token = create_token(user=user or make_user()).secret
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
        body = {
            "retrieval_setting": {"top_k": 2, "score_threshold": 0.0},
            "query": query,
            "knowledge_id": "cards",
            "metadata_condition": None,
            **more,
        }
        return client.post("/dify/retrieval", body, format="json")

    return ask


def test_records_are_the_nearest_with_their_source(dify):
    entry = make_entry("It costs 12 euros.", question=FEE)
    make_entry("A replacement card is sent within three days.")
    make_entry("A replacement card has the old card's number.")

    records = dify(FEE).json()["records"]

    assert len(records) == 2
    first, second = records
    assert first["content"] == f"{FEE}\nIt costs 12 euros."
    assert 1.001 > first["score"] > 0.99 > second["score"] > 0
    assert first["metadata"]["entry"] == entry.pk
    assert first["metadata"]["verified"] is True
    narrow = {"top_k": 2, "score_threshold": 0.99}
    assert dify(FEE, retrieval_setting=narrow).json()["records"] == [first]
    assert not Answer.objects.exists()


def test_what_would_be_refused_has_no_records(dify):
    make_entry("It costs 12 euros.", question=FEE)

    response = dify("Who won the cup in 1974?")

    assert (response.status_code, response.json()) == (200, {"records": []})


def test_entries_of_other_audiences_are_no_records(dify):
    vault = make_audience("vault", groups=["vault"])
    make_entry("Zwirbel.", question="What is the codeword?", audience=vault)
    inside = make_user(username="inside", groups=["vault"])

    assert dify("What is the codeword?").json() == {"records": []}
    assert len(dify("What is the codeword?", inside).json()["records"]) == 1


def test_mistakes_have_difys_codes_and_say_the_remedy(dify, client):
    make_entry("It costs 12 euros.", question=FEE)

    absent = dify(FEE, knowledge_id="absent")
    assert (absent.status_code, absent.json()["error_code"]) == (404, 2001)
    assert "available: cards" in absent.json()["error_msg"]
    condition = {"conditions": [{"name": "x", "comparison_operator": "is"}]}
    filtered = dify(FEE, metadata_condition=condition)
    assert (filtered.status_code, filtered.json()["error_code"]) == (400, 400)
    assert "leave it out" in filtered.json()["error_msg"]
    # What Dify sends when an endpoint is added: 403, 404 and 502 would be refused.
    wrong = {"authorization": "Bearer wrong"}
    response = client.post("/dify/retrieval", headers=wrong)
    assert (response.status_code, response.json()["error_code"]) == (401, 1002)
