"""Fixtures and hooks for tests on the embedded PostgreSQL with real models."""

import gc
import math
import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter
    from django.core.management.color import Style
    from django.db.backends.base.base import BaseDatabaseWrapper
    from pytest_django.plugin import DjangoDbBlocker

    from probes.language_model import WhiteBoxModel

_IS_OURS = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--leak-matrix", metavar="FILE", help="write the leak matrix to FILE"
    )
    parser.addoption(
        "--leak-cases",
        metavar="N",
        type=int,
        default=300,
        help="random cases of the leak test",
    )
    parser.addoption(
        "--fuzz-examples",
        metavar="N",
        type=int,
        help="generated requests for each operation and role, after those of the schema",
    )


def pytest_terminal_summary(
    terminalreporter: "TerminalReporter", config: pytest.Config
) -> None:
    """Print what the leak and fuzzing tests counted, and write the leak matrix."""
    reports = terminalreporter.stats
    for report in (*reports.get("passed", ()), *reports.get("failed", ())):
        if Path(report.fspath).stem in {"test_random_leaks", "test_schema_fuzzing"}:
            for _name, counted in report.user_properties:
                terminalreporter.write_line(counted)
    file = config.getoption("--leak-matrix")
    if not file:
        return
    from tests.nescio.leak_table import table

    columns = {
        role: got
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        if "test_leak_matrix" in report.nodeid
        for role, got in report.user_properties
    }
    Path(file).write_text(table(columns, file=file))
    terminalreporter.write_line(f"The leak matrix of {len(columns)} roles: {file}")


def pytest_sessionstart(session: pytest.Session) -> None:
    import hypothesis
    from django.conf import settings

    from accounts import acting

    # Examples may be slow on a busy machine; no timing is asserted.
    slow = [hypothesis.HealthCheck.too_slow]
    hypothesis.settings.register_profile(
        "suite", deadline=None, suppress_health_check=slow
    )
    hypothesis.settings.load_profile("suite")
    # Most tests are about stages after the verifier, with which a verified entry would
    # answer before any language model is asked. It stays on in tests marked `verifier`
    # and in processes that a test starts.
    settings.VERIFIER = "none"
    # The default hasher takes a third of a second, several times in tests that sign in.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # Find static files on demand. Scanning for all of them took most of the time to
    # create a test client.
    settings.WHITENOISE_AUTOREFRESH = True
    # Test sessions that run in parallel must not share throttle counters.
    counters = tempfile.TemporaryDirectory(prefix="nescio-counters-")
    settings.CACHES["counters"]["LOCATION"] = f"{counters.name}/throttles.sqlite3"
    session.config.add_cleanup(counters.cleanup)
    patch = pytest.MonkeyPatch()
    # Nor find entries that an earlier session has read.
    tokens = Path(counters.name) / "tokens.sqlite3"
    patch.setattr(settings.PLACES, "verifier_tokens", tokens)
    patch.setattr(
        "django.core.management.commands.flush.emit_post_migrate_signal", _fill_again
    )
    if settings.DATABASE_IS_EMBEDDED:  # elsewhere the owner may lack the privilege
        patch.setattr("django.core.management.commands.flush.sql_flush", _emptied)
    session.config.add_cleanup(patch.undo)
    # Fixtures create, fill and empty databases, which needs the owner.
    owner = ExitStack()
    owner.enter_context(acting.as_owner("tests"))
    session.config.add_cleanup(owner.close)
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    # WhiteNoise warns of a missing directory, and warnings are errors here.
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    from nescio.embedded import postgres

    if settings.DATABASE_IS_EMBEDDED:
        session.stash[_IS_OURS] = postgres.start(settings.PLACES)


@pytest.fixture(scope="session")
def django_db_setup(
    django_db_setup: None, django_db_blocker: "DjangoDbBlocker"
) -> None:
    """Turn off synchronous commit, since no test needs durability on this server."""
    with django_db_blocker.unblock():
        set_synchronous_commit("off")


def set_synchronous_commit(value: str) -> None:
    """Set `synchronous_commit` for all new connections to the test database."""
    from django.db import connection

    with connection.cursor() as sql:
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        sql.execute(f"ALTER DATABASE {name} SET synchronous_commit = {value}")
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's own


_SMALL = 1024**2


def _emptied(
    style: "Style", connection: "BaseDatabaseWrapper", **options: bool
) -> list[str]:
    """Return SQL that empties small tables by DELETE, with the lock of TRUNCATE.

    TRUNCATE creates new files for each of a hundred tables and their indexes, which
    takes longer than many a test that commits. If a table has grown large, which
    includes its dead rows, all tables are truncated.
    """
    from django.core.management.sql import sql_flush

    of = connection.introspection
    names = of.django_table_names(only_existing=True, include_views=False)
    tables = [connection.ops.quote_name(name) for name in names]
    with connection.cursor() as sql:
        sql.execute(
            "SELECT max(pg_relation_size(t::regclass)) FROM unnest(%s::text[]) t",
            [tables],
        )
        ((largest,),) = sql.fetchall()
    if largest > _SMALL or options["reset_sequences"]:
        return sql_flush(style, connection, **options)
    statements = (
        f"LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE",
        "SET LOCAL session_replication_role = replica",  # no triggers
        *(f"DELETE FROM {table}" for table in tables),
    )
    return ["; ".join(statements)]


_filled: dict[str, str] = {}


def _fill_again(verbosity: int, interactive: bool, db: str, **options: object) -> None:
    """Fill an emptied database with a copy of the rows that `post_migrate` creates.

    Its receivers check every permission one by one, which takes most of the quarter of
    a second spent after each test that commits.
    """
    from django.core.management.sql import emit_post_migrate_signal
    from django.db import connections, transaction

    with transaction.atomic(using=db), connections[db].cursor() as sql:
        for table, rows in _filled.items():
            sql.execute(
                f"INSERT INTO {table} SELECT * FROM json_populate_recordset(NULL::{table}, %s)",
                [rows],
            )
        if not _filled:
            emit_post_migrate_signal(verbosity, interactive, db, **options)
            of = connections[db].introspection
            for table in of.django_table_names(only_existing=True, include_views=False):
                sql.execute(f"SELECT json_agg(t)::text FROM {table} t")
                ((rows,),) = sql.fetchall()
                if rows:
                    _filled[table] = rows


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the database if this session started it."""
    if session.stash.get(_IS_OURS, False):
        from django.conf import settings

        from nescio.embedded import postgres

        postgres.stop(settings.PLACES)


@pytest.fixture(autouse=True)
def _verifier_where_wanted(request: pytest.FixtureRequest) -> None:
    if "verifier" in request.keywords:
        request.getfixturevalue("settings").VERIFIER = "bundled"


# Browser tests run next to each other, so that one browser serves them all.
_LONGEST = (("system",), ("browser",), ("slow",))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest files first, after the order was shuffled.

    Files that start whole systems take minutes each, those with a browser or slow tests
    up to minutes. If one started last, a single process would run it while the others
    idle.
    """
    first: dict[Path, int] = {}
    for item in items:
        place = next(
            (place for place, marks in enumerate(_LONGEST) if _has(item, marks)),
            len(_LONGEST),
        )
        first[item.path] = min(place, first.get(item.path, place))
    items.sort(key=lambda item: first[item.path])


def _has(item: pytest.Item, marks: tuple[str, ...]) -> bool:
    return any(item.get_closest_marker(mark) for mark in marks)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """Collect tests without garbage collection: imports leave little garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Make full garbage collections scan only objects created since the previous one.

    Scanning every library and test again each time took a sixth of the run time.
    """
    gc.callbacks.append(_keep_what_is_left)
    gc.collect()
    gc.set_threshold(*gc.get_threshold()[:2], 50)


def _keep_what_is_left(phase: str, info: Mapping[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """Run tests without row-level security; requests and jobs set their own reader."""
    from accounts.acting import unrestricted

    with unrestricted("tests"):
        return (yield)


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    """Clear the caches, so that requests of one test do not throttle another."""
    from django.core.cache import caches

    for name in caches:
        caches[name].clear()


@pytest.fixture(autouse=True)
def _no_remembered_model() -> None:
    """Forget the active embedding model, which another test's rollback has removed."""
    from kb.embedding import services as embedding

    embedding._last_active.clear()


@pytest.fixture(autouse=True)
def _no_remembered_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep frequent words of another test's entries from being ignored in searches.

    PostgreSQL may analyze a table while a test fills it, and the statistics outlive the
    rows.
    """
    from kb.search import evidence

    monkeypatch.setattr(evidence, "_kept", evidence._Kept((), math.inf))


@pytest.fixture(scope="session")
def bundled_model() -> "WhiteBoxModel":
    """Return the bundled language model, prepared once in the variable directory."""
    from probes.language_model import load_model

    return load_model("bundled")


@pytest.fixture(scope="session")
def bundled_base() -> "WhiteBoxModel":
    """Return the bundled language model without its adapter."""
    from probes.language_model import load_model

    return load_model("bundled", adapter="none")


@pytest.fixture
def import_directory(monkeypatch, tmp_path):
    """Store uploads in a temporary directory, apart from those of the developer."""
    from django.core.files.storage import FileSystemStorage

    from kb.models import Import

    storage = FileSystemStorage(location=tmp_path / "imports")
    monkeypatch.setattr(Import._meta.get_field("file"), "storage", storage)
    return tmp_path / "imports"
