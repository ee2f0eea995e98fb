import socket
from functools import partial

import pytest
from celery import current_app
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from accounts.acting import as_owner
from accounts.roles import Role
from accounts.services import create_token
from jobs.models import Job
from nescio import fitness, health, warm_up
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def test_healthy_system_says_so_to_anyone(client):
    response = client.get("/healthz")

    assert response.status_code == 200
    body = response.json()
    assert body["status"] == "ok", body
    assert set(body["checks"]) == {
        "disk", "database", "pgvector", "iterative_scan", "migrations", "queue", "embedder",
        "verifier", "language_model", "broker",
    }  # fmt: skip
    assert "no-store" in response["Cache-Control"]


@pytest.mark.parametrize(
    ("role", "is_told"),
    [(None, False), (Role.CURATOR, False), (Role.ADMIN, True)],
)
@pytest.mark.parametrize("by_token", [True, False])
def test_versions_are_told_to_the_role_admin_alone(client, role, is_told, by_token):
    headers = {}
    if role is not None:
        user = make_user(role)
        secret = create_token(user=user).secret
        if by_token:
            headers = {"Authorization": f"Bearer {secret}"}
        else:
            client.force_login(user)

    response = client.get("/healthz", headers=headers)

    assert response.status_code == 200
    version = fitness.pgvector_version()[0]
    assert (str(version) in response.content.decode()) is is_told
    assert ("PostgreSQL 1" in response.content.decode()) is is_told


def test_a_token_that_is_not_known_does_not_make_a_system_ill(client):
    response = client.get("/healthz", headers={"Authorization": "Token nsc_0"})

    assert response.status_code == 200


def test_process_that_runs_is_live_whatever_it_lacks(client, monkeypatch):
    monkeypatch.setitem(warm_up._states, "embedder", warm_up.State.FAILED)

    assert client.get("/healthz/live").status_code == 200
    assert client.get("/healthz").status_code == 503


@pytest.mark.parametrize("path", ["/healthz", "/healthz/live"])
def test_health_is_only_read(client, path):
    assert client.post(path).status_code == 405


def test_loading_embedder_is_not_ready_but_loading_language_model_is(
    client, monkeypatch
):
    monkeypatch.setitem(warm_up._states, "language_model", warm_up.State.LOADING)
    response = client.get("/healthz")
    assert (response.status_code, response.json()["status"]) == (200, "degraded")

    monkeypatch.setitem(warm_up._states, "embedder", warm_up.State.LOADING)
    response = client.get("/healthz")
    assert (response.status_code, response.json()["status"]) == (503, "unavailable")


def test_job_that_nobody_takes_degrades(client):
    job = Job.objects.create(kind="kb.embed")
    assert client.get("/healthz").json()["checks"]["queue"]["ok"]

    Job.objects.filter(pk=job.pk).update(created_at="2020-01-01T00:00:00Z")
    response = client.get("/healthz")

    assert (response.status_code, response.json()["status"]) == (200, "degraded")
    assert not response.json()["checks"]["queue"]["ok"]


def test_iterative_scan_that_did_not_take_is_found(client):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL hnsw.iterative_scan = 'off'")

    found = client.get("/healthz").json()["checks"]["iterative_scan"]

    assert not found["ok"]
    assert "'off' instead of 'relaxed_order'" in found["detail"]


def test_missing_migration_is_not_ready_and_no_error_of_the_log(client, capfd):
    health._all_applied.cache_clear()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'qa'")

    response = client.get("/healthz")

    assert response.status_code == 503
    assert "run manage.py migrate" in response.json()["checks"]["migrations"]["detail"]
    assert "/healthz" not in capfd.readouterr().err


def test_a_database_between_migrations_that_one_replaces_is_not_ready(client):
    health._all_applied.cache_clear()
    MigrationRecorder(connection).record_unapplied("kb", "0026_planned_sections")

    response = client.get("/healthz")

    assert response.status_code == 503
    assert "run manage.py migrate" in response.json()["checks"]["migrations"]["detail"]


def test_language_server_that_is_down_degrades(client, settings):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        settings.LANGUAGE_SERVER_URL = f"http://127.0.0.1:{port}/v1"
        up = client.get("/healthz")
    down = client.get("/healthz")

    assert (up.status_code, up.json()["status"]) == (200, "ok")
    assert (down.status_code, down.json()["status"]) == (200, "degraded")
    said = down.json()["checks"]["language_model"]
    assert not said["ok"]
    assert "cannot be reached" in said["detail"]


@pytest.mark.slow
def test_broker_that_is_down_degrades(client, monkeypatch):
    nowhere = partial(current_app.connection_for_write, url="redis://127.0.0.1:1/0")
    monkeypatch.setattr(current_app, "connection_for_write", nowhere)

    response = client.get("/healthz")

    assert (response.status_code, response.json()["status"]) == (200, "degraded")
    assert not response.json()["checks"]["broker"]["ok"]


def test_this_database_is_fit():
    assert checks.run_checks(tags=["database"], databases=["default"]) == []
    fitness.require_fit_database()


@pytest.mark.parametrize(
    ("version", "is_new_enough"),
    [
        ("0.8.3", False),
        ("0.8.4", True),
        ("0.8.10", True),
        ("0.9.0", True),
        ("1.0", True),
    ],
)
def test_pgvector_versions_that_lose_rows_are_told(version, is_new_enough):
    assert fitness.is_new_enough(version) is is_new_enough


def test_old_pgvector_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(fitness, "MIN_PGVECTOR", "99.0")

    with pytest.raises(ImproperlyConfigured, match=r"Install pgvector 99\.0 or newer"):
        fitness.require_fit_database()


@pytest.mark.parametrize(
    ("role", "problem"),
    [
        ("nescio_app", None),
        ("nescio_missing", "does not exist"),
        ("nescio", "bypasses row-level security"),
        ("", "bypasses row-level security"),
    ],
)
def test_a_role_that_row_security_does_not_bind_is_refused(role, problem):
    # Not by the setting: the connection would take the reader for told, and keep its role.
    found = fitness.role_problem(role)

    assert bool(found) == bool(problem)
    assert problem is None or problem in str(found)


def test_an_owner_of_the_tables_is_refused():
    with as_owner("tests"), connection.cursor() as cursor:
        cursor.execute("CREATE ROLE nescio_test_owner")
        cursor.execute("ALTER TABLE kb_entry OWNER TO nescio_test_owner")

    assert "owns the tables" in str(fitness.role_problem("nescio_test_owner"))


def test_the_check_before_a_start_looks_at_the_role_of_the_settings(settings):
    settings.DATABASE_ROLE = "nescio_missing"

    (found,) = fitness.check_database(None, databases=["default"])

    assert (found.id, "does not exist" in found.msg) == ("nescio.E004", True)
