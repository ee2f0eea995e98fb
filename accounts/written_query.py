"""A query written once and run many times.

For a question that the database answers in a fraction of a millisecond, Django takes
longer to write the statement than PostgreSQL takes to run it. What every request asks is
therefore written once for each value of its parameters, and remembered with them. The
rows are the ORM's, so nothing of what they may hold is said a second time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from django.db import connection, models

from accounts.prepared import execute_prepared

Row = TypeVar("Row", bound=models.Model)


@dataclass(frozen=True, slots=True)
class WrittenQuery:
    """A statement, and its parameters by name."""

    sql: str
    parameters: Mapping[str, Any]

    @classmethod
    def of(cls, rows: models.QuerySet[Any, tuple[Any, ...]]) -> Self:
        """Write a `values_list` down; nothing is asked yet.

        What depends on the time or on other rows must be left to the database (`Now`, a
        subquery): the parameters stay as they are.
        """
        sql, parameters = rows.query.sql_with_params()
        named = {f"p{at}": value for at, value in enumerate(parameters)}
        return cls(sql % tuple(f"%({name})s" for name in named), named)

    def first(self) -> tuple[Any, ...] | None:
        """Run it and return the first row, its values as the driver gives them."""
        rows = execute_prepared(self.sql, self.parameters)
        return rows[0] if rows else None


def field_names(model: type[models.Model]) -> tuple[str, ...]:
    """Return the names of the model's own columns, as its instances hold them."""
    return tuple(field.attname for field in model._meta.concrete_fields)


def instance(model: type[Row], values: Sequence[Any]) -> Row:
    """Make the instance that `field_names` with these values were read of."""
    return model.from_db(connection.alias, field_names(model), values)
