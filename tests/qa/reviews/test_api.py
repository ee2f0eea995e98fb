"""Reviews over REST: hold, judge, pass on, take back; samples, agreement, the table."""

import csv
import io

import pytest

from accounts.roles import Role
from accounts.services import set_knowledge_roles
from qa.models import Review
from tests.clients import rest_client
from tests.factories import make_audience, make_knowledge_base, make_tag, make_user
from tests.qa.reviews.review_rows import drawn, make_review
from tests.qa.reviews.test_sampling import make_answers, order

pytestmark = pytest.mark.django_db
URL = "/api/v1/reviews"


def test_an_answer_is_held_judged_and_taken_back():
    review = make_review()
    client = rest_client(make_user(Role.SME, username="olga"))

    held = client.post(f"{URL}/next").json()
    piece = held["evidence"][0]
    judged = client.put(
        f"{URL}/{review.pk}/judgement",
        {
            "completeness": 2,
            "correctness": 2,
            "truthfulness": 2,
            "evidence_used": [piece["id"]],
        },
        format="json",
    ).json()
    undone = client.delete(f"{URL}/{review.pk}/judgement").json()

    assert (held["id"], held["state"], held["locked_by"]) == (
        review.pk,
        "locked",
        "olga",
    )
    assert piece["text"] == "A replacement card costs 12 euros."
    assert (judged["state"], judged["right_to_show"]) == ("done", True)
    assert (undone["state"], undone["correctness"]) == ("locked", 2)
    assert client.delete(f"{URL}/{review.pk}/judgement").status_code == 409


def test_what_is_wrong_with_a_judgement_is_told():
    review = make_review(refused=True)
    client = rest_client(make_user(Role.SME))
    address = f"{URL}/{review.pk}/judgement"
    both = {
        "add": {"audience": make_audience().slug},
        "mend": {"entry": 1, "text": "It."},
    }
    for wrong in (
        {},
        {"completeness": 2},
        {"should_be_answered": "yes"},
        {"should_be_answered": True, "correctnes": 2},
        {"should_be_answered": True, "evidence_used": [1]},
        {"should_be_answered": True, "add": {"audience": "none"}},
        {"should_be_answered": True, "add": {"audience": "everyone"}},
        {"should_be_answered": True, **both},
    ):
        assert client.put(address, wrong, format="json").status_code == 400, wrong
    assert Review.objects.get().state == "waiting"


@pytest.mark.slow
def test_a_review_that_somebody_holds_is_refused_to_others():
    review = make_review()
    first, second = rest_client(make_user(Role.SME)), rest_client(make_user(Role.SME))
    assert first.put(f"{URL}/{review.pk}/lock").status_code == 200

    assert second.put(f"{URL}/{review.pk}/lock").status_code == 409
    assert second.post(f"{URL}/{review.pk}/skip").status_code == 409
    assert second.delete(f"{URL}/{review.pk}/lock").status_code == 409
    assert second.post(f"{URL}/next").status_code == 204
    assert first.delete(f"{URL}/{review.pk}/lock").json()["state"] == "waiting"
    assert first.post(f"{URL}/{review.pk}/skip").json()["state"] == "skipped"
    assert second.post(f"{URL}/next").json()["id"] == review.pk


def test_a_draft_is_its_reviewers_alone():
    review = make_review()
    first, second = rest_client(make_user(Role.SME)), rest_client(make_user(Role.SME))
    said = {
        "completeness": 0,
        "correctness": 0,
        "truthfulness": 0,
        "note": "All wrong.",
    }
    first.put(f"{URL}/{review.pk}/judgement", said, format="json")
    first.delete(f"{URL}/{review.pk}/judgement")

    assert first.get(f"{URL}/{review.pk}").json()["note"] == "All wrong."
    for seen in (
        second.get(f"{URL}/{review.pk}").json(),
        second.get(URL).json()["results"][0],
    ):
        assert (seen["note"], seen["correctness"]) == ("", None)


@pytest.mark.slow
def test_a_judgement_is_told_to_others_once_no_second_opinion_is_to_come():
    review = make_review()
    second = Review.objects.create(answer=review.answer, round=2)
    first, other = rest_client(make_user(Role.SME)), rest_client(make_user(Role.SME))
    said = {"completeness": 0, "correctness": 0, "truthfulness": 0, "note": "Wrong."}
    first.put(f"{URL}/{review.pk}/judgement", said, format="json")

    def told(client):
        one = client.get(f"{URL}/{review.pk}").json()
        listed = {row["id"]: row for row in client.get(URL).json()["results"]}
        table = b"".join(client.get(f"{URL}/export").streaming_content).decode()
        assert one["note"] == listed[review.pk]["note"]
        return one["note"], one["right_to_show"], one["reviewed_by"], "Wrong." in table

    assert told(first)[:2] == ("Wrong.", False)
    assert told(first)[3]
    assert told(other) == ("", None, None, False)
    other.put(f"{URL}/{second.pk}/judgement", said, format="json")
    assert told(other)[:2] == ("Wrong.", False)


def test_what_a_hidden_entry_was_made_of_is_told_to_nobody_outside():
    board = make_audience("board", groups=["board"])
    review = make_review(refused=True)
    insider, outsider = (
        rest_client(make_user(Role.SME, groups=["board"])),
        rest_client(make_user(Role.SME)),
    )
    said = {
        "should_be_answered": True,
        "ideal_answer": "The limit is 900 euros.",
        "add": {"audience": board.slug},
    }
    done = insider.put(f"{URL}/{review.pk}/judgement", said, format="json")

    assert (done.status_code, insider.get(f"{URL}/{review.pk}").status_code) == (
        200,
        200,
    )
    assert outsider.get(f"{URL}/{review.pk}").status_code == 404
    assert outsider.get(URL).json()["results"] == []


def test_lists_are_narrowed_and_ask_as_much_whatever_their_length(
    django_assert_num_queries,
):
    for _ in range(5):
        make_review(tag=make_tag())
    make_review(refused=True)
    client = rest_client(make_user(Role.SME))

    with django_assert_num_queries(5):
        found = client.get(f"{URL}?tag=gold-card").json()["results"]

    assert len(found) == 5
    assert len(client.get(f"{URL}?outcome=refused").json()["results"]) == 1
    assert client.get(f"{URL}?state=nonsense").status_code == 400
    for unknown in ("tag=nope", "knowledge_base=nope"):
        refused = client.get(f"{URL}?{unknown}")
        assert refused.status_code == 400
        assert "'nope'; available: " in refused.json()["error"]["message"]
        assert client.get(f"{URL}/export?{unknown}").status_code == 400


def test_judgements_are_downloaded_with_what_they_weigh():
    make_answers(3)
    sample = drawn(order(hours=0.2))
    client = rest_client(make_user(Role.SME))
    said = {"completeness": 2, "correctness": 1, "truthfulness": 2, "note": "=1+1"}
    review = Review.objects.latest("pk")
    client.put(f"{URL}/{review.pk}/judgement", said, format="json")

    text = client.get(f"{URL}/export").getvalue().decode()

    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["correctness"], row["right_to_show"]) == ("1", "False")
    assert (row["sample"], row["stratum_population"], row["stratum_drawn"]) == (
        str(sample.pk),
        "3",
        "2",
    )
    assert row["note"] == "'=1+1"


def test_samples_are_listed_and_drawn_by_curators():
    from jobs.models import Job

    make_answers(3)
    drawn(order())
    expert, curator = (
        rest_client(make_user(Role.SME)),
        rest_client(make_user(Role.CURATOR)),
    )
    wanted = {
        "knowledge_base": "cards",
        "hours": 1.0,
        "since": "2026-01-01T00:00:00Z",
        "until": "2026-01-02T00:00:00Z",
        "seed": 3,
    }
    address = f"{URL}/samples"

    (sample,) = expert.get(address).json()["results"]
    assert (sample["population"], sample["strata"][0]["drawn"]) == (3, 3)
    assert expert.post(address, wanted, format="json").status_code == 403
    refused = curator.post(address, {**wanted, "hours": 0}, format="json")
    assert refused.status_code == 400
    backwards = {**wanted, "until": "2025-01-01T00:00:00Z"}
    refused = curator.post(address, backwards, format="json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (
        400,
        "invalid_sample",
    )
    made = curator.post(address, wanted, format="json")
    job = Job.objects.get()
    assert (made.status_code, job.kind) == (202, "qa.draw_reviews")
    assert job.parameters["knowledge_base_slug"] == "cards"


def test_a_curator_of_one_knowledge_base_draws_and_reads_samples_there_alone():
    make_answers(3)
    drawn(order())
    user = make_user(role=None)
    set_knowledge_roles(user, {make_knowledge_base("travel").pk: "curator"})
    curator, address = rest_client(user), f"{URL}/samples"
    wanted = {
        "hours": 1.0,
        "since": "2026-01-01T00:00:00Z",
        "until": "2026-01-02T00:00:00Z",
        "seed": 3,
    }

    refused = curator.post(address, {**wanted, "knowledge_base": "cards"}, "json")
    made = curator.post(address, {**wanted, "knowledge_base": "travel"}, "json")

    assert curator.get(address).json()["results"] == []
    assert (refused.status_code, refused.json()["error"]["code"]) == (
        403,
        "role_elsewhere",
    )
    assert made.status_code == 202


def test_agreement_is_told_with_its_interval():
    found = rest_client(make_user(Role.SME)).get(f"{URL}/agreement").json()

    assert [each["name"] for each in found][:2] == [
        "right_to_show",
        "should_be_answered",
    ]
    assert (found[0]["pairs"], found[0]["kappa"]) == (0, None)


def test_agreement_tells_who_has_the_role_in_one_knowledge_base_what_is_missing():
    user = make_user(role=None)
    set_knowledge_roles(user, {make_knowledge_base("travel").pk: "curator"})

    refused = rest_client(user).get(f"{URL}/agreement")

    assert refused.status_code == 403
    said = refused.json()["error"]["message"]
    assert "the role sme in all of them; you have it only in some" in said


def test_agents_review_nothing():
    review = make_review()
    client = rest_client(make_user(Role.AGENT))

    for address in (URL, f"{URL}/{review.pk}", f"{URL}/samples", f"{URL}/agreement"):
        assert client.get(address).status_code == 403
    assert client.post(f"{URL}/next").status_code == 403
