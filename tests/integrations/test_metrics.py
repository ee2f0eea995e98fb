"""Metrics, read by Prometheus' own parser, and log lines of a request's work."""

import json
import logging
import re
import subprocess
import sys
from datetime import timedelta

import pytest
import yaml
from django.conf import settings as configured
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from accounts.request_ids import named
from accounts.roles import Role
from accounts.services import create_token
from jobs.models import Job
from jobs.services import enqueue
from nescio.middleware import JsonFormatter, RequestIdFilter
from probes.verifier.scoring import load_verifier
from qa.answers import asking
from qa.models import Answer, DriftReading
from qa.pipeline.weighing import Passage
from qa.policies.services import ensure_default_policy
from tests.factories import make_entry, make_knowledge_base, make_user
from tests.qa.calibration.test_pages import make_certificate

pytestmark = pytest.mark.slow

FEE = "What does a replacement card cost?"
SECRET = "metrics-only"
MONITORING = configured.BASE_DIR / "monitoring"
NAME = re.compile(r"\bnescio_[a-z_]+")


@pytest.fixture
def scrape(client, settings, db):
    settings.METRICS_TOKEN = SECRET

    def read() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        response = client.get("/metrics", headers={"authorization": f"Bearer {SECRET}"})
        assert response.status_code == 200, response.content
        families = text_string_to_metric_families(response.content.decode())
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }

    return read


def value(found, name: str, **labels: str) -> float:
    return float(
        sum(
            number
            for (each, given), number in found.items()
            if each == name and labels.items() <= dict(given).items()
        )
    )


def test_questions_are_counted_by_outcome_and_gate_with_their_stages(scrape):
    make_entry("It costs 12 euros.", question=FEE)
    before = scrape()

    for question in (FEE, "Who won the cup in 1974?"):
        asking.ask(question, asker=make_user(), channel=Answer.Channel.API)

    after = scrape()
    for labels in (
        {"outcome": "answered", "gate": "verbatim", "reason": ""},
        {"outcome": "refused", "gate": "hard_refusal", "reason": "nothing_known"},
    ):
        labels |= {"knowledge_base": "cards", "channel": "api"}
        name = "nescio_questions_total"
        assert value(after, name, **labels) == value(before, name, **labels) + 1
    name = "nescio_stage_seconds_count"
    assert value(after, name, stage="retrieve") == (
        value(before, name, stage="retrieve") + 2
    )


def test_jobs_are_counted_by_queue_with_the_age_of_the_oldest(
    scrape, django_assert_num_queries
):
    job = enqueue("qa.find_gaps", {})
    Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(hours=2))
    enqueue("qa.find_gaps", {"again": True})

    with django_assert_num_queries(5):
        found = scrape()

    assert value(found, "nescio_jobs", kind="qa.find_gaps", state="queued") == 2
    assert value(found, "nescio_job_oldest_seconds", kind="qa.find_gaps") > 7_000
    assert value(found, "nescio_database_up") == 1
    assert value(found, "nescio_questions_pending") == 0


def test_of_each_kind_the_last_job_that_ended_is_shown(scrape):
    now = timezone.now()
    for state, hours, seconds in (
        (Job.State.SUCCEEDED, 2, 30),
        (Job.State.SUCCEEDED, 1, 40),
        (Job.State.FAILED, 3, 5),
    ):
        ended = now - timedelta(hours=hours)
        job = enqueue("qa.find_gaps", {"hours": hours, "state": state})
        begun = ended - timedelta(seconds=seconds)
        Job.objects.filter(pk=job.pk).update(
            state=state, started_at=begun, finished_at=ended
        )

    found = scrape()

    for ending, hours, seconds in (("succeeded", 1, 40), ("failed", 3, 5)):
        at = (now - timedelta(hours=hours)).timestamp()
        for name, expected in (
            ("finished_timestamp_seconds", at),
            ("seconds", seconds),
        ):
            shown = value(found, f"nescio_job_last_{name}", state=ending)
            assert shown == pytest.approx(expected)


def test_texts_that_the_verifier_keeps_are_not_read_again(scrape):
    verifier, entry = load_verifier(), Passage("Prices", "", "", "It costs 12 euros.")
    before = scrape()

    for _ in range(2):
        verifier.score(FEE, [entry])

    after, name = scrape(), "nescio_verifier_texts_total"
    for how in ("kept", "read"):
        assert value(after, name, how=how) == value(before, name, how=how) + 1


def test_drift_is_the_latest_look_of_the_active_policy(scrape):
    certificate = make_certificate(ensure_default_policy(make_knowledge_base()))
    for hours, has_drifted in ((2, False), (1, True)):
        reading = DriftReading.objects.create(
            certificate=certificate, answers=9, has_drifted=has_drifted, signals={}
        )
        at = timezone.now() - timedelta(hours=hours)
        DriftReading.objects.filter(pk=reading.pk).update(checked_at=at)

    assert value(scrape(), "nescio_drift", knowledge_base="cards") == 1


def test_requests_are_counted_by_their_route(scrape, client):
    client.get("/api/v1/answers/00000000-0000-4000-8000-000000000000")
    client.get("/no/such/address")

    found = scrape()

    name = "nescio_http_request_seconds_count"
    assert value(found, name, route="api/v1/answers/<uuid:answer_id>", status="401")
    assert value(found, name, route="none", status="404")
    assert not any("/no/such" in str(labels) for _, labels in found)


def test_only_the_metrics_token_and_admins_see_numbers(client, settings, db):
    def status(token: str = "") -> int:
        given = {"authorization": f"Bearer {token}"} if token else {}
        return int(client.get("/metrics", headers=given).status_code)

    assert status() == 401
    assert status(SECRET) == 401  # no token is set
    settings.METRICS_TOKEN = SECRET
    assert status("wrong") == 401
    agent = create_token(user=make_user(Role.CURATOR, username="curator")).secret
    assert status(agent) == 403
    admin = create_token(user=make_user(Role.ADMIN, username="admin")).secret
    assert status(admin) == status(SECRET) == 200
    token = {"authorization": f"Bearer {SECRET}"}
    assert client.get("/api/v1/entries", headers=token).status_code == 401


def test_several_processes_that_share_a_directory_are_counted_together(tmp_path):
    code = (
        "from prometheus_client import Counter, CollectorRegistry, generate_latest\n"
        "from prometheus_client.multiprocess import MultiProcessCollector\n"
        "Counter('nescio_tried', 'x').inc()\n"
        "registry = CollectorRegistry()\n"
        "MultiProcessCollector(registry)\n"
        "print(generate_latest(registry).decode())\n"
    )
    shown = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]

    assert "nescio_tried_total 2.0" in shown[-1]


@pytest.mark.parametrize("file", ["grafana-dashboard.json", "alerts.yml"])
def test_dashboard_and_alerts_name_metrics_that_there_are(file, scrape):
    text = (MONITORING / file).read_text()
    parsed = json.loads(text) if file.endswith("json") else yaml.safe_load(text)
    named_there = set(NAME.findall(json.dumps(parsed)))
    make_entry("It costs 12 euros.", question=FEE)
    asking.ask(FEE, asker=make_user(), channel=Answer.Channel.API)
    enqueue("qa.find_gaps", {})

    response = {name for name, _ in scrape()}

    # A histogram or gauge without a sample yet is described all the same.
    unseen = {"nescio_drift", "nescio_jobs_failed"}
    unseen |= {"nescio_language_model_tokens_total"}
    assert named_there - response <= unseen
    assert len(named_there) >= 6


def test_a_jobs_message_and_log_lines_have_the_id_of_its_request():
    record = logging.LogRecord("x", logging.WARNING, "", 1, "Entry %s.", (7,), None)
    with named("request-1"):
        RequestIdFilter().filter(record)

    shown = json.loads(JsonFormatter().format(record))

    assert shown["message"] == "Entry 7."
    assert (shown["level"], shown["request_id"]) == ("WARNING", "request-1")
    assert shown["time"].endswith("+00:00")


def test_each_process_is_read_by_its_own_address_and_without_tls(client, settings, db):
    settings.METRICS_TOKEN = SECRET
    settings.SECURE_SSL_REDIRECT = True
    own = {"host": "10.1.2.3:8000", "authorization": f"Bearer {SECRET}"}

    assert client.get("/metrics", headers=own).status_code == 200
    assert client.get("/metrics", headers={"host": "10.1.2.3"}).status_code == 401
    settings.SECURE_SSL_REDIRECT = False
    client.raise_request_exception = False
    assert client.get("/api/v1/docs", headers=own).status_code == 400
