"""What came of a run: for scripts (JSON), for people (terminal, Markdown), as plots."""

from .build import build_report, judged_from
from .plots import write_plots
from .tables import as_markdown, print_report

__all__ = [
    "as_markdown",
    "build_report",
    "judged_from",
    "print_report",
    "write_plots",
]
