import json
import time
import uuid

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.roles import Role
from jobs.api import STREAM_SECONDS, stream
from jobs.models import Job
from jobs.services import enqueue
from tests.clients import page_client
from tests.factories import make_user
from workers.registry import HANDLERS

pytestmark = pytest.mark.django_db
JOBS = "/api/v1/jobs"


@pytest.fixture
def curator():
    return make_user(Role.CURATOR)


def test_a_job_is_shown_with_its_progress(curator):
    job = enqueue("kb.embed", {"model": "x"}, owner=curator, total=10)
    Job.objects.update(done=4, state="running", attempts=1, lease_until=timezone.now())

    shown = page_client(curator).get(f"{JOBS}/{job.pk}").json()

    assert shown == {
        "id": str(job.pk),
        "kind": "kb.embed",
        "parameters": {"model": "x"},
        "state": "running",
        "is_finished": False,
        "done": 4,
        "total": 10,
        "result": {},
        "error": "",
        "attempts": 1,
        "cancel_requested": False,
        "owner": curator.username,
        "created_at": shown["created_at"],
        "started_at": None,
        "finished_at": None,
    }


def test_the_list_holds_ones_own_jobs_and_an_admins_all(curator):
    own = enqueue("kb.embed", {}, owner=curator)
    others = enqueue("kb.embed", {}, owner=make_user())
    nobodys = enqueue("kb.embed", {})

    def listed(user) -> set[str]:
        rows = page_client(user).get(JOBS).json()["results"]
        return {row["id"] for row in rows}

    assert listed(curator) == {str(own.pk)}
    assert listed(make_user(Role.ADMIN)) == {
        str(job.pk) for job in (own, others, nobodys)
    }


def test_the_list_is_narrowed_by_state_and_kind(curator):
    enqueue("kb.embed", {}, owner=curator)
    wanted = enqueue("qa.evaluate", {}, owner=curator)
    Job.objects.filter(pk=wanted.pk).update(state="failed")

    rows = page_client(curator).get(JOBS, {"state": "failed", "kind": "qa.evaluate"})

    assert [row["id"] for row in rows.json()["results"]] == [str(wanted.pk)]
    assert page_client(curator).get(JOBS, {"state": "asleep"}).status_code == 400
    unknown = page_client(curator).get(JOBS, {"kind": "nope"})
    assert unknown.status_code == 400
    assert "kb.embed" in unknown.json()["error"]["message"]


def test_the_kinds_that_are_known_are_those_with_handlers():
    assert sorted(HANDLERS) == list(settings.JOB_KINDS)


def test_a_long_list_costs_no_more_statements_than_a_short_one(
    curator, django_assert_max_num_queries
):
    for _ in range(30):
        enqueue("kb.embed", {}, owner=curator)
    client = page_client(curator)

    # session, user, role to enter, role to see all, page
    with django_assert_max_num_queries(5):
        assert len(client.get(JOBS).json()["results"]) == 30


@pytest.mark.parametrize("tail", ["", "/events"])
def test_anothers_job_and_none_are_the_same_404(curator, tail):
    others = enqueue("kb.embed", {}, owner=make_user())

    for job_id in (others.pk, uuid.uuid4()):
        response = page_client(curator).get(f"{JOBS}/{job_id}{tail}")
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "job_not_found"


@pytest.mark.parametrize("tail", ["/cancel", "/retry"])
def test_anothers_job_cannot_be_steered(curator, tail):
    others = enqueue("kb.embed", {}, owner=make_user())

    assert page_client(curator).post(f"{JOBS}/{others.pk}{tail}").status_code == 404
    others.refresh_from_db()
    assert (others.state, others.cancel_requested) == ("queued", False)


def test_a_job_is_cancelled_and_retried(curator):
    job = enqueue("kb.embed", {}, owner=curator)
    client = page_client(curator)

    cancelled = client.post(f"{JOBS}/{job.pk}/cancel")
    again = client.post(f"{JOBS}/{job.pk}/retry")
    refused = client.post(f"{JOBS}/{job.pk}/retry")

    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    assert (again.status_code, again.json()["state"]) == (200, "queued")
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "job_state"


@pytest.mark.parametrize("tail", ["", "/events"])
def test_who_is_not_signed_in_sees_nothing(tail):
    job = enqueue("kb.embed", {})

    assert Client().get(f"{JOBS}/{job.pk}{tail}").status_code == 401
    assert page_client(make_user(role=None)).get(f"{JOBS}/{job.pk}").status_code == 403


def test_a_finished_jobs_stream_is_its_end_and_a_second_look_is_told_to_go(curator):
    job = enqueue("kb.embed", {}, owner=curator)
    Job.objects.update(state="succeeded", result={"n": 1})
    client = page_client(curator)

    first = client.get(
        f"{JOBS}/{job.pk}/events", headers={"accept": "text/event-stream"}
    )
    (end,) = events_in(b"".join(first).decode())
    second = client.get(f"{JOBS}/{job.pk}/events", headers={"last-event-id": end["id"]})

    assert first["Content-Type"].startswith("text/event-stream")
    assert end["event"] == "end"
    assert json.loads(end["data"])["result"] == {"n": 1}
    assert second.status_code == 204


@pytest.mark.django_db(transaction=True)  # a look closes its connection
def test_progress_is_sent_as_it_is_made_and_not_twice():
    job = enqueue("kb.embed", {})
    changes = iter([("done", 1), ("done", 2), ("state", "succeeded")])

    sent = []
    for text in stream(job.pk, look_seconds=0.05):
        found = events_in(text)
        sent += found
        if found and (change := next(changes, None)):
            Job.objects.update(**dict([change]))

    assert [event["event"] for event in sent] == ["progress"] * 3 + ["end"]
    assert [json.loads(event["data"])["done"] for event in sent] == [0, 1, 2, 2]


@pytest.mark.slow
def test_a_stream_ends_in_time_and_goes_on_after_the_last_event_that_was_seen():
    job = enqueue("kb.embed", {})
    began = time.monotonic()

    first = "".join(stream(job.pk, seconds=0.3, look_seconds=0.05))
    (seen,) = events_in(first)
    second = "".join(
        stream(job.pk, seconds=0.3, look_seconds=0.05, last_event_id=seen["id"])
    )

    assert time.monotonic() - began < STREAM_SECONDS
    assert first.startswith("retry: ")
    assert events_in(second) == []


def test_the_stream_of_a_job_that_is_deleted_ends():
    assert events_in("".join(stream(uuid.uuid4())))[0]["event"] == "end"


@pytest.mark.django_db(transaction=True)
def test_a_stream_holds_no_connection_between_two_looks():
    events = stream(enqueue("kb.embed", {}).pk, look_seconds=0.05)
    next(events)

    assert "progress" in next(events)

    assert connection.connection is None


def test_beyond_a_quarter_of_the_threads_a_follower_gets_one_look(settings):
    job = enqueue("kb.embed", {})
    followers = [stream(job.pk) for _ in range(settings.WEB_THREADS // 4)]
    for each in followers:
        assert next(each) == "retry: 1000\n\n"

    events = "".join(stream(job.pk))

    assert events.startswith("retry: 10000\n\n")
    assert [event["event"] for event in events_in(events)] == ["progress"]
    for each in followers:
        each.close()
    assert next(stream(job.pk)) == "retry: 1000\n\n"


def events_in(text: str) -> list[dict[str, str]]:
    blocks = [block for block in text.split("\n\n") if "event: " in block]
    return [
        dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks
    ]
