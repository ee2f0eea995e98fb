"""What questions are about: as the asker says, or as the entry of the best evidence is."""

import pytest

from kb.models import Tag
from qa.models import Answer
from qa.votes.entry_uses import count_uses
from tests.clients import rest_client
from tests.factories import make_entry, make_knowledge_base, make_tag, make_user
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db(transaction=True)


def retail() -> Tag:
    return make_tag("retail", facet=Tag.Facet.LINE_OF_BUSINESS)


def test_an_answer_is_tagged_as_the_entry_of_its_best_evidence():
    gold = make_entry(product_line=make_tag(), line_of_business=retail())
    other = make_entry("Loans take a week.", product_line=make_tag("loans"))
    asker = make_user()
    answered = make_answer(asker, cited=(gold, other))
    refused = make_answer(asker, near_misses=(other,))
    said = make_answer(asker, cited=(gold,), product_line=make_tag("loans"))
    nothing = make_answer(asker)

    count_uses()

    def tags(answer: Answer) -> tuple[Tag | None, Tag | None]:
        answer.refresh_from_db()
        return answer.product_line, answer.line_of_business

    assert tags(answered) == (make_tag(), retail())
    assert tags(refused) == (make_tag("loans"), None)
    assert tags(said) == (make_tag("loans"), retail())
    assert tags(nothing) == (None, None)


def test_who_asks_may_say_what_it_is_about():
    make_knowledge_base()
    make_tag(), retail(), make_tag("loans")
    client = rest_client(make_user())

    def asked(*tags: object):
        body = {"question": "What does it cost?", "tags": tags}
        return client.post("/api/v1/ask", body, format="json")

    made = asked("gold-card", "retail")
    answer = Answer.objects.get(pk=made.json()["id"])
    assert (answer.product_line, answer.line_of_business) == (make_tag(), retail())
    found = client.get("/api/v1/answers?product_line=gold-card").json()["results"]
    assert [one["id"] for one in found] == [str(answer.pk)]
    assert client.get("/api/v1/answers?product_line=loans").json()["results"] == []
    for wrong in (("gold-card", "loans"), ("nothing",), (7,), ("a", "b", "c")):
        assert asked(*wrong).status_code == 400, wrong


def test_a_question_that_is_only_tried_has_no_tags():
    make_knowledge_base()
    make_tag()
    client = rest_client(make_user())
    body = {"question": "What does it cost?"}

    tried = client.post("/api/v1/search", body, format="json")
    tagged = client.post(
        "/api/v1/search", {**body, "tags": ["gold-card"]}, format="json"
    )

    assert (tried.status_code, tagged.status_code) == (200, 400)
