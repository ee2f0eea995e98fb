import pytest
from django.contrib.auth.models import User
from django.test import Client

from accounts.roles import Role
from jobs.models import Job
from jobs.services import enqueue
from tests.clients import page_client
from tests.factories import make_user

pytestmark = pytest.mark.django_db
LIST = "/admin/jobs/job/"


def staff(role: Role) -> Client:
    user = make_user(role)
    User.objects.filter(pk=user.pk).update(is_staff=True)
    return page_client(User.objects.get(pk=user.pk))


@pytest.fixture
def job() -> Job:
    job = enqueue("kb.embed", {"model": "x"}, owner=make_user(username="olga"), total=9)
    Job.objects.update(done=3)
    return job


def test_jobs_are_listed_with_their_progress(job):
    page = staff(Role.ADMIN).get(LIST).content.decode()

    assert 'value="3"' in page
    assert "3 of 9" in page
    assert "olga" in page


def test_a_job_is_shown_and_cannot_be_edited(job):
    client = staff(Role.ADMIN)

    page = client.get(f"{LIST}{job.pk}/change/")
    edited = client.post(f"{LIST}{job.pk}/change/", {"kind": "other"})

    assert page.status_code == 200
    assert 'name="kind"' not in page.content.decode()
    assert edited.status_code == 403
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.get(f"{LIST}{job.pk}/delete/").status_code == 403


def act(client: Client, action: str, job: Job) -> str:
    data = {"action": action, "_selected_action": [str(job.pk)]}
    return client.post(LIST, data, follow=True).content.decode()


def test_selected_jobs_are_cancelled_and_retried(job):
    client = staff(Role.ADMIN)

    act(client, "cancel_selected", job)
    job.refresh_from_db()
    assert job.state == "cancelled"

    act(client, "retry_selected", job)
    job.refresh_from_db()
    assert job.state == "queued"


def test_an_action_that_a_jobs_state_forbids_says_why(job):
    assert "is queued; only a failed or cancelled job" in act(
        staff(Role.ADMIN), "retry_selected", job
    )


def test_the_job_that_is_shown_is_cancelled_and_retried(job):
    client = staff(Role.ADMIN)
    page = client.get(f"{LIST}{job.pk}/change/").content.decode()
    states = []

    for button in ("cancel_this", "retry_this"):
        address = f"{LIST}{job.pk}/{button}/"
        assert f'href="{address}"' in page
        client.post(address)
        job.refresh_from_db()
        states.append(job.state)

    assert states == ["cancelled", "queued"]


def test_a_curator_sees_jobs_and_is_offered_no_actions(job):
    client = staff(Role.CURATOR)

    page = client.get(LIST).content.decode()

    assert "kb.embed" in page
    assert "cancel_selected" not in page
    act(client, "cancel_selected", job)
    job.refresh_from_db()
    assert job.state == "queued"
