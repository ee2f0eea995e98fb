"""What came of a run: for scripts (JSON), for people (terminal, Markdown), as plots."""

from .build import build_report
from .markdown import as_markdown
from .plots import write_plots
from .stored import judged_from
from .terminal import print_report

__all__ = [
    "as_markdown",
    "build_report",
    "judged_from",
    "print_report",
    "write_plots",
]
