"""The suites by name."""

from collections.abc import Callable, Mapping
from typing import Protocol

from qa.exceptions import EvaluationDataError
from qa.models import Answer

from .cases import Case
from .demonstration import Demonstration


class Suite(Protocol):
    """Labelled questions that can be asked here."""

    cases: tuple[Case, ...]

    def ask(self, case: Case) -> Answer:
        """Ask one case and wait for the outcome."""
        ...

    def keep(self, case: Case) -> Answer:
        """Keep one case's question, pending."""
        ...

    def key_of(self, text: str) -> str:
        """Return the suite's key of the entry that says `text`; "" for none."""
        ...


SUITES: Mapping[str, Callable[[], Suite]] = {"demo": Demonstration}


def open_suite(name: str) -> Suite:
    """Return the suite called `name`, ready to be asked.

    Raises:
        EvaluationDataError: There is none, or it can't be asked here.
    """
    if name not in SUITES:
        known = ", ".join(sorted(SUITES))
        raise EvaluationDataError(
            f"There is no suite {name[:80]!r}; there are: {known}."
        )
    return SUITES[name]()
