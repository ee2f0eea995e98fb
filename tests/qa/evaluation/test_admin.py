"""Evaluation runs in the admin: looked at by who may, started by who steers."""

import re

import pytest
from django.urls import reverse

from accounts.roles import Role
from jobs.models import Job
from qa.evaluation.runs import begin, finish, go_on
from qa.evaluation.suites.registry import open_suite
from tests.qa.evaluation import data_sets

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

START = "admin:qa_evaluationrun_start"


def test_a_run_shows_its_protocol_its_rates_and_its_curves(enter, tmp_path):
    data_sets.squad2(tmp_path)
    suite = open_suite("squad2", data=tmp_path, shadow=True)
    run = begin(suite)
    list(go_on(run, suite))
    finish(run)
    client = enter(Role.ADMIN)

    listed = client.get(reverse("admin:qa_evaluationrun_changelist")).content.decode()
    address = reverse("admin:qa_evaluationrun_change", args=[run.pk])
    page = client.get(address).content.decode()

    assert "7 of 7" in listed
    assert "false answers 100.0%" in listed
    assert "Known leakage" in page
    assert "false refusals" in page
    assert re.search(r"<td[^>]*>exact match</td>\s*<td[^>]*>all</td>", page)
    curve = reverse("admin:qa_evaluationrun_curve", args=[run.pk, "risk_coverage"])
    assert curve in page
    drawn = client.get(curve)
    assert drawn["Content-Type"] == "image/svg+xml"
    assert b"<svg" in drawn.content
    tried = reverse("admin:qa_policy_calibrate", args=[run.knowledge_base_id])
    assert f"{tried}?run={run.pk}" in page
    assert client.get(tried, {"run": run.pk}).status_code == 200
    unknown = reverse("admin:qa_evaluationrun_curve", args=[run.pk, "nothing"])
    assert client.get(unknown).status_code == 404


def test_an_admin_starts_a_run_once_on_data_below_the_directory(
    enter, tmp_path, settings
):
    data_sets.squad2(tmp_path)
    settings.EVALUATION_DATA = str(tmp_path)
    chosen = {"suite": "squad2", "data_set": "squad", "limit": "5", "shadow": "on"}
    client = enter(Role.ADMIN)

    pages = [client.post(reverse(START), chosen) for _ in range(2)]

    assert [page.status_code for page in pages] == [302, 302]
    job = Job.objects.get()
    assert job.parameters == {
        "suite": "squad2",
        "data": str(tmp_path / "squad"),
        "limit": 5,
        "shadow": True,
    }


@pytest.mark.parametrize("path", ["..", "/etc/passwd", "nothing"])
def test_no_path_leads_out_of_the_directory(enter, tmp_path, settings, path):
    settings.EVALUATION_DATA = str(tmp_path)

    page = enter(Role.ADMIN).post(reverse(START), {"suite": "demo", "data_set": path})

    assert "There is no" in page.content.decode()
    assert not Job.objects.exists()


def test_without_a_directory_no_path_is_taken(enter, settings):
    settings.EVALUATION_DATA = ""

    page = enter(Role.ADMIN).post(reverse(START), {"suite": "demo", "data_set": "x"})

    assert "NESCIO_EVALUATION_DATA is not set" in page.content.decode()


def test_a_curator_starts_no_run(enter):
    page = enter(Role.CURATOR).post(reverse(START), {"suite": "demo"})

    assert page.status_code == 403
    assert not Job.objects.exists()
