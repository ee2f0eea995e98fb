"""Reads from a real streaming replica show what the primary would, to nobody else."""

import os
import subprocess
import sys
from contextlib import contextmanager
from datetime import timedelta
from urllib.parse import quote

import psycopg
import pytest
from django.contrib.auth.models import Group, User
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from accounts import replica
from accounts.acting import acting_for, as_owner
from accounts.prepared import execute
from accounts.roles import Role
from kb.entries.finding import found_by
from kb.models import Entry
from kb.search import evidence
from nescio.embedded import postgres
from nescio.embedded.places import Places, hand_over, server_user
from qa.answers.asking import ask
from tests.clients import page_client, rest_client
from tests.conftest import set_synchronous_commit
from tests.factories import (
    make_audience,
    make_entry,
    make_knowledge_base,
    make_staff,
    make_user,
)
from tests.waiting import wait_until
from tests.workers.processes import environment_of

PUBLIC = "A replacement card costs 12 euros."
SECRET = "The secret limit is 900 euros."

pytestmark = [pytest.mark.system, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def standby(tmp_path_factory, django_db_setup, django_db_blocker):
    """Return the places of a server that follows the tests' own."""
    with django_db_blocker.unblock():  # what no disk has yet is sent to no replica
        set_synchronous_commit("on")
    places = Places(tmp_path_factory.mktemp("standby"))
    source, owner = connections["default"].settings_dict, server_user()
    hand_over(places.postgres_data, owner)
    subprocess.run(
        (
            str(postgres.installation() / "bin" / "pg_basebackup"),
            *("--host", source["HOST"], "--username", "postgres"),
            *("--pgdata", str(places.postgres_data), "--write-recovery-conf"),
            *("--checkpoint", "fast", "--wal-method", "stream", "--no-sync"),
        ),
        cwd="/",
        check=True,
        user=owner.pw_uid if owner else None,
        group=owner.pw_gid if owner else None,
    )
    with (places.postgres_data / "postgresql.auto.conf").open("a") as options:
        options.write("fsync = off\n")
    postgres.start(places)
    yield places
    postgres.stop(places)
    with django_db_blocker.unblock():
        set_synchronous_commit("off")


@pytest.fixture
def following(standby, transactional_db, settings, monkeypatch):
    """Let reads go to the replica, as `DATABASE_REPLICA_URL` would."""
    source = connections["default"].settings_dict
    options = {k: v for k, v in source["OPTIONS"].items() if k != "pool"}
    connections.databases["replica"] = {
        **source,
        "HOST": str(standby.postgres_socket_directory),
        "OPTIONS": options,
    }
    own = connections["replica"]

    def connect():  # Django's tests know the databases that the settings named alone
        if own.connection is None:
            with own.wrap_database_errors:
                own.connect()

    monkeypatch.setattr(own, "ensure_connection", connect)
    settings.DATABASE_ROUTERS = ["accounts.replica.ReplicaRouter"]
    settings.DATABASE_REPLICA_URL = _url(standby)
    settings.DATABASE_REPLICA_WAIT = timedelta(seconds=20)
    monkeypatch.setattr(replica, "_resting_until", 0.0)
    yield standby
    own.close()
    del connections["replica"]
    del connections.databases["replica"]


def _url(standby):
    name = connections["default"].settings_dict["NAME"]
    host = quote(str(standby.postgres_socket_directory), safe="")
    return f"postgresql://nescio@{host}/{name}"


def _on(standby, statement):
    with psycopg.connect(
        host=str(standby.postgres_socket_directory), user="postgres", autocommit=True
    ) as found:
        ((value,),) = found.execute(statement).fetchall()
    return value


@contextmanager
def paused(standby, settings):
    """Let the replica fall behind, and no read wait long for it."""
    settings.DATABASE_REPLICA_WAIT = timedelta(milliseconds=20)
    _on(standby, "SELECT pg_wal_replay_pause()::text")
    wait_until(
        lambda: _on(standby, "SELECT pg_get_wal_replay_pause_state()") == "paused"
    )
    try:
        yield
    finally:
        _on(standby, "SELECT pg_wal_replay_resume()::text")


def reads():
    """Count what the replica is asked, but for whether it is up to date."""
    return CaptureQueriesContext(connections["replica"])


def count(captured):
    return sum("kb_" in each["sql"] for each in captured if "pg_lsn" not in each["sql"])


def texts(client):
    return {each["text"] for each in client.get("/api/v1/entries").json()["results"]}


def test_a_list_reads_from_the_replica_what_was_just_written(following):
    client = rest_client(make_user(Role.CURATOR))
    audience = make_audience()

    for number in range(5):
        text = f"Card {number} costs 12 euros."
        body = {
            "knowledge_base": make_knowledge_base().slug,
            "audience": audience.slug,
            "text": text,
        }
        assert client.post("/api/v1/entries", body, format="json").status_code == 201
        with reads() as captured:
            assert text in texts(client)
        assert count(captured) >= 1


def test_search_and_dashboards_read_from_the_replica(following):
    make_entry(PUBLIC)
    page, rest = page_client(make_staff(Role.ADMIN)), rest_client(make_user(Role.SME))

    for client, address in (
        (page, "/knowledge?q=replacement"),
        (page, "/admin/qa/answer/dashboard/"),
        (rest, "/api/v1/dashboard"),
        (rest, "/api/v1/entries?q=replacement"),
        (rest, "/api/v1/answers"),
    ):
        with CaptureQueriesContext(connections["replica"]) as captured:
            response = client.get(address)
        assert response.status_code == 200, address
        assert len(captured) > 1, address


def test_a_replica_that_is_behind_is_not_read(following, settings, client):
    user = rest_client(make_user())
    with paused(following, settings):
        make_entry(PUBLIC)
        with reads() as captured:
            assert texts(user) == {PUBLIC}
        health = client.get("/healthz")

    assert count(captured) == 0
    assert health.status_code == 200
    assert health.json()["status"] == "degraded"
    found = health.json()["checks"]["replica"]
    assert found["ok"] is False
    assert "behind by" in found["detail"]
    assert "the primary is read instead" in found["detail"]


def test_who_may_no_longer_see_it_does_not_see_it_on_a_replica_behind(
    following, settings
):
    member = make_user(groups=["fraud"])
    make_entry(SECRET, audience=make_audience("fraud", groups=["fraud"]))
    client = rest_client(member)
    assert texts(client) == {SECRET}

    before = User.groups.through.objects.count()
    with paused(following, settings):
        member.groups.remove(Group.objects.get(name="fraud"))
        # By itself it would still show it.
        with psycopg.connect(_url(following)) as stale:
            row = stale.execute("SELECT count(*) FROM auth_user_groups").fetchone()
        assert row == (before,)
        assert texts(client) == set()


def test_row_security_holds_on_the_replica(following):
    member, stranger = make_user(groups=["fraud"]), make_user()
    make_entry(PUBLIC)
    make_entry(SECRET, audience=make_audience("fraud", groups=["fraud"]))

    for user, wanted in ((member, {PUBLIC, SECRET}), (stranger, {PUBLIC})):
        with acting_for(user), replica.reading():
            assert replica.reading_alias() == "replica"
            # No filter in the code: the database alone holds.
            assert set(Entry.objects.values_list("text", flat=True)) == wanted
            assert {each for (each,) in execute("SELECT text FROM kb_entry")} == wanted


def test_a_role_that_bypasses_row_security_is_not_used(following):
    with as_owner("a test: a superuser"):
        assert "bypasses row-level security" in str(replica.problem())
        with replica.reading():
            assert replica.reading_alias() == "default"


def test_the_primary_itself_is_no_replica(following):
    source = connections["default"].settings_dict["HOST"]
    connections["replica"].settings_dict["HOST"] = source

    with acting_for(make_user()):
        assert "is not a replica" in str(replica.problem())


def test_a_replica_that_is_away_is_done_without_and_found_again(
    following, client, monkeypatch
):
    monkeypatch.setattr(replica, "_REST_SECONDS", 600.0)
    user = rest_client(make_user())
    make_entry(PUBLIC)
    postgres.stop(following)
    try:
        assert texts(user) == {PUBLIC}
        health = client.get("/healthz").json()
        assert health["status"] == "degraded"
        assert "not reachable" in health["checks"]["replica"]["detail"]
    finally:
        postgres.start(following)
    with reads() as captured:
        assert texts(user) == {PUBLIC}
    assert count(captured) == 0  # it is left alone for a while

    monkeypatch.setattr(replica, "_resting_until", 0.0)
    with reads() as captured:
        assert texts(user) == {PUBLIC}
    assert count(captured) >= 1
    assert client.get("/healthz").json()["checks"]["replica"]["ok"] is True


def test_a_view_whose_replica_is_lost_is_run_on_the_primary(following):
    read_from = []

    @replica.reads_replica
    def view():
        read_from.append(replica.reading_alias())
        if replica.reading_alias() == "replica":
            ((process,),) = execute("SELECT pg_backend_pid()")
            _on(following, f"SELECT pg_terminate_backend({process})")
        return set(Entry.objects.values_list("text", flat=True))

    make_entry(PUBLIC)
    with acting_for(make_user()):
        assert view() == {PUBLIC}
    assert read_from == ["replica", "default"]


def test_what_follows_a_write_reads_the_primary(following):
    with acting_for(make_user()), replica.reading():
        assert replica.reading_alias() == "replica"
        make_audience("fraud")
        assert replica.reading_alias() == "default"


def test_a_transaction_reads_what_it_wrote(following):
    with transaction.atomic(), acting_for(make_user()), replica.reading():
        assert replica.reading_alias() == "default"


def test_an_index_scan_is_set_up_on_the_replica(following):
    with acting_for(make_user()), replica.reading():
        with transaction.atomic(using=replica.reading_alias()):
            evidence.prepare_index_scan(deep=True)
            within = execute("SHOW hnsw.ef_search")
        assert within == [("800",)]
        assert execute("SHOW hnsw.ef_search") == [("100",)]


def test_search_finds_on_the_replica_what_the_primary_does(following):
    entry = make_entry(PUBLIC)
    user = make_user()

    with acting_for(user), replica.reading():
        assert replica.reading_alias() == "replica"
        found = found_by(
            "replacement card",
            Entry.objects.readable_by(user),
            reader=user,
            knowledge_base=entry.knowledge_base,
        )
    assert [each.pk for each in found.by_words] == [entry.pk]


def test_asking_reads_from_the_primary_alone(following):
    make_entry(PUBLIC, question="What does a replacement card cost?")
    user = make_user()

    with (
        acting_for(user),
        CaptureQueriesContext(connections["replica"]) as captured,
    ):
        answer = ask(
            "What does a replacement card cost?", asker=user, channel="command"
        )

    assert answer.outcome
    assert len(captured) == 0


_LOOK = """
import django
django.setup()
from accounts import replica
from accounts.acting import NOBODY, reading_as
with reading_as(NOBODY):
    for _ in range(2):
        with replica.reading():
            print(replica.reading_alias())
        replica._rest("a test")
"""


def test_settings_name_the_replica(standby, settings, tmp_path):
    environment = environment_of(
        tmp_path,
        "memory://",
        DATABASE_REPLICA_URL=_url(standby),
        NESCIO_DATABASE_REPLICA_WAIT_MS="20000",
        DJANGO_SETTINGS_MODULE="nescio.settings",
    )
    done = subprocess.run(
        [sys.executable, "-c", _LOOK],
        cwd=settings.BASE_DIR,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.stdout.split() == ["replica", "default"], done.stderr


def test_tables_are_changed_on_the_primary_alone():
    router = replica.ReplicaRouter()

    assert router.allow_migrate("default", "kb") is True
    assert router.allow_migrate("replica", "kb") is False
    with as_owner("a test"):
        assert router.db_for_write(Entry) == "default"
