"""What deploy/compose does to a database, on a PostgreSQL and a PgBouncer of its own."""

import os
import re
import subprocess
import sys
import time
from urllib.parse import quote

import psycopg
import pytest
import yaml
from django.conf import settings

from nescio.embedded import postgres
from nescio.embedded.places import SYSTEM_USER, Places
from tests.waiting import wait_until
from tests.workers.processes import Process

from .running import free_port
from .test_deployment import COMPOSE
from .test_pooler import PGBOUNCER

SCRIPTS = settings.BASE_DIR / "deploy" / "compose"
PASSWORDS = {"NESCIO_OWNER_PASSWORD": "owner", "NESCIO_WEB_PASSWORD": "web"}
NAMED = "SELECT name FROM auth_group ORDER BY name"

pytestmark = pytest.mark.system


class Database:
    """A server with what `roles.sh` and `migrate` made, and the scripts to run on it."""

    def __init__(self, directory):
        self.places = Places(directory / "var")
        self.backups = directory / "backups"
        self.host = str(self.places.postgres_socket_directory)
        postgres.start(self.places)
        with self.connect("postgres", "postgres") as connection:
            # The embedded database's own; PostgreSQL's image makes none.
            connection.execute("DROP DATABASE nescio")
            connection.execute("DROP ROLE nescio")

    def connect(self, user="nescio", name="nescio"):
        return psycopg.connect(host=self.host, user=user, dbname=name, autocommit=True)

    def rows(self, statement, name="nescio"):
        with self.connect("postgres", name) as connection:
            return [row[0] for row in connection.execute(statement).fetchall()]

    def environment(self):
        path = f"{postgres.installation() / 'bin'}:{os.environ['PATH']}"
        return {"PATH": path, "PGHOST": self.host}

    def backup_environment(self):
        service = yaml.safe_load(COMPOSE.read_text())["services"]["backup"]
        of_service = {
            name: _without_default(value)
            for name, value in service["environment"].items()
            if name != "PGPASSWORD"
        }
        return {**of_service, **self.environment()}

    def script(self, name, *arguments, **variables):
        command = ["sh", SCRIPTS / name, *arguments]
        return _run(command, self.backups, {**self.environment(), **variables})

    def backup(self, *arguments, **variables):
        own = {**self.backup_environment(), **variables}
        return self.script("backup.sh", *arguments, **own)

    def dumps(self):
        return sorted(file.name for file in self.backups.glob("nescio-*"))

    def manage(self, *arguments, url="", **variables):
        own = f"postgresql://nescio@{quote(self.host, safe='')}/nescio"
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("NESCIO_", "DATABASE_", "CELERY_"))
        }
        environment = {
            "NESCIO_VAR_DIR": str(self.places.var),
            "NESCIO_SECRET_KEY": "only for tests " * 4,
            "DATABASE_URL": url or own,
            "DJANGO_SETTINGS_MODULE": "nescio.settings",
        }
        return _run(
            [sys.executable, *arguments],
            settings.BASE_DIR,
            {**inherited, **environment, **variables},
        )


def _run(command, directory, environment):
    return subprocess.run(
        [str(each) for each in command],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _without_default(value):
    return re.sub(r"^\$\{[A-Z_]+:-(.*)\}$", r"\1", value)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Database(tmp_path_factory.mktemp("composed"))
    made.backups.mkdir()
    try:
        done = made.script("roles.sh", POSTGRES_USER="postgres", **PASSWORDS)
        assert done.returncode == 0, done.stderr
        done = made.manage("manage.py", "migrate", "--verbosity", "0")
        assert done.returncode == 0, done.stderr
        yield made
    finally:
        postgres.stop(made.places)


@pytest.fixture
def database(server, tmp_path):
    server.backups = tmp_path / "backups"
    server.backups.mkdir()
    return server


@pytest.fixture
def pooler(database, tmp_path):
    """The address of PgBouncer with the file of the compose file."""
    port, file = free_port(), tmp_path / "pgbouncer.ini"
    (tmp_path / "userlist.txt").write_text('"nescio_web" "web"\n')
    file.write_text(
        (SCRIPTS / "pgbouncer.ini")
        .read_text()
        .replace("host=database", f"host={database.host}")
        .replace("listen_addr = *", "listen_addr = 127.0.0.1")
        .replace("6432", str(port))
        .replace("/tmp/userlist.txt", str(tmp_path / "userlist.txt"))  # of a container
    )
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(path.stat().st_mode | 0o055)
    # The user that the embedded server runs as: its socket is for nobody else.
    as_user = ("-u", SYSTEM_USER) if os.geteuid() == 0 else ()
    process = Process((PGBOUNCER, *as_user, str(file)), tmp_path / "log", {})
    url = f"postgresql://nescio_web:web@127.0.0.1:{port}/nescio"

    def answers():
        try:
            with psycopg.connect(url, prepare_threshold=None) as connection:
                return connection.execute("SELECT 1").fetchone()
        except psycopg.OperationalError:
            return False

    try:
        wait_until(answers)
        yield url
    finally:
        process.end()


def test_no_role_is_a_superuser_and_the_web_servers_owns_nothing(database):
    powers = (
        "SELECT rolname FROM pg_roles WHERE rolname LIKE 'nescio%'"
        " AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls)"
    )
    owners = (
        "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relname LIKE 'kb_%'"
    )

    assert database.rows("SELECT count(*) FROM pg_roles WHERE rolname ~ '^nescio'") == [
        3
    ]
    assert database.rows(powers) == []
    assert database.rows(owners) == ["nescio"]


@pytest.mark.skipif(not PGBOUNCER, reason="pgbouncer is not installed")
def test_the_web_server_is_fit_behind_pgbouncer_as_it_is_composed(database, pooler):
    composed = yaml.safe_load(COMPOSE.read_text())["services"]["web"]["environment"]
    own = ("NESCIO_DATABASE_POOLER", "NESCIO_DATABASE_ROLE")
    check = (
        "import django; django.setup(); from nescio.fitness import require_fit_database;"
        "from django.db import connection as c; require_fit_database();"
        "print(c.cursor().execute('SELECT current_user').fetchone()[0])"
    )

    done = database.manage(
        "-c", check, url=pooler, **{name: composed[name] for name in own}
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["nescio_web"]


def test_a_backup_is_complete_and_old_ones_go_only_then(database):
    old, part = database.backups / "nescio-old.dump", database.backups / "nescio-1.part"
    for file in (old, part):
        file.touch()
        os.utime(file, (0, time.time() - 15 * 86_400))
    assert database.backup("check").returncode == 1

    assert database.backup("once", PGUSER="nobody").returncode != 0
    assert "nescio-old.dump" in database.dumps()

    done = database.backup("once")

    assert done.returncode == 0, done.stderr
    (dump,) = database.dumps()
    assert re.fullmatch(r"nescio-\d{8}T\d{6}Z\.dump", dump)
    assert (database.backups / dump).stat().st_mode & 0o777 == 0o600
    assert database.backup("check").returncode == 0


def test_a_backup_deletes_neither_itself_nor_what_lies_below(database):
    kept = database.backups / "keep" / "nescio-old.dump"
    kept.parent.mkdir()
    kept.touch()
    os.utime(kept, (0, time.time() - 15 * 86_400))

    done = database.backup("once", NESCIO_BACKUP_KEEP_DAYS="0")

    assert done.returncode == 0, done.stderr
    assert len(database.dumps()) == 1
    assert kept.exists()


def test_a_backup_is_made_when_the_last_one_is_too_old(database):
    command = ["sh", str(SCRIPTS / "backup.sh")]
    environment = database.backup_environment()
    with subprocess.Popen(command, cwd=database.backups, env=environment) as service:
        try:
            wait_until(lambda: database.backup("check").returncode == 0)
        finally:
            service.terminate()

    assert len(database.dumps()) == 1


def test_a_restore_brings_back_what_was_and_keeps_what_is(database):
    with database.connect() as connection:
        connection.execute("INSERT INTO auth_group (name) VALUES ('before')")
    before = database.rows(NAMED)
    assert database.backup("once").returncode == 0
    dump = database.dumps()[-1]
    with database.connect() as connection:
        connection.execute("UPDATE auth_group SET name = 'after' WHERE name = 'before'")
    after = database.rows(NAMED)

    with database.connect():
        busy = database.script("restore.sh", dump)
    assert busy.returncode != 0
    assert database.rows(NAMED) == after

    done = database.script("restore.sh", dump)

    assert done.returncode == 0, done.stderr
    assert database.rows(NAMED) == before
    assert database.rows(NAMED, "nescio_before") == after
    fit = "import django; django.setup(); from nescio.fitness import require_fit_database as r; r()"
    for arguments in (("manage.py", "migrate", "--check"), ("-c", fit)):
        done = database.manage(*arguments)
        assert done.returncode == 0, done.stderr

    again = database.script("restore.sh", dump)
    assert again.returncode == 1
    assert "nescio_before of an earlier restore is there" in again.stderr
