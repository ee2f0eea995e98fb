"""Behind a real PgBouncer in transaction mode everybody still sees only what they may."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from urllib.parse import quote

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from accounts.acting import as_owner
from nescio.embedded.places import SYSTEM_USER
from tests.factories import make_audience, make_entry, make_user
from tests.waiting import wait_until
from tests.workers.processes import Process, environment_of

from .running import free_port

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin") or ""
ROLE = "nescio_web_of_test"
SET = (
    f"ALTER ROLE {ROLE} SET hnsw.iterative_scan = 'relaxed_order'",
    f"ALTER ROLE {ROLE} SET hnsw.ef_search = 100",
)
SECRET = "The secret limit is 900 euros."
PUBLIC = "A replacement card costs 12 euros."
QUESTION = "What is the secret limit?"

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not PGBOUNCER, reason="pgbouncer is not installed"),
    pytest.mark.django_db(transaction=True),
]


def as_administrator(*statements):
    with as_owner("a test's role"), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture
def web_role(transactional_db):
    as_administrator(f"CREATE ROLE {ROLE} LOGIN IN ROLE {settings.DATABASE_ROLE}")
    yield ROLE
    as_administrator(f"DROP ROLE {ROLE}")


@pytest.fixture
def start_pooler(web_role, tmp_path):
    """Return what starts one with two connections for all, and tells its address."""
    with ExitStack() as place:
        yield lambda: _start(web_role, tmp_path, place)


def _start(web_role, tmp_path, place):
    database, port = connection.settings_dict, free_port()
    file = tmp_path / "pgbouncer.ini"
    file.write_text(
        "[databases]\n"
        f"nescio = host={database['HOST']} port={database['PORT'] or 5432} "
        f"dbname={database['NAME']} user={web_role}\n"
        "[pgbouncer]\npool_mode = transaction\ndefault_pool_size = 2\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        "auth_type = any\n"
    )
    as_user = ("-u", SYSTEM_USER) if os.geteuid() == 0 else ()
    process = Process((PGBOUNCER, *as_user, str(file)), tmp_path / "pgbouncer.log", {})
    place.callback(process.end)
    url = f"postgresql://{quote(web_role)}@127.0.0.1:{port}/nescio"

    def answers():
        try:
            with psycopg.connect(url) as found:
                return found.execute("SELECT 1").fetchone()
        except psycopg.OperationalError:
            return False

    wait_until(answers)
    return url


def reader(url, directory, *arguments):
    environment = environment_of(
        directory,
        "memory://",
        url,
        NESCIO_DATABASE_POOLER="true",
        NESCIO_DATABASE_ROLE="",
        NESCIO_VERIFIER="none",
        DJANGO_SETTINGS_MODULE="nescio.settings",
    )
    return subprocess.run(
        [sys.executable, "-m", "tests.nescio.pooled_reader", *map(str, arguments)],
        cwd=settings.BASE_DIR,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_readers_behind_a_pooler_see_only_their_own(start_pooler, tmp_path):
    as_administrator(*SET)
    member, stranger = make_user(groups=["fraud"]), make_user()
    make_entry(PUBLIC)
    make_entry(
        SECRET, question=QUESTION, audience=make_audience("fraud", groups=["fraud"])
    )

    done = reader(start_pooler(), tmp_path, member.pk, stranger.pk, QUESTION)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["seen"] == [[[PUBLIC, SECRET]], [[PUBLIC]]] * 4
    assert found["answered"][0] == ["answered", SECRET]
    assert found["answered"][1][0] == "refused"


def test_a_role_without_the_index_setting_is_refused_with_the_remedy(
    start_pooler, tmp_path
):
    user = make_user()

    done = reader(start_pooler(), tmp_path, user.pk, user.pk, QUESTION)

    assert done.returncode != 0
    assert "ALTER ROLE ... SET hnsw.iterative_scan = 'relaxed_order'" in done.stderr
