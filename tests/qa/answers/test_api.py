"""Looking back, voting, trying out and reading policies over REST."""

from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from accounts.roles import Role
from accounts.services import set_knowledge_roles
from kb.documents.models import KnowledgeBase
from qa.models import Answer, Vote
from qa.pipeline.policy import RetrievalTiming, Scope
from qa.policies.services import ensure_default_policy, new_version
from tests.clients import rest_client
from tests.factories import (
    make_audience,
    make_document,
    make_entry,
    make_knowledge_base,
    make_user,
    put_in_force,
)
from tests.qa.answer_rows import make_answer, make_asked_back

pytestmark = pytest.mark.django_db


@pytest.fixture
def asker():
    return make_user(username="agnes")


@pytest.fixture
def client(asker):
    return rest_client(asker)


def ids(response) -> list[str]:
    assert response.status_code == 200, response.content
    return [answer["id"] for answer in response.json()["results"]]


def test_an_agent_sees_own_answers_and_who_reviews_sees_all(client, asker):
    own = make_answer(asker)
    other = make_answer(make_user())

    assert ids(client.get("/api/v1/answers")) == [str(own.pk)]
    for role in (Role.SME, Role.ADMIN):
        listed = rest_client(make_user(role)).get("/api/v1/answers")
        assert ids(listed) == [str(other.pk), str(own.pk)]


def test_another_users_answer_is_404_and_looks_like_none(client):
    other = make_answer(make_user())

    hidden = client.get(f"/api/v1/answers/{other.pk}")
    missing = client.get(f"/api/v1/answers/{uuid4()}")

    assert hidden.status_code == missing.status_code == 404
    assert hidden.json()["error"]["code"] == missing.json()["error"]["code"]
    assert f"no answer {other.pk} that" in hidden.json()["error"]["message"]
    reviewer = rest_client(make_user(Role.SME))
    assert reviewer.get(f"/api/v1/answers/{other.pk}").status_code == 200


WRITTEN: dict[str, Any] = {
    "text": "A card costs 12 euros.",
    "signals": [
        {"gate": "abstention", "name": name, "value": value, "threshold": 0.5, "passed": None}
        for name, value in (("answer_confidence", 0.83), ("early_confidence", None))
    ],
    "generation": {"short_answer": "12 euros", "tokens": ["12", " euros"]},
    "confidence": {"along": [0.1, 0.5], "missing": ""},
    "probes": "p" * 64,
}  # fmt: skip


def test_an_answer_carries_the_words_that_answer_and_how_sure_they_are(client, asker):
    answer = make_answer(
        asker, cited=(make_entry("A card costs 12 euros."),), **WRITTEN
    )

    shown = client.get(f"/api/v1/answers/{answer.pk}").json()

    assert shown["short_answer"] == "12 euros"
    assert shown["confidence"] == {
        "answer": 0.83,
        "early": None,
        "joint": None,
        "tokens": [
            {"text": "12", "confidence": 0.1},
            {"text": " euros", "confidence": 0.5},
        ],
    }
    assert shown["effective"]["probes"] == "p" * 64
    assert shown["effective"]["min_confidence"] == 0.0


def test_a_refusal_carries_its_confidence_and_nothing_of_the_draft(client, asker):
    refused = make_answer(asker, gate="abstention", reason="low_confidence", shown_reason="low_confidence", **WRITTEN | {"text": "No."})  # fmt: skip

    shown = client.get(f"/api/v1/answers/{refused.pk}").json()

    assert (shown["gate"], shown["reason"]) == ("abstention", "low_confidence")
    assert shown["short_answer"] == ""
    assert (shown["confidence"]["answer"], shown["confidence"]["tokens"]) == (0.83, [])


def test_without_a_probe_there_is_no_confidence(client, asker):
    answer = make_answer(asker, cited=(make_entry(),))

    shown = client.get(f"/api/v1/answers/{answer.pk}").json()

    assert (shown["short_answer"], shown["confidence"]) == ("", None)


def test_words_of_an_answer_that_rests_on_what_one_may_not_see_are_left_out(asker):
    secret = make_entry(
        "A card costs 12 euros.", audience=make_audience("board", groups=["board"])
    )
    answer = make_answer(asker, cited=(secret,), **WRITTEN)

    shown = rest_client(make_user(Role.SME)).get(f"/api/v1/answers/{answer.pk}").json()

    assert (shown["withheld"], shown["short_answer"]) == (True, "")
    assert shown["confidence"]["tokens"] == []


def test_an_answer_shows_its_evidence_as_it_was_then(client, asker):
    document = make_document("Price list")
    cited = make_entry("A card costs 12 euros.", document=document)
    unused = make_entry("Cards are blue.")
    answer = make_answer(asker, cited=(cited,), unused=(unused,))
    cited.revisions.model.objects.filter(entry=cited).latest("number")

    shown = client.get(f"/api/v1/answers/{answer.pk}").json()

    assert [piece["entry"] for piece in shown["citations"]] == [cited.pk]
    assert [(p["n"], p["cited"]) for p in shown["evidence"]] == [(1, True), (2, False)]
    assert shown["citations"][0]["document"] == "Price list"
    assert shown["citations"][0]["text"] == "A card costs 12 euros."
    assert shown["near_misses"] == []


def test_a_refusal_shows_near_misses_apart(client, asker):
    near = make_entry("Cards are blue.")
    answer = make_answer(asker, near_misses=(near,))

    shown = client.get(f"/api/v1/answers/{answer.pk}").json()

    assert shown["citations"] == shown["evidence"] == []
    assert [piece["entry"] for piece in shown["near_misses"]] == [near.pk]


@pytest.mark.parametrize(
    ("reason", "count", "is_asked"),
    [
        ("not_answered", 2, True),
        ("model_declined", 2, True),
        ("sources_disagree", 2, False),
        ("not_answered", 0, False),
    ],
)
def test_a_refusal_names_the_entries_between_which_it_does_not_decide(
    client, asker, reason, count, is_asked
):
    near = [make_entry("Blue is free."), make_entry("Red is not.")]
    answer = make_asked_back(
        asker,
        *near,
        make_entry("Cash."),
        count=count,
        reason=reason,
        shown_reason=reason,
    )

    shown = client.get(f"/api/v1/answers/{answer.pk}").json()

    assert shown["meanings"] == ([each.pk for each in near] if is_asked else [])


@pytest.mark.parametrize(
    ("outcome", "text"), [("pending", "still being decided"), ("failed", "ask again")]
)
def test_what_is_not_decided_has_a_text_all_the_same(client, asker, outcome, text):
    answer = make_answer(
        asker, outcome=outcome, gate="", reason="", shown_reason="", text="",
        policy=None, calibration="", milliseconds={},
    )  # fmt: skip

    shown = client.get(f"/api/v1/answers/{answer.pk}").json()

    assert text in shown["text"]
    assert shown["answered"] is False
    assert shown["effective"] is None


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"outcome": "answered"}, ["answered"]),
        ({"outcome": "refused"}, ["refused"]),
        ({"gate": "hard_refusal"}, ["refused"]),
        ({"reason": "too_far"}, ["refused"]),
        ({"reason": "expired_only"}, []),
        ({"created_after": "2030-01-01T00:00:00Z"}, []),
        ({"created_before": "2020-01-01T00:00:00Z"}, []),
    ],
)
def test_the_list_is_narrowed_by_filters(client, asker, filters, found):
    make_answer(asker)
    make_answer(asker, cited=(make_entry(),))

    response = client.get("/api/v1/answers", filters)

    assert [answer["outcome"] for answer in response.json()["results"]] == found


def test_an_answer_says_which_knowledge_base_was_asked(client, asker):
    make_entry("It costs 12 euros.", question="What does a replacement card cost?")

    asked = client.post(
        "/api/v1/ask", {"question": "What does a replacement card cost?"}, format="json"
    ).json()
    read = client.get(f"/api/v1/answers/{asked['id']}").json()
    (listed,) = client.get("/api/v1/answers").json()["results"]

    assert {each["knowledge_base"] for each in (asked, read, listed)} == {"cards"}


def test_answers_are_found_by_knowledge_base_asker_and_conversation(asker):
    first, ada = make_answer(asker), make_answer(make_user(username="ada"))
    Answer.objects.filter(pk=ada.pk).update(
        knowledge_base=make_knowledge_base("other"), conversation=first.pk
    )
    expert = rest_client(make_user(Role.SME))

    def found(**filters: Any) -> list[str]:
        return ids(expert.get("/api/v1/answers", filters))

    assert found(knowledge_base="other") == [str(ada.pk)]
    assert found(asker="agnes") == [str(first.pk)]
    assert found(asker="nobody") == []
    assert found(conversation=first.pk) == [str(ada.pk), str(first.pk)]
    assert found(conversation=uuid4()) == []
    unknown = expert.get("/api/v1/answers", {"knowledge_base": "absent"})
    assert unknown.status_code == 400
    assert "available: cards, other" in unknown.json()["error"]["message"]


def test_a_filter_by_asker_or_conversation_opens_nobody_elses_answers(client):
    other = make_answer(make_user(username="ada"))

    for filters in ({"asker": "ada"}, {"conversation": other.pk}):
        assert ids(client.get("/api/v1/answers", filters)) == []


def test_answers_are_found_by_the_votes_that_one_may_read(client, asker):
    reviewer = make_user(Role.SME)
    mine, theirs, none = make_answer(asker), make_answer(asker), make_answer(asker)
    Vote.objects.create(answer=mine, user=asker, is_up=True)
    Vote.objects.create(answer=theirs, user=reviewer, is_up=False)
    elsewhere = make_user()
    set_knowledge_roles(elsewhere, {make_knowledge_base("other").pk: "curator"})
    own = make_answer(elsewhere)
    Vote.objects.create(answer=own, user=reviewer, is_up=True)

    def found(by, vote: str) -> set[str]:
        return set(ids(by.get("/api/v1/answers", {"vote": vote})))

    assert found(client, "up") == {str(mine.pk)}
    assert found(client, "down") == set()  # whether experts voted is not for agents
    assert found(client, "none") == {str(theirs.pk), str(none.pk)}
    expert = rest_client(make_user(Role.SME))
    assert found(expert, "up") == {str(mine.pk), str(own.pk)}
    assert found(expert, "down") == {str(theirs.pk)}
    assert found(expert, "none") == {str(none.pk)}
    there = rest_client(elsewhere)  # an agent here: their own answers and votes
    assert (found(there, "up"), found(there, "none")) == (set(), {str(own.pk)})


def test_a_reason_that_was_hidden_can_not_be_filtered_for(client, asker):
    make_answer(asker, reason="not_entitled", shown_reason="nothing_known")

    assert ids(client.get("/api/v1/answers", {"reason": "not_entitled"})) == []


@pytest.mark.parametrize(
    "query",
    [
        "knowledge_base=", "asker=", "conversation=x", "vote=maybe", "outcome=maybe", "outcome=", "gate=x", "reason=%00", "created_after=yesterday",
        "created_before=", "page_size=0", "page_size=201", "page_size=x", "page_size=",
        "cursor=x", "cursor=cD1hYmM%3D", "cursor=cD0lMDA%3D", "cursor=%00",
    ],
)  # fmt: skip
def test_a_filter_that_can_not_be_read_is_400_and_named(client, asker, query):
    make_answer(asker)

    response = client.get(f"/api/v1/answers?{query}")

    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] == "invalid"
    assert list(error["detail"]) == [query.split("=")[0]]


def test_pages_follow_each_other_without_gap_or_repetition(client, asker):
    made = [str(make_answer(asker).pk) for _ in range(5)]

    seen = []
    page = client.get("/api/v1/answers", {"page_size": 2}).json()
    for _ in range(3):
        seen += [answer["id"] for answer in page["results"]]
        page = client.get(page["next"]).json() if page["next"] else page

    assert seen == made[::-1]


def test_rows_of_one_moment_are_paged_whole(client, asker):
    made = {str(make_answer(asker).pk) for _ in range(5)}
    Answer.objects.update(created_at=timezone.now())

    seen = []
    page = client.get("/api/v1/answers", {"page_size": 2}).json()
    for _ in range(3):
        seen += [answer["id"] for answer in page["results"]]
        page = client.get(page["next"]).json() if page["next"] else page

    assert len(seen) == 5
    assert set(seen) == made


def test_the_list_costs_the_same_for_any_number_of_answers(
    client, asker, django_assert_num_queries
):
    for _ in range(10):
        make_answer(asker, cited=(make_entry(),))

    with django_assert_num_queries(3):  # may ask, sees all?, the rows
        client.get("/api/v1/answers")


def test_the_detail_costs_the_same_for_any_amount_of_evidence(
    client, asker, django_assert_num_queries
):
    entries = tuple(make_entry(f"Card {n} costs {n} euros.") for n in range(5))
    answer = make_answer(asker, cited=entries[:3], unused=entries[3:])

    with django_assert_num_queries(4):  # may ask, sees all?, the row, its evidence
        client.get(f"/api/v1/answers/{answer.pk}")


def test_a_thumb_is_set_changed_and_taken_back(client, asker):
    answer = make_answer(asker)
    url = f"/api/v1/answers/{answer.pk}/vote"

    down = client.put(url, {"rating": "down", "comment": " Wrong. "}, format="json")
    shown = client.get(f"/api/v1/answers/{answer.pk}").json()["vote"]
    client.put(url, {"rating": "up"}, format="json")
    changed = Vote.objects.get()
    taken = client.put(url, {"rating": None}, format="json")

    nothing: dict[str, object] = {
        "reasons": [],
        "comment": "",
        "expected_answer": "",
        "answering_entry": None,
    }
    assert down.json() == {"rating": "down", **nothing, "comment": "Wrong."}
    assert shown == "down"
    assert (changed.is_up, changed.comment) == (True, "")
    assert taken.json() == {"rating": None, **nothing}
    assert not Vote.objects.exists()


def test_everybody_reads_their_own_vote(client, asker):
    answer = make_answer(asker)
    reviewer = rest_client(make_user(Role.SME))
    url = f"/api/v1/answers/{answer.pk}"

    reviewer.put(f"{url}/vote", {"rating": "up"}, format="json")

    assert client.get(url).json()["vote"] is None
    assert reviewer.get(url).json()["vote"] == "up"
    assert len(ids(reviewer.get("/api/v1/answers"))) == 1


@pytest.mark.parametrize(
    "body",
    [
        {}, {"rating": "sideways"}, {"rating": True}, {"rating": ["up"]},
        {"rating": "up", "comment": 5}, {"rating": "up", "comment": "x" * 2001},
        {"rating": "up", "stars": 5}, [], "up",
        {"rating": "down", "reasons": ["bad"]}, {"rating": "down", "reasons": "other"},
    ],
)  # fmt: skip
def test_a_bad_vote_is_400_and_changes_nothing(client, asker, body):
    answer = make_answer(asker)

    response = client.put(f"/api/v1/answers/{answer.pk}/vote", body, format="json")

    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid"
    assert not Vote.objects.exists()


def test_voting_on_another_users_answer_is_404_and_changes_nothing(client):
    answer = make_answer(make_user())

    response = client.put(
        f"/api/v1/answers/{answer.pk}/vote", {"rating": "up"}, format="json"
    )

    assert response.status_code == 404
    assert not Vote.objects.exists()


def test_voting_before_a_decision_is_409(client, asker):
    answer = make_answer(
        asker, outcome="pending", gate="", reason="", shown_reason="", text=""
    )

    response = client.put(
        f"/api/v1/answers/{answer.pk}/vote", {"rating": "up"}, format="json"
    )

    assert response.status_code == 409
    assert not Vote.objects.exists()


def search(client, question: str):
    return client.post("/api/v1/search", {"question": question}, format="json")


def test_the_playground_decides_as_asking_does_and_stores_nothing(client):
    make_entry("It costs 12 euros.", question="What does a replacement card cost?")

    for question in ("What does a replacement card cost?", "Who won the cup in 1974?"):
        found = search(client, question).json()
        assert not Answer.objects.exists()
        asked = client.post("/api/v1/ask", {"question": question}, format="json").json()
        Answer.objects.all().delete()

        assert found["verbatim"] is (asked["gate"] == "verbatim")
        assert found["passes"] is (asked["gate"] != "hard_refusal")
        assert found["reason"] == asked["reason"]
        # Whether sources agree is asked of an answer alone.
        assert found["signals"] == [
            signal for signal in asked["signals"] if signal["gate"] != "agreement"
        ]
        assert found["alpha"] == asked["effective"]["alpha"]
        assert found["embedder"] == asked["effective"]["embedder"]


@pytest.mark.parametrize("timing", RetrievalTiming)
def test_the_playground_looks_for_evidence_under_each_timing(client, timing):
    make_entry("A replacement card costs 12 euros.")
    is_always = timing is RetrievalTiming.ALWAYS
    scope = Scope.KNOWLEDGE_BASE if is_always else Scope.ADAPTIVE
    first = ensure_default_policy(KnowledgeBase.objects.get())
    put_in_force(new_version(first, by=None, scope=scope, retrieval_timing=timing))

    near = search(client, "What does a replacement card cost?")
    far = search(client, "Who won the cup in 1974?")

    assert (near.status_code, far.status_code) == (200, 200)
    assert near.json()["passes"]
    assert len(near.json()["evidence"]) == 1
    assert (far.json()["passes"], far.json()["reason"]) == (False, "nothing_known")
    gates = {signal["gate"] for signal in near.json()["signals"]}
    assert gates == {"verbatim", "hard_refusal"}
    assert not Answer.objects.exists()


def test_the_playground_shows_what_was_found_and_how(client):
    entry = make_entry("A replacement card costs 12 euros.")

    [piece] = search(client, "replacement card").json()["evidence"]

    assert piece["entry"] == entry.pk
    assert piece["vector_rank"] == 1
    assert piece["text_rank"] == 1
    assert 0 < piece["distance"] < 2
    assert piece["ratio"] == pytest.approx(piece["distance"] / piece["confidence"])


def test_the_playground_shows_nothing_that_the_caller_may_not_see(client):
    make_entry("Secret steps.", audience=make_audience("fraud", groups=["fraud"]))

    whole = search(client, "Secret steps").content.decode()

    assert "Secret steps." not in whole
    assert "not_entitled" not in whole


def test_policies_are_readable(client, asker):
    make_answer(asker)

    [policy] = client.get("/api/v1/policies", {"is_active": "true"}).json()["results"]
    inactive = client.get("/api/v1/policies", {"is_active": "false"}).json()["results"]

    assert (policy["knowledge_base"], policy["version"]) == ("cards", 1)
    assert policy["alpha"] == 0.85
    assert inactive == []
