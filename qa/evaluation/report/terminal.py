"""A report for people, in the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table


def print_report(report: Mapping[str, Any], console: Console) -> None:
    """Print the rates."""
    table = Table("", "count", "of", title="Rates", title_justify="left")
    for name, rate in report["rates"].items():
        table.add_row(name.replace("_", " "), str(rate["count"]), str(rate["of"]))
    console.print(table)
