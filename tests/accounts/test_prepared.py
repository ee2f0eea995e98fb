"""Some statements are planned once by each connection, or never where forbidden."""

import pytest
from django.db import DataError, connection, transaction

from accounts.prepared import execute, execute_prepared

pytestmark = pytest.mark.django_db

SQL = "SELECT %(a)s::int + %(b)s::int, %(a)s::int /* of this test */"


def runs() -> list[int]:
    """How often each statement of this test ran that the connection holds prepared."""
    rows = execute(
        "SELECT generic_plans + custom_plans FROM pg_prepared_statements"
        " WHERE position('of this test' IN statement) > 0",
        {},
    )
    return [found for (found,) in rows]


@pytest.fixture
def fresh():
    """A connection that has prepared nothing."""
    connection.connection.execute("DEALLOCATE ALL")
    connection.connection._prepared.clear()


def test_a_statement_is_prepared_once_and_takes_its_values_by_name(fresh):
    found = [execute_prepared(SQL, {"b": b, "unused": 0, "a": 2}) for b in (1, 5)]

    assert found == [[(3, 2)], [(7, 2)]]
    assert found[0] == execute(SQL, {"a": 2, "b": 1})
    assert runs() == [2]


def test_nothing_is_prepared_where_that_is_forbidden(fresh, monkeypatch):
    monkeypatch.setattr(connection.connection, "prepare_threshold", None)

    assert execute_prepared(SQL, {"a": 1, "b": 1}) == [(2, 1)]
    assert runs() == []


def test_it_counts_as_a_query_and_fails_as_one(django_assert_num_queries):
    with django_assert_num_queries(1) as queries:
        execute_prepared(SQL, {"a": 20, "b": 30})
    assert queries.captured_queries[0]["sql"].startswith("SELECT $1::int + $2::int")

    with pytest.raises(DataError), transaction.atomic():
        execute_prepared(SQL, {"a": 1, "b": "x"})
