"""What came of a run: for scripts (JSON), for people (terminal, Markdown), as plots."""

from .build import build_report
from .terminal import print_report

__all__ = ["build_report", "print_report"]
